"""`ghostpoi bench`: speed as ratios, each measured within one run."""

from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghostpoi.cli.output import say, show
from ghostpoi.errors import InputError
from ghostpoi.files import replacing

if TYPE_CHECKING:
    from rich.console import Console


def prepare(json: bool = False, rows: int = 5_000_000, pois: int = 1_000_000) -> None:
    """Compare reading, filtering, segmenting and candidate search with plain polars."""
    from ghostpoi.bench.prepare import run

    show(run(rows, pois, say), json, _print)


def scoring(json: bool = False, data: Path | None = None, share: float = 1.0) -> None:
    """Compare a scoring pass with its brute-force definition and with the peak of matrix products."""
    from ghostpoi.bench.data import load
    from ghostpoi.bench.models import scoring as run

    show(run(load(data), share, say), json, _print)


def training(json: bool = False, data: Path | None = None, share: float = 0.25, epochs: int = 3) -> None:
    """Compare a packed epoch with a plain padded one."""
    from ghostpoi.bench.data import load
    from ghostpoi.bench.models import training as run

    show(run(load(data), share, epochs, say), json, _print)


def protect(json: bool = False, data: Path | None = None, method: str = "ghost", device: str = "cpu") -> None:
    """Time `protect` on the training split under the paper's settings, including the trajectory LM."""
    from ghostpoi.bench.data import load
    from ghostpoi.bench.publishing import protect as run
    from ghostpoi.models.devices import device as find_device

    show(run(load(data), method, find_device(device), say), json, _print)


def growth(json: bool = False, sessions: int = 2000, device: str = "cpu") -> None:
    """Time an epoch and a scoring pass on synthetic cities of growing size."""
    from ghostpoi.bench.publishing import growth as run
    from ghostpoi.models.devices import device as find_device

    show(run(sessions, find_device(device), say), json, _print)


def busy(json: bool = False, users: int = 300, others: int = 2, method: str = "ghost") -> None:
    """Time `protect` on a synthetic city alone and beside busy processes."""
    from ghostpoi.bench.busy import busy as run

    show(run(users, others, method, say), json, _print)


def estimate(json: bool = False, users: int = 300) -> None:
    """Compare the time that `protect --dry-run` expects with that of `protect`, for the default and GHOST."""
    from ghostpoi.bench.estimate import estimate as run

    show(run(users, say), json, _print)


def scale(
    json: bool = False, rows: list[int] | None = None, workers: int = 2, ghost: int = 1, folder: Path | None = None,
    output: Path | None = None,
) -> None:  # fmt: skip
    """Time `protect` and `verify` region by region on growing synthetic worlds, compared with plain polars."""
    from ghostpoi.bench.scale import SIZES
    from ghostpoi.bench.scale import scale as run

    if output is not None and not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; create it first")
    found = run(rows or SIZES, workers, ghost, folder, say)
    if output is not None:
        with replacing(output) as out:
            out.write(f"{dumps(found, indent=1)}\n".encode())
    show(found, json, _print_scale)


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
