"""`ghostpoi bench`: each command prints ratios that were measured in one run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ghostpoi.cli.options import Device, Json, print_json, say

app = typer.Typer(no_args_is_help=True, help="Measure speed, as ratios within one run.")


@app.command("prepare")
def bench_prepare(
    json: Json = False,
    rows: Annotated[int, typer.Option(help="Check-ins of the synthetic table.")] = 5_000_000,
    pois: Annotated[int, typer.Option(help="Venues to find candidates for.")] = 1_000_000,
) -> None:
    """Reading, filtering, segmenting and candidate search, against polars alone."""
    from ghostpoi.bench import prepare

    _print(prepare.run(rows, pois, say), json)


Data = Annotated[Path | None, typer.Option("--data", help="Prepared data. Default: NYC if present, else synthetic.")]


@app.command("scoring")
def bench_scoring(
    json: Json = False,
    data: Data = None,
    share: Annotated[float, typer.Option(help="Share of the sessions scored both ways.", min=0, max=1)] = 1.0,
) -> None:
    """One scoring pass against its brute-force definition and the matrix-product peak."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import models

    _print(models.scoring(bench_data.load(data), share, say), json)


@app.command("training")
def bench_training(
    json: Json = False,
    data: Data = None,
    share: Annotated[float, typer.Option(help="Share of the sessions trained on.", min=0, max=1)] = 0.25,
    epochs: Annotated[int, typer.Option(help="Epochs each way.", min=1)] = 3,
) -> None:
    """A packed epoch against the plain padded loop."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import models

    _print(models.training(bench_data.load(data), share, epochs, say), json)


@app.command("protect")
def bench_protect(
    json: Json = False,
    data: Data = None,
    method: Annotated[str, typer.Option(help="The method.")] = "ghost",
    device: Device = "cpu",
) -> None:
    """Protecting the training split under the paper's settings, the trajectory LM included."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import publishing
    from ghostpoi.models.devices import device as find_device

    _print(publishing.protect(bench_data.load(data), method, find_device(device), say), json)


@app.command("growth")
def bench_growth(
    json: Json = False,
    sessions: Annotated[int, typer.Option(help="Sessions measured of each city.", min=1)] = 2000,
    device: Device = "cpu",
) -> None:
    """An epoch and a scoring pass on synthetic cities of growing size."""
    from ghostpoi.bench import publishing
    from ghostpoi.models.devices import device as find_device

    _print(publishing.growth(sessions, find_device(device), say), json)


def _print(measures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(measures)
        return
    for name, value in measures.items():
        print(f"{name:28} {value:,.3f}" if isinstance(value, float) else f"{name:28} {value}")
