"""A dataset in regions: the stages that divide it, the memory that they need, and the progress that they report."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ghostpoi import formats, stores
from ghostpoi.errors import InputError
from ghostpoi.files import make_private_folder, own_folder
from ghostpoi.formats import Source
from ghostpoi.formats.content import expanded_size
from ghostpoi.formats.databases import ROWS, stored
from ghostpoi.formats.source import shown
from ghostpoi.options import option
from ghostpoi.progress import Report
from ghostpoi.randomness import Seed
from ghostpoi.regions import divide
from ghostpoi.regions.divide import survey, with_kind
from ghostpoi.regions.engine import Engine, Failure, Scale, Task, engine_of
from ghostpoi.regions.job import SURVEY, Job, Region, is_done, refuse, unseen
from ghostpoi.regions.pieces import PIECE_ROWS, Piece, find_pieces, is_parquet, parquet_rows
from ghostpoi.release.private_folder import RowsRequest

PROCESS = 400 * 10**6  # bytes that a process needs before it reads a row
PER_ROW = 800  # bytes for each row that a task holds; `python -m benchmarks scale` measures the sum
PER_BYTE = 6  # bytes for each byte of text
SHARES = {  # of the time that a command takes
    "reading": 0.14, "joining venues": 0.01, "dividing": 0.14, "finding journeys": 0.01,
    "testing columns": 0.05, "protecting": 0.5, "writing": 0.15, "comparing": 0.55, "describing": 0.7,
    "auditing": 0.5, "auditing controls": 0.05,
    "trying times": 0.05, "trying": 0.35, "trying the best": 0.25, "trying controls": 0.05,
}  # fmt: skip


@dataclass(frozen=True)
class Stages:
    """Runs stages and reports their progress as shares of the whole work."""

    engine: Engine
    report: Report
    scale: Scale

    @property
    def main_process(self) -> int:
        """The memory of the main process, unless it does the work itself."""
        return PROCESS if self.engine.has_workers else 0

    def keep(self, can: int) -> None:
        """Let as many workers go on as can."""
        if can < self.scale.workers:
            self.engine.keep_workers(max(1, can))

    def regions(
        self, label: str, task: Task, job: Job, numbers: Sequence[int] | None = None, *more: object,
        on_gpu: bool = False,
    ) -> dict[int, Any]:  # fmt: skip
        """Run a task for regions, by default for all, and return the results; refuse to go on if one failed."""
        numbers = range(len(job.regions)) if numbers is None else numbers
        if job.file:  # its only region is here: nothing is to be handed out
            return {number: task(job, number, *more) for number in numbers}
        return self.run(label, task, job, numbers, job.name_of, *more, on_gpu=on_gpu, by_region=True)

    def run(
        self, label: str, task: Task, job: Job, numbers: Sequence[int], named: Callable[[int], str], *more: object,
        on_gpu: bool = False, by_region: bool = False,
    ) -> dict[int, Any]:  # fmt: skip
        """Run a task for all numbers, which messages call by these names; refuse to go on if one failed."""
        found, failed = self.tried(label, task, job, numbers, *more, on_gpu=on_gpu, by_region=by_region)
        for failure in sorted(failed, key=lambda one: not one.refused):
            if failure.refused:
                raise InputError(failure.why)  # its input cannot be used, or what has this name does not fit
            raise TaskFailed(f"{named(failure.number)}: {failure.why}")
        return {number: found[number] for number in sorted(found)}

    def tried(
        self, label: str, task: Task, job: Job, numbers: Sequence[int], *more: object,
        on_gpu: bool = False, by_region: bool = False, goes_on: bool = False,
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        """Run a task for all numbers; return the results, and the tasks that failed."""
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
    stages.keep((memory - stages.main_process) // most)


def fit(stages: Stages, regions: Sequence[Region]) -> None:
    """Let as many workers go on as the largest task allows; refuse a region that does not fit at all.

    With Dask, this process runs in addition to the workers; without, it is the worker.
    """
    if (memory := stages.scale.memory) is None:
        return
    largest, main = max(regions, key=lambda region: region.rows), stages.main_process
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
    stages.keep(can)


@contextmanager
def dataset(
    source: Source, request: RowsRequest, scale: Scale | None, private: Path | None, report: Report
) -> Iterator[tuple[Job, Stages]]:
    """Yield a dataset: one region in memory or, if an option asks for that, divided into regions."""
    if scale is None:
        yield Job.whole(formats.read(source, request.mapping), request), Stages(Engine(), report, Scale())
        return
    refuse(request, source.reading)
    with working(scale, private, report) as (place, stages):
        job = read_here(job_of(place, source, request, scale), stages)
        yield job if job.file else divided(job, stages), stages


@contextmanager
def working(scale: Scale, private: Path | None, report: Report) -> Iterator[tuple[Path, Stages]]:
    """Yield a folder for what tasks leave, which is clean data, and the stages of an engine.

    The folder lies in the private folder, if that exists, else where temporary files do. Workers elsewhere must see it.
    """
    with (
        own_folder(PREFIX, private.resolve() if private is not None and private.is_dir() else None) as place,
        engine_of(scale) as engine,
    ):
        try:
            yield place, Stages(engine, report, scale)
        finally:
            stores.remove_all(place)


PREFIX = "ghostpoi-reading-"


def job_of(folder: Path, source: Source, request: RowsRequest, scale: Scale) -> Job:
    """Return a job that reads a dataset. It draws nothing yet, so its seed does not matter."""
    if source.query:
        make_private_folder(folder)
        source = stored(source, request.mapping, folder.absolute() / ROWS)
    pieces = find_pieces(source, min(scale.settings.most_rows, PIECE_ROWS))
    return Job(folder, pieces, request, source, scale.settings, scale.region_column, Seed(0), "", device=scale.device)


def read_here(job: Job, stages: Stages) -> Job:
    """Read a dataset of one piece, if its tasks run in this process. If it is one region, it needs no division."""
    if stages.engine.has_workers or len(job.pieces.pieces) > 1 or job.pieces.several:
        return job
    fit_pieces(stages, job.source, job.pieces.pieces)
    file = formats.read(job.source, job.request.mapping)
    regions = tuple(divide.regions_of(job, file))
    fit(stages, regions)
    return replace(job, held=file) if len(regions) > 1 else replace(job, file=file, regions=regions)


def divided(job: Job, stages: Stages) -> Job:
    """Find the regions of a dataset and divide its pieces."""
    make_private_folder(job.folder)
    if stages.engine.has_workers:
        job = job.for_workers()
    every, path = range(len(job.pieces.pieces)), job.pieces.path
    if not job.held:
        fit_pieces(stages, job.source, job.pieces.pieces)

    def ids(number: int) -> str:
        return f"{path}, range {number + 1} of ids"

    stages.run("reading", survey, job, every, job.pieces.name_of)
    if not all(is_done(job.result(SURVEY, number)) for number in every):
        raise unseen(job.folder)
    job = with_kind(job)
    count = divide.ranges_of(job, "venues")
    stages.run("joining venues", divide.join_venues, job, range(count), ids, count)
    job = replace(job, regions=divide.find_regions(job))
    fit(stages, job.regions)
    stages.run("dividing", divide.scatter, job, every, job.pieces.name_of)
    if len(job.regions) > 1:
        count = divide.ranges_of(job, "rows")
        stages.run("finding journeys", divide.find_crossings, job, range(count), ids, count)
    return divide.with_pieces(replace(job, held=None))
