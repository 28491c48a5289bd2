"""`ghostpoi study`: run studies, print their tables, draw their figures, write the result pages."""

from pathlib import Path
from typing import Annotated

import typer

from ghostpoi.cli.options import Device, Protocol, say

app = typer.Typer(no_args_is_help=True, help="Reproduce the paper's tables and figures, or run a study of your own.")
Study = Annotated[str, typer.Argument(help="The name of a study (see `study list`), or a TOML file.")]
Results = Annotated[Path, typer.Option(help="The folder of results.")]
Data = Annotated[Path, typer.Option("--data", help="The file that `ghostpoi prepare` wrote.")]


@app.command("list")
def list_studies() -> None:
    """List the studies that come with ghostpoi."""
    from ghostpoi.study import plan

    for name in plan.names():
        study = plan.load(name)
        print(f"{name:17} {study.title}; {len(study.methods)} methods, {len(study.adversaries)} adversaries")


@app.command("run")
def run(
    names: Annotated[list[str], typer.Argument(help="Names of studies (see `study list`), or TOML files.")],
    data: Data,
    protocol: Protocol = "strong",
    device: Device = "auto",
    results: Results = Path("results"),
    victims: Annotated[
        bool, typer.Option(help="--no-victims only makes releases and restorations, for a later run to train on.")
    ] = True,
    show_tables: Annotated[bool, typer.Option("--tables", help="Print the tables at the end.")] = False,
) -> None:
    """Measure the missing cells of studies. Call it again to resume after an interruption."""
    from ghostpoi.data.prepared import load
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.study import plan
    from ghostpoi.study.run import Runner

    studies = [plan.load(name) for name in names]
    prepared, where = load(data), find_device(device)
    for study in studies:
        path = Runner(study, protocol, prepared, where, results, say).run(victims)
        say(f"{study.name}: cells in {path}")
    for name in names if show_tables else ():
        tables(name, results, protocol)


@app.command("calibrate")
def calibrate(
    data: Data,
    protocol: Protocol = "paper",
    device: Device = "auto",
    results: Results = Path("results"),
    seeds: Annotated[int, typer.Option(min=1, help="Clean victims to train.")] = 3,
    trials: Annotated[int, typer.Option(min=1, help="TS-UE releases to make.")] = 7,
) -> None:
    """Measure what the paper leaves open, from the clean model and TS-UE's substitution rate. Changes no setting."""
    from ghostpoi.data.prepared import load
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.study import calibrate
    from ghostpoi.study.run import commit, hardware
    from ghostpoi.study.store import write_json

    prepared, where = load(data), find_device(device)
    found = {
        "protocol": protocol,
        "data": prepared.name,
        "hardware": hardware(where),
        "commit": commit(),
        "clean": calibrate.clean_epochs(prepared, protocol, where, seeds, say),
        "ts-ue": calibrate.reach(prepared, protocol, where, trials, say),
    }
    write_json(results / f"calibration-{protocol}.json", found)


@app.command("tables")
def tables(
    name: Study,
    results: Results = Path("results"),
    protocol: Annotated[str, typer.Option(help="strong, paper or both.")] = "strong",
    latex: Annotated[bool, typer.Option("--latex", help="LaTeX instead of Markdown.")] = False,
) -> None:
    """Print the tables of a study, with the paper's printed numbers where it has any."""
    from ghostpoi.study.results import PROTOCOLS
    from ghostpoi.study.results import Results as StudyResults
    from ghostpoi.study.tables import tables

    found = [StudyResults.read(results, name, p) for p in (PROTOCOLS if protocol == "both" else (protocol,))]
    for one in found:
        if not one.cells:
            say(f"no results of {name} under {one.protocol} in {results}; make them with ghostpoi study run {name}")
    for table in tables(found):
        print(table.latex() if latex else table.markdown())


@app.command("figures")
def figures(
    name: Annotated[str, typer.Argument(help="main, rounds, leak, adaptive or crowds; or map: one day on a map.")],
    results: Results = Path("results"),
    protocol: Protocol = "strong",
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("figures"),
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Prepared data for the map, which shows clean venues. Default: synthetic."),
    ] = None,
) -> None:
    """Draw the figures of a study as PNG and SVG."""
    from ghostpoi.study import figures
    from ghostpoi.study.day_map import draw_map
    from ghostpoi.study.results import Results as StudyResults

    if name == "map":
        paths = draw_map(output, say, data)
    else:
        paths = figures.draw(StudyResults.read(results, name, protocol), folder=output)
    for path in paths:
        print(path)


@app.command("page")
def page(
    output: Annotated[Path, typer.Option("-o", "--output", help="The Markdown file to write.")],
    name: Annotated[
        str, typer.Argument(help="reproduction: the paper's claims. adaptive: adversaries that know the rule.")
    ] = "reproduction",
    results: Results = Path("results"),
    folder: Annotated[
        Path | None, typer.Option("--figures", help="The folder of its figures. Default: figures beside the page.")
    ] = None,
) -> None:
    """Write a result page from its template. Fails if a claim contradicts the results."""
    from ghostpoi.study import pages

    print(pages.write(name, results, output, folder, say))
