"""`ghostpoi study`: run studies, print their tables, draw their figures."""

from pathlib import Path

from ghostpoi.cli.output import say, tell


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

    studies = [plan.load(name) for name in names]
    prepared, where = load(data), find_device(device)
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
    from ghostpoi.study.day_map import draw_map
    from ghostpoi.study.results import Results

    if name == "map":
        paths = draw_map(output, say, data)
    else:
        paths = figures.draw(Results.read(results, name, protocol, city), folder=output)
    for path in paths:
        tell(path)
