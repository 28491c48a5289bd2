"""A progress bar that estimates the time left, silent unless stdout is a terminal; and the log, quiet unless wanted.

A program that runs a command can name a file in GHOSTPOI_PROGRESS, which then holds the progress as JSON. The log of
the package, `logging.getLogger("ghostpoi")`, says which step does what: never a value of a file, nor a seed.
"""

import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

TO_FILE = "GHOSTPOI_PROGRESS"
OFTEN = 0.3  # seconds between two states of the file

Say = Callable[[str], None]  # prints one message
Report = Callable[[str, float], None]  # label of the current work, units of work just finished

LOG = logging.getLogger("ghostpoi")
LOG.addHandler(logging.NullHandler())  # a program that wants to see it adds its own
COUNTED = re.compile(r"[\d,.]+")
BEFORE = "already done"  # label for work that an earlier run finished: it moves the bar but does not count as speed


def no_report(label: str, units: float) -> None:
    """Ignore progress."""


def logged(report: Report) -> Report:
    """Let the log say, too, when another kind of work begins."""
    last = ""

    def both(label: str, units: float) -> None:
        nonlocal last
        if (kind := COUNTED.sub("", label)) != last:
            last = kind
            LOG.info("%s", label)
        report(label, units)

    return both


@contextmanager
def timed(step: str) -> Iterator[None]:
    """Log when a step begins, and how long it took."""
    LOG.info("%s begins", step, extra={"step": step})
    begin = time.monotonic()
    try:
        yield
    except BaseException:
        LOG.info("%s ended early", step, extra={"step": step, "seconds": round(time.monotonic() - begin, 3)})
        raise
    LOG.info("%s is done", step, extra={"step": step, "seconds": round(time.monotonic() - begin, 3)})


@dataclass
class Pace:
    """Estimates the time left from the mean speed of the whole run. Victims that stop early finish in jumps.

    The clock starts when the first piece of work is finished, because preparation comes before it.
    """

    total: float
    done: float = 0.0
    untimed: float = 0.0  # part of `done` from before the clock started or from an earlier run
    started: float | None = None

    def report(self, label: str, units: float, now: float) -> None:
        """Record finished units of work."""
        self.done += units
        if label == BEFORE:
            self.untimed += units
        elif units and self.started is None:
            self.started, self.untimed = now, self.done

    def left(self, now: float) -> str:
        """Return the estimated time left as text, "-:--:--" while it is unknown."""
        timed = self.done - self.untimed
        if self.started is None or timed <= 0:
            return "-:--:--"
        return str(timedelta(seconds=round((now - self.started) * max(self.total - self.done, 0.0) / timed)))


NEARLY = 0.99  # of all units: more is shown only when all is done


@dataclass
class Whole:
    """Reports work whose amount is an estimate: it never shows 100% before the end, and always at the end."""

    report: Report  # to a bar that is full at `total`
    total: float
    expected: float  # units of work
    done: float = 0.0

    def __call__(self, label: str, units: float) -> None:
        """Report finished units, as far as they fit."""
        fits = max(0.0, min(units * self.total / self.expected, NEARLY * self.total - self.done))
        self.done += fits
        self.report(label, fits)

    def finish(self) -> None:
        """Report that all is done."""
        self.report("done", self.total - self.done)
        self.done = self.total


@contextmanager
def bar(total: float) -> Iterator[Report]:
    """Show a bar of `total` units; yield the function that moves it."""
    if place := os.environ.get(TO_FILE):
        yield _in_file(Path(place), total)
        return
    if not sys.stdout.isatty():
        yield no_report
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
    from rich.text import Text

    pace = Pace(total)

    class TimeLeft(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(pace.left(time.monotonic()), style="cyan")

    share, elapsed = "{task.percentage:3.0f}%", TimeElapsedColumn()
    columns = ("{task.description:36}", BarColumn(), share, elapsed, "about", TimeLeft(), "left")
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total)

        def report(label: str, units: float) -> None:
            pace.report(label, units, time.monotonic())
            progress.update(task, description=label, advance=units)

        yield report


def _in_file(place: Path, total: float) -> Report:
    """Return the function that keeps a file up to date: the share that is done, the label and the time left."""
    pace, written = Pace(total), -OFTEN

    def report(label: str, units: float) -> None:
        nonlocal written
        now = time.monotonic()
        pace.report(label, units, now)
        if now - written < OFTEN:
            return
        written, share = now, min(1.0, pace.done / total)
        new = place.with_name(f"{place.name}.new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            json.dump({"share": share, "label": label, "left": pace.left(now)}, out)
        os.replace(new, place)

    return report
