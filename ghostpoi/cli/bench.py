"""`ghostpoi bench`: speed as ratios, each measured within one run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ghostpoi.cli.options import add, say, show

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(no_args_is_help=True, help="Measure speed, as ratios within one run.")


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


for command in (prepare, scoring, training, protect, growth, busy):
    add(app, command, "bench")


def _print(console: "Console", measures: dict[str, Any]) -> None:
    for name, value in measures.items():
        text = f"{value:,.3f}" if isinstance(value, float) else f"{value}"
        console.print(f"{name:28} {text}", markup=False, emoji=False, soft_wrap=True)
