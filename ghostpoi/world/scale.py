"""How a dataset is divided and where its tasks run; stages, and the progress that they report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.progress import Report
from ghostpoi.settings import RegionSettings
from ghostpoi.world.engine import Engine, Failure
from ghostpoi.world.job import Job

SHARES = {  # of the time that a command takes
    "reading": 0.14, "joining venues": 0.01, "dividing": 0.14, "finding journeys": 0.01,
    "testing columns": 0.05, "protecting": 0.5, "writing": 0.15, "comparing": 0.55, "describing": 0.7,
    "auditing": 0.5, "auditing controls": 0.05,
    "trying": 0.35, "trying the best": 0.25, "trying controls": 0.05,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How a dataset is divided, and where its tasks run."""

    settings: RegionSettings
    region_column: str = ""
    engine: str = "local"
    device: str = "auto"  # where models run: each worker chooses for itself
    workers: int = 0
    scheduler: str = ""
    memory: int | None = None


@dataclass(frozen=True)
class Stages:
    """Runs stages and reports their progress as shares of the whole work."""

    engine: Engine
    report: Report
    scale: Scale

    def regions(
        self, label: str, task: Callable[..., Any], job: Job, numbers: Sequence[int] | None = None, *more: object,
        on_gpu: bool = False,
    ) -> dict[int, Any]:  # fmt: skip
        """Run a task for regions, by default for all, and return the results; refuse to go on if one failed."""
        numbers = range(len(job.regions)) if numbers is None else numbers
        if job.file:  # its only region is here: nothing is to be handed out
            return {number: task(job, number, *more) for number in numbers}
        sizes = [job.regions[number].rows for number in numbers]
        found, failed = self.run(label, task, job, numbers, *more, on_gpu=on_gpu, sizes=sizes)
        done_all((found, failed), job.name_of)
        return {number: found[number] for number in numbers}

    def run(
        self, label: str, task: Callable[..., Any], job: Job, numbers: Sequence[int], *more: object,
        on_gpu: bool = False, sizes: Sequence[int] = (), goes_on: bool = False,
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        count, rows, size = 0, 0, dict(zip(numbers, sizes, strict=True)) if sizes else dict.fromkeys(numbers, 1)
        total = sum(size.values()) or 1

        def text() -> str:
            counted = f"{count:,} of {len(numbers):,}"
            return f"{label} {counted} regions, {rows:,} of {total:,} rows" if sizes else f"{label} {counted}"

        def done(number: int) -> None:
            nonlocal count, rows
            count, rows = count + 1, rows + size[number]
            self.report(text(), SHARES[label] * size[number] / total)

        self.report(text(), 0)
        return self.engine.run(task, job, numbers, done, *more, on_gpu=on_gpu, goes_on=goes_on)


class TaskFailed(InputError):
    """A task failed though its input can be used, for example for lack of memory."""


def done_all(found: tuple[dict[int, Any], list[Failure]], named: Callable[[int], str]) -> None:
    """Refuse to go on if a task failed: its input cannot be used, or what has this name does not fit."""
    for failure in sorted(found[1], key=lambda one: not one.refused):
        if failure.refused:
            raise InputError(failure.why)
        raise TaskFailed(f"{named(failure.number)}: {failure.why}")
