"""Make a release of a dataset, stage by stage. An interrupted run goes on after the tasks that it has done."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ghostpoi import formats
from ghostpoi.errors import EngineFailed, InputError, RegionsFailed
from ghostpoi.files import PARTIAL, make_private_folder
from ghostpoi.formats import CheckinFile
from ghostpoi.options import option
from ghostpoi.progress import Report, Say
from ghostpoi.publish.manifest import store_manifest
from ghostpoi.publish.private_folder import Note, ReleaseRequest, Run, begin, check_folders, resume
from ghostpoi.publish.release import hashes_of, in_place, keep_private, release_file, work
from ghostpoi.publish.released_rows import ReleasedRows
from ghostpoi.publish.series.series_release import open_series
from ghostpoi.publish.staging import publish_folder, staging_folder
from ghostpoi.randomness import Seed
from ghostpoi.world.assemble import assemble
from ghostpoi.world.columns import agreed, test_columns, tests_of
from ghostpoi.world.dataset import divided
from ghostpoi.world.engine import Failure, OneProcess, engine_of
from ghostpoi.world.job import RELEASED, Job, remove_unfinished
from ghostpoi.world.manifest import joint_manifest
from ghostpoi.world.memory import fit, fit_pieces
from ghostpoi.world.pieces import PIECE_ROWS, Pieces, content_hash, find_pieces
from ghostpoi.world.protect_region import PAIRS, protect_region
from ghostpoi.world.refusals import no_sessions, refuse, unseen
from ghostpoi.world.regions import regions_of
from ghostpoi.world.scale import Scale, Stages, TaskFailed, done_all

WORLD = "world"  # how folders in the folder of a run begin that hold the results of tasks
LAYOUT = "packs"  # of the results: those of older versions are of no use


Made = tuple[dict[str, Any], ReleasedRows | None]  # the manifest; the rows, if all were in memory at once


def make_release(request: ReleaseRequest, scale: Scale | None, say: Say, report: Report) -> Made:
    """Protect a dataset, region by region if an option asks for that, and write the release."""
    return in_place(request, lambda: _make(request, scale, say, report))


def _make(request: ReleaseRequest, scale: Scale | None, say: Say, report: Report) -> Made:
    if scale:
        refuse(request, request.file.reading, series=request.series is not None)
    unfinished = check_folders(request)
    if scale is None:
        series = open_series(request)
        file = formats.read(request.file, request.mapping)
        released = release_file(request, file, file.sha256, unfinished, series, say, report)
        return released.manifest, released
    pieces = find_pieces(request.file, min(scale.settings.most_rows, PIECE_ROWS))
    with engine_of(scale.engine, scale.workers, scale.scheduler, scale.memory, say) as engine:
        stages = Stages(engine, report, scale)
        held, count = _held(request, pieces, stages)
        sha256 = content_hash(pieces)
        if held and count == 1:
            units = work(request.settings)

            def share(label: str, done: float) -> None:
                report(label, done / units)

            released = release_file(request, held, sha256, unfinished, None, say, share)
            return released.manifest, released
        return _by_region(request, pieces, held, sha256, unfinished, stages, say), None


def _held(request: ReleaseRequest, pieces: Pieces, stages: Stages) -> tuple[CheckinFile | None, int]:
    """Read a dataset of one piece here, if no other process does, and count its regions."""
    if not isinstance(stages.engine, OneProcess) or len(pieces.pieces) > 1 or pieces.several:
        return None, 0
    scale = stages.scale
    job = Job(Path(), pieces, request, request.file, scale.settings, scale.region_column, Seed(0), "")
    fit_pieces(stages.engine, scale.memory, scale.workers, request.file, pieces.pieces)
    file = formats.read(request.file, request.mapping)
    found = regions_of(job, file)
    fit(stages.engine, scale.memory, scale.workers, found)
    return file, len(found)


def _by_region(
    request: ReleaseRequest, pieces: Pieces, held: CheckinFile | None, sha256: bytes, unfinished: Note | None,
    stages: Stages, say: Say,
) -> dict[str, Any]:  # fmt: skip
    """Divide a dataset, protect each region and write the release; return its manifest."""
    # A refused engine or input leaves nothing: with other options or another file, this run would be of no use.
    is_new = not request.private.exists()
    run = resume(request, sha256, unfinished) if unfinished else begin(request, sha256, say)
    try:
        job = replace(_job(request, stages.scale, pieces, run, say), held=held)
        job, manifest = _released(job, request, run, stages, say)
    except (TaskFailed, EngineFailed) as e:
        raise RegionsFailed(f"{e.text}; then continue with {option('resume')}") from None
    except InputError as e:
        if not unfinished and not isinstance(e, RegionsFailed):
            shutil.rmtree(request.private if is_new else run.folder, ignore_errors=True)
        raise
    pairs = run.folder / PRIVATE_PAIRS
    make_private_folder(pairs)
    for region in job.regions:
        own = job.result(RELEASED, region.number) / PAIRS
        if own.exists():  # else a run that was killed has moved it
            own.rename(pairs / f"{region.number:06}.npz")
    keep_private(run, request.private, (PRIVATE_PAIRS,) if any(pairs.iterdir()) else ())
    return manifest


def _released(job: Job, request: ReleaseRequest, run: Run, stages: Stages, say: Say) -> tuple[Job, dict[str, Any]]:
    """Do all stages, and publish the release; return the job as it is known then, and the manifest."""
    job = _tested(divided(job, stages), stages)
    for text in job.columns.warnings if job.columns else []:
        say(f"warning: {text}")
    _, failed = stages.run(
        "protecting", protect_region, job, [r.number for r in job.regions], on_gpu=request.settings.method.needs_torch,
        sizes=[r.rows for r in job.regions], goes_on=True,
    )  # fmt: skip
    if failed:
        raise _failure(job, failed)
    _check_left(request, job)
    with staging_folder(run, request.release.resolve()) as staging:
        manifest = _write(staging, request, job, stages)
        publish_folder(staging, request.release.resolve(), request.force or request.resume)
    return job, manifest


def _tested(job: Job, stages: Stages) -> Job:
    """Find out what becomes of each column."""
    tested, failed = stages.run("testing columns", test_columns, job, tests_of(job.regions))
    done_all((tested, failed), job.name_of)
    return replace(job, columns=agreed([tested[number] for number in sorted(tested)]))


PRIVATE_PAIRS = "pairs"  # in the private folder: the pairs of each region


def _write(staging: Path, request: ReleaseRequest, job: Job, stages: Stages) -> dict[str, Any]:
    """Write the content of the release folder."""
    data = staging / "checkins" if job.pieces.several else staging / job.pieces.names[0]
    folder = data if job.pieces.several else staging
    folder.mkdir(exist_ok=True)
    written = stages.run("writing", assemble, job, range(len(job.pieces.names)), folder.resolve())
    done_all(written, lambda part: job.pieces.names[part])
    if not all((folder / name).is_file() for name in job.pieces.names):
        raise unseen(folder)
    for left in folder.rglob(f".*{PARTIAL}"):  # by workers that died
        left.unlink(missing_ok=True)
    manifest = joint_manifest(job)
    manifest["data"] = {"file": data.name, **manifest["data"], **hashes_of(data)}
    store_manifest(staging, manifest, request.private)
    return manifest


def _check_left(request: ReleaseRequest, job: Job) -> None:
    """Refuse a release without rows, or without a row for the models to learn from."""
    rows = joint_manifest(job)["rows"]
    if rows["withheld"] == sum(region.rows for region in job.regions):
        raise InputError(f"{request.file}: no venue has a candidate, so all rows would be withheld; {NO_SETS}")
    if request.settings.method.needs_torch and not rows["in_sessions"]["rows"]:
        raise no_sessions(request.file)


NO_SETS = f"leave out {option('no_candidate', 'withhold')}, or choose another method"


def _failure(job: Job, failed: list[Failure]) -> InputError | RegionsFailed:
    """Say which regions failed, and why. If none is protected, it is the input that is refused."""
    refused = [one for one in failed if one.refused]
    first, every = (refused or failed)[0], len(job.regions)
    if refused and len(failed) == every:
        return InputError(first.why)
    region, others = job.regions[first.number], f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    # Other options and other data are another run, which cannot go on with this one.
    then = f"then start again with {option('force')}" if refused else f"then continue with {option('resume')}"
    why = first.why.removeprefix(f"{job.name_of(region.number)}: ")
    return RegionsFailed(
        f"{every - len(failed):,} of {every:,} regions are protected, but not region {first.number + 1} "
        f"({region.label}; {region.rows:,} rows){others}: {why}; {then}"
    )


def _job(request: ReleaseRequest, scale: Scale, pieces: Pieces, run: Run, say: Say) -> Job:
    # Tasks of an earlier run, version or division may still be at work somewhere: they leave their results elsewhere.
    asked = f"{run.token} {run.key} {scale.settings!r} {scale.region_column} {LAYOUT}"
    name = f"{WORLD}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"
    folder = (run.folder / name).resolve()  # workers elsewhere have other working folders
    _remove([*run.folder.glob(f".{WORLD}-*")])
    if others := [path for path in run.folder.glob(f"{WORLD}-*") if path.name != name]:
        say("the regions, device or version are not those of the interrupted run, so the dataset is divided again")
        _remove([path.rename(path.with_name(f".{path.name}")) for path in others])  # whole or not at all
    make_private_folder(folder)
    remove_unfinished(folder)
    return Job(
        folder, pieces, request, request.file, scale.settings, scale.region_column, run.seed, run.key,
        device=scale.device,
    )  # fmt: skip


def _remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder)
