"""A progress bar with the time left on a terminal, and silence elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

Say = Callable[[str], None]  # prints one sentence
Report = Callable[[str, float], None]  # what is being done, and the units of work just done

BEFORE = "found done"  # the label of work that an earlier run did: it moves the bar and tells nothing of the pace


def no_report(label: str, units: float) -> None:
    """Report to nobody."""


@dataclass
class Pace:
    """The time left, at the pace of all work so far: victims that stop early come in leaps."""

    total: float
    done: float = 0.0
    before: float = 0.0  # done when the clock began: what was found done, and the first piece of work
    begun: float | None = None  # when the first piece of work was done; what comes before it is preparation

    def report(self, label: str, units: float, now: float) -> None:
        """So much was just done."""
        self.done += units
        if label == BEFORE:
            self.before += units
        elif units and self.begun is None:
            self.begun, self.before = now, self.done

    def left(self, now: float) -> str:
        """How long the rest takes, as far as can be told."""
        worked = self.done - self.before
        if self.begun is None or worked <= 0:
            return "-:--:--"
        return str(timedelta(seconds=round((now - self.begun) * max(self.total - self.done, 0.0) / worked)))


@contextmanager
def bar(total: float) -> Iterator[Callable[[str, float], None]]:
    """A function (label, units just done) that moves the bar."""
    if not sys.stdout.isatty():
        yield lambda label, units: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    pace = Pace(total)

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(pace.left(time.monotonic()), style="cyan")

    columns = (
        TextColumn("{task.description:36}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left, about"),
        Left(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total)

        def report(label: str, units: float) -> None:
            pace.report(label, units, time.monotonic())
            progress.update(task, description=label, advance=units)

        yield report
