"""The demonstration: the commands that a publisher would use, one after the other, on a synthetic city."""

from pathlib import Path

from ghostpoi.cli.commands import audit, inspect, protect, report, synth, verify
from ghostpoi.cli.options import console, tell
from ghostpoi.errors import InputError
from ghostpoi.extras import need

USERS, POIS, DAYS, SEED = 400, 1200, 100, 7
RELEASE_SEED = 0x64656D6F_67686F73_74706F69_31333337  # so that the demonstration prints the same every time
OTHERS = ("ghost", "random")  # beside the default: the paper's method, the control
VICTIM = "markov"  # on this city it learns more than a Transformer, in no time and alike on every machine


def demo(output: Path = Path("demo"), quick: bool = False) -> None:
    """Show what ghostpoi does on a synthetic city, without any data or network."""
    if not quick:
        need("models")
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
    _command(f"protect {city} -o {out} --seed {RELEASE_SEED}")
    protect(city, out, seed=RELEASE_SEED, device="cpu", force=True)
    _command(f"verify {out} --against {city}")
    verify(out, city)
    if quick:
        return _report(out, [])
    _audit(city, out, private / "audit")
    for method, other in zip(OTHERS, others, strict=True):
        _command(f"protect {city} -o {other} --method {method} --seed {RELEASE_SEED}")
        protect(city, other, method, RELEASE_SEED, device="cpu", force=True)
    for other in others[:1]:  # the random release is a control in both audits
        _audit(city, other, private / "audit")

    compared = "".join(f" --compare {other}" for other in others)
    _command(f"report {out}{compared} --private {private} --with-clean")
    report(out, compare=others, private=private, with_clean=True)
    tell("This page shows clean data beside the release, for the publisher only.")
    _report(out, others)


def _report(out: Path, others: list[Path]) -> None:
    _command(f"report {out}" + "".join(f" --compare {other}" for other in others))
    report(out, compare=others)
    tell("")
    tell(f"open this page in a browser: {out / 'report.html'}")


def _audit(city: Path, out: Path, cache: Path) -> None:
    """Run the full default set with one seed and without naturalness, which is fast. The audits share a cache."""
    _command(f"audit {city} {out} --victim {VICTIM} --seeds 1 --no-naturalness --cache {cache}")
    audit(city, out, victim=VICTIM, seeds=1, device="cpu", cache=cache, naturalness=False)


def _command(text: str) -> None:
    from rich.markup import escape

    console().print(f"\n[bold]$ ghostpoi {escape(text)}[/]", soft_wrap=True)
