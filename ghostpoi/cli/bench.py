"""`ghostpoi bench`: speed as ratios, each measured within one run."""

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
    """Compare reading, filtering, segmenting and candidate search with plain polars."""
    from ghostpoi.bench import prepare

    _print(prepare.run(rows, pois, say), json)


Data = Annotated[Path | None, typer.Option("--data", help="Prepared data. Default: NYC if present, else synthetic.")]


@app.command("scoring")
def bench_scoring(
    json: Json = False,
    data: Data = None,
    share: Annotated[float, typer.Option(help="Share of the sessions to score.", min=0, max=1)] = 1.0,
) -> None:
    """Compare a scoring pass with its brute-force definition and with the peak of matrix products."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import scoring

    _print(scoring.run(bench_data.load(data), share, say), json)


@app.command("training")
def bench_training(
    json: Json = False,
    data: Data = None,
    share: Annotated[float, typer.Option(help="Share of the sessions to train on.", min=0, max=1)] = 0.25,
    epochs: Annotated[int, typer.Option(help="Epochs per variant.", min=1)] = 3,
) -> None:
    """Compare a packed epoch with a plain padded one."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import training

    _print(training.run(bench_data.load(data), share, epochs, say), json)


@app.command("protect")
def bench_protect(
    json: Json = False,
    data: Data = None,
    method: Annotated[str, typer.Option(help="The method.")] = "ghost",
    device: Device = "cpu",
) -> None:
    """Time `protect` on the training split under the paper's settings, including the trajectory LM."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import protect
    from ghostpoi.models.devices import device as find_device

    _print(protect.run(bench_data.load(data), method, find_device(device), say), json)


@app.command("growth")
def bench_growth(
    json: Json = False,
    sessions: Annotated[int, typer.Option(help="Sessions to measure per city.", min=1)] = 2000,
    device: Device = "cpu",
) -> None:
    """Time an epoch and a scoring pass on synthetic cities of growing size."""
    from ghostpoi.bench import growth
    from ghostpoi.models.devices import device as find_device

    _print(growth.run(sessions, find_device(device), say), json)


def _print(measures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(measures)
        return
    for name, value in measures.items():
        print(f"{name:28} {value:,.3f}" if isinstance(value, float) else f"{name:28} {value}")
