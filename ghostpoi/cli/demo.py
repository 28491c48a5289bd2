"""The demonstration: the commands that a publisher would use, one after the other, on a synthetic city."""

from pathlib import Path

from ghostpoi.cli.commands import audit, inspect, protect, report, synth, verify
from ghostpoi.cli.options import console, tell
from ghostpoi.errors import InputError

USERS, POIS, DAYS, SEED = 400, 1200, 100, 7
OTHERS = ("ghost", "random")  # beside the default: the paper's method, the control
ADVERSARIES = "none,frequency,habits+leak"  # no adversary, one of the paper's, one that knows the rule


def demo(output: Path = Path("demo")) -> None:
    """Show what ghostpoi does on a synthetic city, without any data or network."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"-o {output}: the folder cannot be created ({e.strerror}); choose another") from None
    city, out, private = output / "city.txt", output / "release", output / "release.private"
    others = [output / f"release-{method}" for method in OTHERS]

    _command(f"synth -o {city} --users {USERS} --pois {POIS} --days {DAYS} --seed {SEED}")
    synth(city, USERS, POIS, DAYS, SEED)
    _command(f"inspect {city}")
    inspect(city)
    _command(f"protect {city} -o {out}")
    protect(city, out, device="cpu", force=True)
    _command(f"verify {out} --against {city}")
    verify(out, city)
    _audit(city, out, private / "audit")
    for method, other in zip(OTHERS, others, strict=True):
        _command(f"protect {city} -o {other} --method {method}")
        protect(city, other, method, device="cpu", force=True)
    _audit(city, others[0], private / "audit")  # both audits include the random control

    compared = " ".join(f"--compare {other}" for other in others)
    _command(f"report {out} {compared} --private {private} --with-clean")
    report(out, compare=others, private=private, with_clean=True)
    tell("This page shows clean data beside the release, for the publisher only.")
    _command(f"report {out} {compared}")
    report(out, compare=others)
    tell("")
    tell(f"open this page in a browser: {out / 'report.html'}")


def _audit(city: Path, out: Path, cache: Path) -> None:
    """Audit with one seed, which is fast. Both audits share a cache, so that common victims are trained once."""
    _command(f"audit {city} {out} --adversaries {ADVERSARIES} --seeds 1 --cache {cache}")
    audit(city, out, ADVERSARIES, seeds=1, device="cpu", cache=cache)


def _command(text: str) -> None:
    from rich.markup import escape

    console().print(f"\n[bold]$ ghostpoi {escape(text)}[/]", soft_wrap=True)
