"""A dataset for commands that only read it. What is divided lies in a folder that exists while they run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ghostpoi import formats, stores
from ghostpoi.files import make_private_folder, own_folder
from ghostpoi.formats import Source
from ghostpoi.formats.databases import ROWS, stored
from ghostpoi.progress import Report, Say
from ghostpoi.randomness import Seed
from ghostpoi.regions import divide
from ghostpoi.regions.engine import OneProcess, engine_of
from ghostpoi.regions.job import SURVEY, Job, is_done, refuse, unseen
from ghostpoi.regions.pieces import PIECE_ROWS, find_pieces
from ghostpoi.regions.scale import Scale, Stages, done_all, fit, fit_pieces
from ghostpoi.regions.survey import survey, with_kind
from ghostpoi.release.private_folder import RowsRequest
from ghostpoi.settings import RegionSettings


@contextmanager
def dataset(
    source: Source, request: RowsRequest, scale: Scale | None, private: Path | None, say: Say, report: Report
) -> Iterator[tuple[Job, Stages]]:
    """Yield a dataset: one region in memory or, if an option asks for that, divided into regions."""
    if scale is None:
        yield Job.whole(formats.read(source, request.mapping), request), Stages(OneProcess(), report, IN_MEMORY)
        return
    refuse(request, source.reading)
    with working(scale, private, say, report) as (place, stages):
        job = read_here(job_of(place, source, request, scale), stages)
        yield job if job.file else divided(job, stages), stages


IN_MEMORY = Scale(settings=RegionSettings())


@contextmanager
def working(scale: Scale, private: Path | None, say: Say, report: Report) -> Iterator[tuple[Path, Stages]]:
    """Yield a folder for what tasks leave, which is clean data, and the stages of an engine.

    The folder lies in the private folder, if that exists, else where temporary files do. Workers elsewhere must see it.
    """
    with (
        own_folder(PREFIX, private.resolve() if private is not None and private.is_dir() else None) as place,
        engine_of(scale.engine, scale.workers, scale.scheduler, scale.memory, say) as engine,
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
    return Job(
        folder, pieces, request, source, scale.settings, scale.region_column, Seed(0), "", device=scale.device
    )  # fmt: skip


def read_here(job: Job, stages: Stages) -> Job:
    """Read a dataset of one piece, if its tasks run in this process. If it is one region, it needs no division."""
    if not isinstance(stages.engine, OneProcess) or len(job.pieces.pieces) > 1 or job.pieces.several:
        return job
    fit_pieces(stages, job.source, job.pieces.pieces)
    file = formats.read(job.source, job.request.mapping)
    regions = tuple(divide.regions_of(job, file))
    fit(stages, regions)
    return replace(job, held=file) if len(regions) > 1 else replace(job, file=file, regions=regions)


def divided(job: Job, stages: Stages) -> Job:
    """Find the regions of a dataset and divide its pieces."""
    make_private_folder(job.folder)
    if not isinstance(stages.engine, OneProcess):
        job = job.for_workers()
    every = range(len(job.pieces.pieces))
    if not job.held:
        fit_pieces(stages, job.source, job.pieces.pieces)

    def piece(number: int) -> str:
        return str(job.pieces.pieces[number].path)

    def ids(number: int) -> str:
        return f"{job.pieces.path}, range {number + 1} of ids"

    done_all(stages.run("reading", survey, job, every), piece)
    if not all(is_done(job.result(SURVEY, number)) for number in every):
        raise unseen(job.folder)
    job = with_kind(job)
    count = divide.ranges_of_venues(job)
    done_all(stages.run("joining venues", divide.join_venues, job, range(count), count), ids)
    job = replace(job, regions=divide.find_regions(job))
    fit(stages, job.regions)
    done_all(stages.run("dividing", divide.scatter, job, every), piece)
    if len(job.regions) > 1:
        count = divide.ranges_of_users(job)
        done_all(stages.run("finding journeys", divide.find_crossings, job, range(count), count), ids)
    return divide.with_pieces(replace(job, held=None))
