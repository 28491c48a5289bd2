"""How a dataset is divided, where its tasks run, how much memory they need, and the progress that they report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.formats.content import expanded_size
from ghostpoi.formats.source import Source, shown
from ghostpoi.options import option
from ghostpoi.progress import Report
from ghostpoi.regions.engine import Engine, Failure, OneProcess
from ghostpoi.regions.job import Job, Region
from ghostpoi.regions.pieces import PIECE_ROWS, Piece, is_parquet, parquet_rows
from ghostpoi.settings import RegionSettings

PROCESS = 400 * 10**6  # bytes that a process needs before it reads a row
PER_ROW = 800  # bytes for each row that a task holds; `python -m benchmarks scale` measures the sum
PER_BYTE = 6  # bytes for each byte of text


SHARES = {  # of the time that a command takes
    "reading": 0.14, "joining venues": 0.01, "dividing": 0.14, "finding journeys": 0.01,
    "testing columns": 0.05, "protecting": 0.5, "writing": 0.15, "comparing": 0.55, "describing": 0.7,
    "auditing": 0.5, "auditing controls": 0.05,
    "trying times": 0.05, "trying": 0.35, "trying the best": 0.25, "trying controls": 0.05,
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
        found, failed = self.run(label, task, job, numbers, *more, on_gpu=on_gpu, by_region=True)
        done_all((found, failed), job.name_of)
        return {number: found[number] for number in numbers}

    def run(
        self, label: str, task: Callable[..., Any], job: Job, numbers: Sequence[int], *more: object,
        on_gpu: bool = False, by_region: bool = False, goes_on: bool = False,
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        count, rows, size = 0, 0, {number: job.regions[number].rows if by_region else 1 for number in numbers}
        total = sum(size.values()) or 1

        def text() -> str:
            counted = f"{count:,} of {len(numbers):,}"
            return f"{label} {counted} regions, {rows:,} of {total:,} rows" if by_region else f"{label} {counted}"

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


def fit_pieces(stages: Stages, dataset: Source, pieces: Sequence[Piece]) -> None:
    """Let as many workers read as fit; refuse what must be read whole and does not fit.

    That is text that cannot be cut, or a row group of Parquet.
    """
    if (memory := stages.scale.memory) is None:
        return
    most = PROCESS + PER_ROW * PIECE_ROWS
    for piece in (piece for piece in pieces if not piece.span):
        if is_parquet(piece.path):
            rows = parquet_rows(piece)
            most = max(most, need := PROCESS + PER_ROW * rows)
            if need > memory and rows > PIECE_ROWS:  # `fit` counts smaller ones
                raise InputError(
                    f"{piece.path} has a row group that needs about {shown(need)}; write it with smaller row groups, "
                    f"or allow that with {option('memory', shown(need))}"
                )
            continue
        most = max(most, need := PROCESS + PER_BYTE * expanded_size(dataset.at(piece.path)))
        if need > memory:
            raise InputError(
                f"{piece.path} must be read whole and needs about {shown(need)}, because it is compressed, no table "
                "of text, not UTF-8, or has blank lines, control characters or stray quotes; convert it, divide it "
                f"into several files, or allow that with {option('memory', shown(need))}"
            )
    _keep(stages, (memory - _main_process(stages)) // most)


def fit(stages: Stages, regions: Sequence[Region]) -> None:
    """Let as many workers go on as the largest task allows; refuse a region that does not fit at all.

    With Dask, this process runs in addition to the workers; without, it is the worker.
    """
    if (memory := stages.scale.memory) is None:
        return
    largest, main = max(regions, key=lambda region: region.rows), _main_process(stages)
    need = PROCESS + PER_ROW * max(largest.rows, PIECE_ROWS)
    can = (memory - main) // need
    if can < 1:
        cut = (
            f", or cut it with {option('set', f'regions.most_rows={largest.rows // 2}')}"
            if largest.rows > PIECE_ROWS
            else ""
        )
        raise InputError(
            f"region {largest.number + 1} ({largest.label}; {largest.rows:,} rows) needs about "
            f"{shown(need + main)}; allow that with {option('memory', shown(need + main))}{cut}"
        )
    _keep(stages, can)


def _main_process(stages: Stages) -> int:
    """The memory of the main process, unless it does the work itself."""
    return 0 if isinstance(stages.engine, OneProcess) else PROCESS


def _keep(stages: Stages, can: int) -> None:
    if can < stages.scale.workers:
        stages.engine.keep_workers(max(1, can))
