"""The demonstration: inspect, protect, verify, audit and report on a synthetic city."""

from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from ghostpoi.cli import audit_text, render
from ghostpoi.data import formats
from ghostpoi.data.inspect import summarise
from ghostpoi.data.synthetic_file import write_city
from ghostpoi.errors import InputError
from ghostpoi.evaluate.audit import AuditRequest, audit
from ghostpoi.evaluate.audit import work as audit_work
from ghostpoi.progress import bar
from ghostpoi.publish.protocols import publication
from ghostpoi.publish.release import make_release, work
from ghostpoi.publish.request import ReleaseRequest
from ghostpoi.publish.verify import verify
from ghostpoi.report.page import PAGE, ReportRequest, write_pages

USERS, POIS, DAYS, SEED = 400, 1200, 100, 7
METHOD, OTHERS = "crowd", ("ghost", "random")  # the default, the paper's method, the control
ADVERSARIES = ("none", "frequency", "habits+leak")  # no adversary, one of the paper's, one that knows the rule


def run(folder: Path, console: Console) -> None:
    """Run the commands that a publisher would use, one after the other."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"-o {folder}: the folder cannot be created ({e.strerror}); choose another") from None
    city, out = folder / "city.txt", folder / "release"
    others = {method: folder / f"release-{method}" for method in OTHERS}

    _command(console, f"synth -o {city} --users {USERS} --pois {POIS} --days {DAYS} --seed {SEED}")
    rows = write_city(city, USERS, POIS, DAYS, SEED)
    console.print(f"{rows:,} check-ins of people with homes, jobs and habits")

    _command(console, f"inspect {city}")
    render.inspection(console, str(city), summarise(formats.read(city).table, publication(METHOD)))

    _command(console, f"protect {city} -o {out}")
    private = _private(out)
    render.released(console, out, private, _protect(console, city, out, METHOD))
    _command(console, f"verify {out} --against {city}")
    render.verification(console, verify(out, city, {}))

    _audit(console, city, out, private / "audit")
    for method, other in others.items():
        _command(console, f"protect {city} -o {other} --method {method}")
        render.released(console, other, _private(other), _protect(console, city, other, method))
    _audit(console, city, others["ghost"], private / "audit")  # both audits include the random control

    compared = " ".join(f"--compare {other}" for other in others.values())
    _command(console, f"report {out} {compared} --private {private} --with-clean")
    compare = tuple(others.values())
    [own] = write_pages(ReportRequest(release=out, private=private, with_clean=True, compare=compare))
    console.print(f"clean data beside the release, for the publisher only: {own}", soft_wrap=True)
    _command(console, f"report {out} {compared}")
    write_pages(ReportRequest(release=out, compare=compare))
    console.print(f"\nopen this page in a browser: {out / PAGE}", soft_wrap=True)


def _audit(console: Console, city: Path, out: Path, cache: Path) -> None:
    """Audit with one seed, which is fast. Both audits share a cache, so that common victims are trained once."""
    names = ",".join(ADVERSARIES)
    _command(console, f"audit {city} {out} --adversaries {names} --seeds 1 --cache {cache}")
    request = AuditRequest(file=city, release=out, adversaries=ADVERSARIES, seeds=1, cache=cache)
    with bar(audit_work(request)) as report:
        audit_text.audited(console, str(out), audit(request, console.print, report))


def _private(out: Path) -> Path:
    return out.with_name(f"{out.name}.private")


def _protect(console: Console, city: Path, out: Path, method: str) -> dict[str, Any]:
    settings = publication(method)
    request = ReleaseRequest(
        file=city, release=out, private=_private(out), settings=settings, method=method, protocol="strong",
        device=torch.device("cpu"), mapping={}, force=True,
    )  # fmt: skip
    with bar(work(settings)) as report:
        return make_release(request, console.print, report)


def _command(console: Console, text: str) -> None:
    console.print(f"\n[bold]$ ghostpoi {text}[/]", soft_wrap=True)
