"""`ghostpoi series`: what a series of releases holds, and whether it is whole."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ghostpoi.cli import terminal_output
from ghostpoi.cli.options import add, show

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(no_args_is_help=True, help="Look into a series of releases, made with protect --series.")


def show_series(folder: Path, json: bool = False) -> None:
    """List the releases of a series: what was released when, and what its crowds hold."""
    from ghostpoi.publish.series_overview import describe

    show(describe(folder), json, _described, folder)


def verify(folder: Path, json: bool = False) -> None:
    """Check that a series folder is whole and agrees with its releases; exit code 1 if a check fails."""
    from ghostpoi.publish.series_overview import verify_series

    checks = verify_series(folder)
    details = [{"check": check.name, "passed": check.passed, "detail": check.detail} for check in checks]
    passed = all(check.passed for check in checks)
    show({"passed": passed, "checks": details}, json, terminal_output.verification)
    if not passed:
        raise typer.Exit(1)


add(app, show_series, "series", "show")
add(app, verify, "series")


def _described(console: "Console", folder: Path, found: dict[str, Any]) -> None:
    from rich.table import Table

    console.print(
        f"{folder}: a series of {found['method']} since {found['created'][:10]}; {found['rows']:,} rows released; "
        f"{found['venues']:,} venues in {found['crowds']:,} crowds, {found['guests']:,} of them guests, "
        f"{found['without_crowd']:,} without a crowd",
        markup=False, emoji=False, soft_wrap=True,
    )  # fmt: skip
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("release", "status", "from", "to", "rows", "repeated", "new venues", "place"):
        table.add_column(name, justify="right" if name in ("rows", "repeated", "new venues") else "left")
    for one in found["releases"]:
        first, last = (f"{datetime.fromtimestamp(one[name], UTC):%Y-%m-%d}" for name in ("first", "last"))
        counts = (f"{one[name]:,}" for name in ("rows", "repeated", "new_venues"))
        table.add_row(str(one["number"]), one["status"], first, last, *counts, one["release"])
    console.print(table, markup=False, emoji=False)
