"""`python -m benchmarks NAME [--json]`: speed, as ratios within one run, and what a row passes through."""

import sys
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ghostpoi.cli.output import say, show
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.plugins import missing

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Measure speed, as ratios."
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Data = Annotated[Path | None, typer.Option(help="Prepared data. Default: NYC if present, otherwise synthetic.")]
Users = Annotated[int, typer.Option(min=30, help="People of the synthetic city.")]
Share = Annotated[float, typer.Option(min=0, max=1, help="Share of the sessions to measure.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Method = Annotated[str, typer.Option(help="The method.")]


@app.command()
def prepare(
    json: Json = False,
    rows: Annotated[int, typer.Option(help="Check-ins of the synthetic table.")] = 5_000_000,
    pois: Annotated[int, typer.Option(help="Venues to find candidates for.")] = 1_000_000,
) -> None:
    """Compare reading, filtering, segmenting and candidate search with plain polars."""
    from benchmarks.files import prepare

    show(prepare(rows, pois, say), json, _print)


@app.command()
def scoring(json: Json = False, data: Data = None, share: Share = 1.0) -> None:
    """Compare a scoring pass with its brute-force definition and with the peak of matrix products."""
    from benchmarks.models import load, scoring

    show(scoring(load(data), share, say), json, _print)


@app.command()
def training(
    json: Json = False,
    data: Data = None,
    share: Share = 0.25,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs per variant.")] = 3,
) -> None:
    """Compare a packed epoch with a plain padded one."""
    from benchmarks.models import load, training

    show(training(load(data), share, epochs, say), json, _print)


@app.command()
def protect(json: Json = False, data: Data = None, method: Method = "ghost", device: Device = "cpu") -> None:
    """Time `protect` on the training split under the paper's settings, including the trajectory LM."""
    from benchmarks.models import load, protect
    from ghostpoi.models.devices import device as find_device

    show(protect(load(data), method, find_device(device), say), json, _print)


@app.command()
def growth(
    json: Json = False,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions to measure per city.")] = 2000,
    device: Device = "cpu",
) -> None:
    """Time an epoch and a scoring pass on synthetic cities of growing size."""
    from benchmarks.models import growth
    from ghostpoi.models.devices import device as find_device

    show(growth(sessions, find_device(device), say), json, _print)


@app.command()
def busy(
    json: Json = False,
    users: Users = 300,
    others: Annotated[int, typer.Option(min=1, help="Busy processes next to it.")] = 2,
    method: Method = "ghost",
) -> None:
    """Time `protect` on a synthetic city alone and next to busy processes."""
    from benchmarks.files import busy

    show(busy(users, others, method, say), json, _print)


@app.command()
def estimate(json: Json = False, users: Users = 300) -> None:
    """Compare the time that `protect --dry-run` expects with that of `protect`, for the default and GHOST."""
    from benchmarks.files import estimate

    show(estimate(users, say), json, _print)


@app.command()
def trace(json: Json = False, users: Users = 40) -> None:
    """Count the files and functions that a row of a CSV file passes through in `protect`, and how often it is read."""
    from benchmarks.trace import trace

    show(trace(users, say), json, _print)


@app.command()
def scale(
    json: Json = False,
    rows: Annotated[
        list[int] | None,
        typer.Option(
            min=1000,
            help="Check-ins of a synthetic world, one city per 100,000; repeatable. Default: 300,000 and 1,000,000.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(min=1, help="Processes that Dask starts; polars gets as many threads. One process without Dask."),
    ] = 2,
    ghost: Annotated[
        int,
        typer.Option(
            min=0,
            help="Cities to protect with GHOST on the CPU, the smallest first; its time for all others is "
            "extrapolated. 0: none.",
        ),
    ] = 1,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where to make the worlds and keep them for the next time. Default: a temporary folder."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="JSON", help="A file to write the result to.")
    ] = None,
) -> None:
    """Time `protect` and `verify` region by region on growing synthetic worlds, compared with plain polars."""
    from benchmarks.scale import SIZES
    from benchmarks.scale import scale as run

    if output is not None and not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; create it first")
    found = run(rows or SIZES, workers, ghost, folder, say)
    if output is not None:
        with replacing(output) as out:
            out.write(f"{dumps(found, indent=1)}\n".encode())
    show(found, json, _print_scale)


@app.command()
def database(
    url: Annotated[str, typer.Argument(metavar="URL", help="postgresql://USER@HOST/DATABASE; a table is made there.")],
    json: Json = False,
    rows: Annotated[int, typer.Option(min=1000, help="Check-ins of a synthetic world.")] = 1_000_000,
    folder: Annotated[
        Path | None, typer.Option(help="Where to make the world and keep it. Default: a temporary folder.")
    ] = None,
) -> None:
    """Time `protect` on a table of PostgreSQL, compared with a Parquet file of the same rows."""
    from benchmarks.databases import database as run

    show(run(rows, url, folder, say), json, _print)


@app.command()
def columns(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the files of the two cities are.")],
    json: Json = False,
    rows: Annotated[int, typer.Option(min=5000, help="Check-ins of each city, of random users.")] = 60_000,
    seed: Annotated[int, typer.Option(help="Of the columns.")] = 1,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="JSON", help="A file to write the result to.")
    ] = None,
) -> None:
    """Add 100 leaky and 100 harmless columns to two real cities, and count what `protect` refuses."""
    from benchmarks.columns import columns as run

    found = run(folder, rows, seed, say)
    if output is not None:
        with replacing(output) as out:
            out.write(f"{dumps(found, indent=1)}\n".encode())
    show(found, json, _print)


def main() -> None:
    """Run a benchmark; bad input gives one sentence and exit code 2."""
    try:
        app(prog_name="python -m benchmarks")
    except InputError as e:
        say(f"benchmarks: {e}")
        sys.exit(e.code)
    except ModuleNotFoundError as e:
        if not (sentence := missing(e.name or "")):
            raise
        say(f"benchmarks: {sentence}")
        sys.exit(2)


def _print(console: "Console", measures: dict[str, Any]) -> None:
    for name, value in measures.items():
        text = f"{value:,.3f}" if isinstance(value, float) else f"{value}"
        console.print(f"{name:28} {text}", markup=False, emoji=False, soft_wrap=True)


def _print_scale(console: "Console", found: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    columns = "rows,regions,polars,protect,rows/s,x polars,memory,verify,memory,GHOST (extrapolated)"
    for column in columns.split(","):
        table.add_column(column, justify="right")
    sample = found["ghost"]
    for number, one in enumerate(found["sizes"]):
        protect, verify = one["protect"], one["verify"]
        table.add_row(
            f"{one['rows']:,}", f"{one['regions']:,}", f"{one['polars']['seconds']:,.1f} s",
            f"{protect['seconds']:,.1f} s", f"{one['rows_per_second']:,.0f}", f"{one['ratio']:.1f}",
            f"{protect['peak_bytes'] / 1e9:.2f} GB", f"{verify['seconds']:,.1f} s",
            f"{verify['peak_bytes'] / 1e9:.2f} GB",
            f"{sample['extrapolated'][number]['seconds'] / 3600:,.1f} h" if sample else "",
        )  # fmt: skip
    tell = partial(console.print, markup=False, emoji=False, soft_wrap=True)
    tell(table)
    if found["growth"] is not None:
        tell(f"Time per row at the largest size: {found['growth']:.2f} times that at {found['growth_from']:,} rows.")
    if sample:
        tell(
            f"GHOST ran on {sample['regions']:,} of {sample['of_regions']:,} regions, with {sample['rows']:,} rows, on "
            f"the CPU: {sample['seconds_per_row'] * 1000:,.2f} ms per row. All else of it is extrapolated."
        )
    tell(f"Engine: {found['engine']}, workers: {found['workers']}. Memory: resident peak of {found['peak_is']}.")


if __name__ == "__main__":
    main()
