"""A progress bar with the time left on a terminal, and silence elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

BEFORE = "found done"  # the label of work that an earlier run did: it moves the bar and tells nothing of the pace


@contextmanager
def bar(total: float) -> Iterator[Callable[[str, float], None]]:
    """A function (label, units just done) that moves the bar."""
    if not sys.stdout.isatty():
        yield lambda label, units: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """At the pace of the whole run: victims that stop early come in leaps, and rich looks at the last one."""

        def render(self, task: Task) -> Text:
            return Text(left(task.elapsed or 0.0, task.completed, task.fields["before"], total), style="cyan")

    columns = (
        TextColumn("{task.description:36}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left, about"),
        Left(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task, before = progress.add_task("reading", total=total, before=0.0), 0.0

        def report(label: str, units: float) -> None:
            nonlocal before
            before += units if label == BEFORE else 0.0
            progress.update(task, description=label, advance=units, before=before)

        yield report


def left(elapsed: float, done: float, before: float, total: float) -> str:
    """How long the rest takes if it goes on as it went since the start, where `before` was done by then."""
    worked = done - before
    return str(timedelta(seconds=round(elapsed * max(total - done, 0.0) / worked))) if worked > 0 else "-:--:--"
