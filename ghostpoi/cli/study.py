"""`ghostpoi study`: run studies, print tables, draw figures. `ghostpoi demo`: a publisher's commands, one by one."""

from pathlib import Path
from typing import Any

from ghostpoi.cli import commands
from ghostpoi.cli.output import console, say, tell
from ghostpoi.errors import InputError
from ghostpoi.files import make_folder
from ghostpoi.options import command_line, declared, option
from ghostpoi.plugins import need


def list_studies() -> None:
    """List the studies that come with ghostpoi."""
    from ghostpoi.study import plan

    for name, study in {name: plan.load(name) for name in plan.names()}.items():
        tell(f"{name:17} {study.title}; {len(study.methods)} methods, {len(study.adversaries)} adversaries")


def run(
    names: list[str], data: Path, protocol: str, device: str, results: Path, workers: int, victims: bool,
    show_tables: bool,
) -> None:  # fmt: skip
    """Measure the missing cells of studies. Call it again to resume after an interruption."""
    from ghostpoi.data.prepared import load
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.study import plan
    from ghostpoi.study.run import Runner, run_all

    prepared, where = load(data), find_device(device)
    studies = [plan.load(name).on(prepared.name) for name in names]
    runners = [Runner(study, protocol, prepared, where, results, say) for study in studies]
    for study, path in zip(studies, run_all(runners, victims, workers), strict=True):
        say(f"{study.name}: cells in {path}")
    for name in names if show_tables else ():
        tables(name, results, protocol, latex=False, city=prepared.name)


def reproduce(data: list[Path], device: str, results: Path, workers: int) -> None:
    """Make every cell of the reproduction: all studies of the paper, both protocols, each data set. Resumes."""
    from ghostpoi.data.prepared import load
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.study.run import reproduce

    for path in reproduce([load(one) for one in data], find_device(device), results, workers, say):
        tell(path)


def tables(name: str, results: Path, protocol: str, latex: bool, city: str | None) -> None:
    """Print the tables of a study, with the paper's printed numbers where it has any."""
    from ghostpoi.study.plan import PROTOCOLS
    from ghostpoi.study.results import Results
    from ghostpoi.study.tables import tables

    found = [Results.read(results, name, p, city) for p in (PROTOCOLS if protocol == "both" else (protocol,))]
    for one in found:
        if not one.cells:
            where = f"{results}{f' on {city}' if city else ''}"
            say(f"no results of {name} under {one.protocol} in {where}; make them with ghostpoi study run {name}")
    for table in tables(found):
        print(table.latex() if latex else table.markdown())


def figures(
    name: str, results: Path, protocol: str, output: Path, data: Path | None, city: str | None
) -> None:  # fmt: skip
    """Draw the figures of a study as PNG and SVG."""
    from ghostpoi.study import figures
    from ghostpoi.study.results import Results

    if name == "map":
        paths = figures.draw_map(output, say, data)
    else:
        paths = figures.draw(Results.read(results, name, protocol, city), folder=output)
    for path in paths:
        tell(path)


USERS, POIS, DAYS, SEED = 400, 1200, 100, 7
RELEASE_SEED = 0x64656D6F_67686F73_74706F69_31333337  # so that the demonstration prints the same every time
OTHERS = ("ghost", "random")  # next to the default: the paper's method, the control
VICTIM = "markov"  # on this city it learns more than a Transformer, in no time and the same on every machine
CPU = {"device": "cpu"}  # what the commands get without saying so


def demo(output: Path, quick: bool) -> None:
    """Show what ghostpoi does on a synthetic city, without any data or network."""
    if not quick:
        need("models")
    try:
        make_folder(output)
    except OSError as e:
        where = option("output", output)
        raise InputError(f"{where}: the folder cannot be created ({e.strerror}); choose another") from None
    city, out, private = output / "city.txt", output / "release", output / "release.private"
    others = [output / f"release-{method}" for method in OTHERS]
    release: dict[str, Any] = {"seed": RELEASE_SEED}
    again = CPU | {"force": True}

    _run("synth", output=city, users=USERS, pois=POIS, days=DAYS, seed=SEED)
    _run("inspect", file=city)
    _run("protect", again, file=city, output=out, **release)
    _run("verify", release=out, against=city)
    if quick:
        return _report(out, [])
    # The full default set with one seed and without naturalness, which is fast. The audits share a cache.
    fast: dict[str, Any] = {"victim": VICTIM, "seeds": 1, "naturalness": False, "cache": private / "audit"}
    _run("audit", CPU, file=city, release=out, **fast)
    for method, other in zip(OTHERS, others, strict=True):
        _run("protect", again, file=city, output=other, method=method, **release)
    for other in others[:1]:  # the random release is a control in both audits
        _run("audit", CPU, file=city, release=other, **fast)
    _run("report", release=out, compare=others, private=private, with_clean=True)
    tell("This page shows clean data next to the release, for the publisher only.")
    _report(out, others)


def _report(out: Path, others: list[Path]) -> None:
    _run("report", release=out, compare=others)
    tell("")
    tell(f"open this page in a browser: {out / 'report.html'}")


def _run(command: str, silent: dict[str, Any] | None = None, **shown: Any) -> None:
    """Print a command and run it; `silent` are options that are not printed."""
    from rich.markup import escape

    arguments = [name for name, one in declared()[command].items() if one.argument and name in shown]
    options = {name: value for name, value in shown.items() if name not in arguments}
    words = command_line(command, [str(shown[name]) for name in arguments], options)
    console().print(f"\n[bold]$ {escape(words)}[/]", soft_wrap=True)
    getattr(commands, command)(**(commands.defaults(command) | shown | (silent or {})))
