"""`ghostpoi study`: run studies, print their tables, draw their figures, write the result pages."""

from pathlib import Path
from typing import Annotated

import typer

from ghostpoi.cli.options import Device, Protocol, say

app = typer.Typer(no_args_is_help=True, help="Reproduce the paper's tables and figures, or run a study of your own.")
Study = Annotated[str, typer.Argument(help="A study's name (see study list), or a TOML file.")]
Results = Annotated[Path, typer.Option(help="The folder of results.")]
Prepared = Annotated[Path, typer.Option("--data", help="What ghostpoi prepare wrote.")]


@app.command("list")
def study_list() -> None:
    """The studies that come with ghostpoi."""
    from ghostpoi.study import plan

    for name in plan.names():
        study = plan.load(name)
        print(f"{name:10} {study.title}; {len(study.methods)} methods, {len(study.adversaries)} adversaries")


@app.command("run")
def study_run(
    names: Annotated[list[str], typer.Argument(help="Names of studies (see study list), or TOML files.")],
    data: Prepared,
    protocol: Protocol = "strong",
    device: Device = "auto",
    results: Results = Path("results"),
    victims: Annotated[
        bool, typer.Option(help="--no-victims: only make releases and restorations, for a later run to train on.")
    ] = True,
    show_tables: Annotated[
        bool, typer.Option("--tables", help="Print the tables at the end, as study tables does.")
    ] = False,
) -> None:
    """Make the cells of a study that are missing: one JSON each, all seeds in it."""
    from ghostpoi.data import prepared as dataset_file
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.study import plan, tables
    from ghostpoi.study.run import Runner

    studies = [plan.load(name) for name in names]
    for study in studies if show_tables else ():
        tables.require(study.name)
    prepared, where = dataset_file.load(data), find_device(device)
    for study in studies:
        folder = Runner(study, protocol, prepared, where, results, say).run(victims)
        say(f"{study.name}: cells in {folder}")
    for study in studies if show_tables else ():
        study_tables(study.name, results, protocol)


@app.command("calibrate")
def study_calibrate(
    data: Prepared,
    protocol: Protocol = "paper",
    device: Device = "auto",
    results: Results = Path("results"),
    seeds: Annotated[int, typer.Option(min=1, help="Clean victims to train.")] = 3,
    trials: Annotated[int, typer.Option(min=1, help="Releases of TS-UE to make.")] = 7,
) -> None:
    """Find what the paper leaves open, on the clean model and on TS-UE's substitution rate alone. Changes nothing."""
    from ghostpoi.data import prepared as dataset_file
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.study import calibrate
    from ghostpoi.study.run import commit, hardware, write_json

    prepared, where = dataset_file.load(data), find_device(device)
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
def study_tables(
    name: Annotated[str, typer.Argument(help="A study that comes with ghostpoi (see study list).")],
    results: Results = Path("results"),
    protocol: Protocol = "strong",
    latex: Annotated[bool, typer.Option("--latex", help="LaTeX instead of Markdown.")] = False,
) -> None:
    """Print the tables of a study, the paper's figure beside each of ours."""
    from ghostpoi.study.cells import Cells
    from ghostpoi.study.tables import tables

    cells = Cells.read(results, name, protocol)
    made = tables(cells)
    if not cells.about:
        say(f"there are no cells of {name} under {protocol} in {results} yet; make them with ghostpoi study run {name}")
    for table in made:
        print(table.latex() if latex else table.markdown())


@app.command("figures")
def study_figures(
    name: Annotated[
        str, typer.Argument(help="main, rounds, leak, adaptive or crowds; or map, one day clean and released.")
    ],
    results: Results = Path("results"),
    protocol: Protocol = "strong",
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("figures"),
    data: Annotated[
        Path | None,
        typer.Option("--data", help="For map: prepared data. The picture shows it clean; default: synthetic."),
    ] = None,
) -> None:
    """Draw the figures of a study as PNG and SVG."""
    from ghostpoi.study import figures
    from ghostpoi.study.cells import Cells

    if name == "map":
        paths = figures.MapRequest(data).draw(output, say)
    else:
        paths = figures.draw(Cells.read(results, name, protocol), output)
    for path in paths:
        print(path)


@app.command("page")
def study_page(
    output: Annotated[Path, typer.Option("-o", "--output", help="The Markdown file; figures go beside it.")],
    name: Annotated[
        str, typer.Argument(help="reproduction: all beside the paper's. adaptive: adversaries that know the rule.")
    ] = "reproduction",
    results: Results = Path("results"),
) -> None:
    """Write a page that holds the tables and figures of several studies, and what they say."""
    from ghostpoi.study import page

    print(page.make(name, results, output, say))
