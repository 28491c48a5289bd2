"""A progress bar with the time left on a terminal, and silence elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total: float) -> Iterator[Callable[[str, float], None]]:
    """A function (label, units just done) that moves the bar."""
    if not sys.stdout.isatty():
        yield lambda label, units: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:36}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total)

        def report(label: str, units: float) -> None:
            progress.update(task, description=label, advance=units)

        yield report
