"""The demonstration: a synthetic city is inspected and protected, the release verified and audited."""

from pathlib import Path

from rich.console import Console

from ghostpoi import audit, audit_text, formats, release, render, summary
from ghostpoi.devices import device
from ghostpoi.errors import InputError
from ghostpoi.progress import bar
from ghostpoi.protocols import publication
from ghostpoi.synth_file import write_city
from ghostpoi.verify import verify

USERS, POIS, DAYS, SEED = 500, 1500, 120, 7


def run(folder: Path, console: Console) -> None:
    """Every command that a publisher would give, one after the other."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"-o {folder}: the folder cannot be made ({e.strerror}); choose another") from None
    city, out = folder / "city.txt", folder / "release"

    _command(console, f"synth -o {city} --users {USERS} --pois {POIS} --days {DAYS} --seed {SEED}")
    rows = write_city(city, USERS, POIS, DAYS, SEED)
    console.print(f"{rows:,} check-ins of people with homes, jobs and habits")

    _command(console, f"inspect {city}")
    table, _ = formats.read(city)
    settings = publication("ghost")
    render.inspection(console, str(city), summary.summarise(table, settings))

    _command(console, f"protect {city} -o {out}")
    private = folder / "release.private"
    request = release.Request(
        city, out, private, settings, "ghost", "strong", {}, [], False, None, False, True, device("cpu")
    )  # fmt: skip
    with bar(release.work(settings)) as report:
        manifest = release.make(request, console.print, report)
    render.released(console, out, private, manifest)

    _command(console, f"verify {out} --against {city}")
    render.verification(console, verify(out, city, {}))

    adversaries = ("none", "frequency")  # the cheapest two: all of them, with three seeds, take minutes
    _command(console, f"audit {city} {out} --adversaries {','.join(adversaries)} --seeds 1 --no-naturalness")
    asked = audit.Request(city, out, adversaries, seeds=1, naturalness=False)
    with bar(audit.work(asked)) as report:
        audit_text.audited(console, str(out), audit.audit(asked, console.print, report))
    console.print(f"\nthe release: {out}    its private files, never to be released: {private}")


def _command(console: Console, text: str) -> None:
    console.print(f"\n[bold]$ ghostpoi {text}[/]", soft_wrap=True)
