"""The demonstration: a synthetic city is inspected, protected in three ways, verified, audited and reported on."""

from pathlib import Path
from typing import Any

from rich.console import Console

from ghostpoi.cli import audit_text, render
from ghostpoi.data import formats
from ghostpoi.data import inspect as summary
from ghostpoi.data.synthetic_file import write_city
from ghostpoi.errors import InputError
from ghostpoi.evaluate import audit
from ghostpoi.models.devices import device
from ghostpoi.progress import bar
from ghostpoi.publish import release
from ghostpoi.publish.protocols import publication
from ghostpoi.publish.verify import verify
from ghostpoi.report import page

USERS, POIS, DAYS, SEED = 400, 1200, 100, 7
METHOD, OTHERS = "crowd", ("ghost", "random")  # ours, the paper's, and the control
ADVERSARIES = ("none", "frequency", "habits+leak")  # as released, the paper's, and one who knows the rule


def run(folder: Path, console: Console) -> None:
    """Every command that a publisher would give, one after the other."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"-o {folder}: the folder cannot be made ({e.strerror}); choose another") from None
    city, out = folder / "city.txt", folder / "release"
    others = {method: folder / f"release-{method}" for method in OTHERS}

    _command(console, f"synth -o {city} --users {USERS} --pois {POIS} --days {DAYS} --seed {SEED}")
    rows = write_city(city, USERS, POIS, DAYS, SEED)
    console.print(f"{rows:,} check-ins of people with homes, jobs and habits")

    _command(console, f"inspect {city}")
    table, _ = formats.read(city)
    render.inspection(console, str(city), summary.summarise(table, publication(METHOD)))

    _command(console, f"protect {city} -o {out}")
    private = _private(out)
    render.released(console, out, private, _protect(console, city, out, METHOD))
    _command(console, f"verify {out} --against {city}")
    render.verification(console, verify(out, city, {}))

    _audit(console, city, out, private / "audit")
    for method, other in others.items():
        _command(console, f"protect {city} -o {other} --method {method}")
        render.released(console, other, _private(other), _protect(console, city, other, method))
    _audit(console, city, others["ghost"], private / "audit")  # of random, either audit tells the most important

    compared = " ".join(f"--compare {other}" for other in others.values())
    _command(console, f"report {out} {compared} --private {private} --with-clean")
    own = page.write_report(page.Request(out, private, True, tuple(others.values())))
    console.print(f"clean beside released, for the publisher's own eyes: {own}", soft_wrap=True)
    _command(console, f"report {out} {compared}")
    page.write_pages(page.Request(out, compare=tuple(others.values())))
    console.print(f"\nopen this in a browser: {out / page.PAGE}", soft_wrap=True)


def _audit(console: Console, city: Path, out: Path, cache: Path) -> None:
    """With one seed, to be quick; victims that both audits need are trained once."""
    _command(
        console,
        f"audit {city} {out} --adversaries {','.join(ADVERSARIES)} --seeds 1 --cache {cache}",
    )
    asked = audit.AuditRequest(file=city, release=out, adversaries=ADVERSARIES, seeds=1, cache=cache)
    with bar(audit.work(asked)) as report:
        audit_text.audited(console, str(out), audit.audit(asked, console.print, report))


def _private(out: Path) -> Path:
    return out.with_name(f"{out.name}.private")


def _protect(console: Console, city: Path, out: Path, method: str) -> dict[str, Any]:
    settings = publication(method)
    request = release.Request(
        city, out, _private(out), settings, method, "strong", {}, [], False, None, False, True, device("cpu")
    )  # fmt: skip
    with bar(release.work(settings)) as report:
        return release.make(request, console.print, report)


def _command(console: Console, text: str) -> None:
    console.print(f"\n[bold]$ ghostpoi {text}[/]", soft_wrap=True)
