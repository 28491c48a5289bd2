"""Make a release of a dataset, stage by stage. An interrupted run goes on after the tasks that it has done."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ghostpoi.data.formats import current_reading
from ghostpoi.data.formats.size_limit import chosen_limit
from ghostpoi.errors import InputError, RegionsFailed
from ghostpoi.files import make_private_folder, replacing
from ghostpoi.progress import Report, Say
from ghostpoi.publish.manifest import store_manifest
from ghostpoi.publish.private_folder import ReleaseRequest, Run, begin, check_folders, resume
from ghostpoi.publish.release import hashes_of, in_place, keep_private
from ghostpoi.publish.staging import publish_folder, staging_folder
from ghostpoi.world.assemble import assemble
from ghostpoi.world.columns import agreed, test_columns, tests_of
from ghostpoi.world.dataset import divided
from ghostpoi.world.engine import NO_MEMORY, Failure, engine_of
from ghostpoi.world.job import RELEASED, Job, remove_unfinished
from ghostpoi.world.manifest import joint_manifest
from ghostpoi.world.pieces import PIECE_ROWS, Pieces, content_hash, find_pieces
from ghostpoi.world.protect_region import PAIRS, protect_region
from ghostpoi.world.refusals import no_sessions, refuse, unseen
from ghostpoi.world.scale import Scale, Stages, done_all

WORLD = "world"  # in the folder of a run: the results of its tasks
NOTE = "asked.json"  # in it: how the dataset is divided


@dataclass(frozen=True)
class _Input:
    sha256: bytes


def make_release(request: ReleaseRequest, scale: Scale, say: Say, report: Report) -> dict[str, Any]:
    """Protect a dataset region by region and write the release; return its manifest."""
    return in_place(request, lambda: _make(request, scale, say, report))


def _make(request: ReleaseRequest, scale: Scale, say: Say, report: Report) -> dict[str, Any]:
    refuse(request, series=request.series is not None)
    unfinished = check_folders(request)
    pieces = find_pieces(request.file, min(scale.settings.most_rows, PIECE_ROWS))
    content = _Input(content_hash(pieces))
    is_new = not request.private.exists()
    run = resume(request, content, unfinished) if unfinished else begin(request, content, say)
    job = _job(request, scale, pieces, run)
    with engine_of(scale.engine, scale.workers, scale.scheduler, scale.memory, say) as engine:
        stages = Stages(engine, report, scale)
        try:
            job = _tested(divided(job, stages), stages)
        except InputError:  # with another file or other options, nothing of this run would be of use
            if not unfinished:
                shutil.rmtree(request.private if is_new else run.folder, ignore_errors=True)
            raise
        for text in job.columns.warnings if job.columns else []:
            say(f"warning: {text}")
        needs_torch = request.settings.method.needs_torch
        _, failed = stages.run(
            "protecting", protect_region, job, [r.number for r in job.regions], on_gpu=needs_torch,
            sizes=[r.rows for r in job.regions],
        )  # fmt: skip
        if refused := next((one.why for one in failed if one.why != NO_MEMORY), ""):
            raise InputError(refused)  # other options are another run, which cannot go on with this one
        if failed:
            raise RegionsFailed(_named(job, failed))
        _check_left(request, job)
        with staging_folder(run, request.release.resolve()) as staging:
            manifest = _write(staging, request, job, stages)
            publish_folder(staging, request.release.resolve(), request.force or request.resume)
    pairs = run.folder / PRIVATE_PAIRS
    make_private_folder(pairs)
    for region in job.regions:
        own = job.result(RELEASED, region.number) / PAIRS
        if own.exists():  # else a run that was killed has moved it
            own.rename(pairs / f"{region.number:06}.npz")
    keep_private(run, request.private, (PRIVATE_PAIRS,) if any(pairs.iterdir()) else ())
    return manifest


def _tested(job: Job, stages: Stages) -> Job:
    """Find out what becomes of each column."""
    tested, failed = stages.run("testing columns", test_columns, job, tests_of(job.regions))
    done_all((tested, failed))
    return replace(job, columns=agreed([tested[number] for number in sorted(tested)]))


PRIVATE_PAIRS = "pairs"  # in the private folder: the pairs of each region


def _write(staging: Path, request: ReleaseRequest, job: Job, stages: Stages) -> dict[str, Any]:
    """Write the content of the release folder."""
    data = staging / "checkins" if job.pieces.several else staging / job.pieces.names[0]
    folder = data if job.pieces.several else staging
    folder.mkdir(exist_ok=True)
    done_all(stages.run("writing", assemble, job, range(len(job.pieces.names)), folder.resolve()))
    if not all((folder / name).is_file() for name in job.pieces.names):
        raise unseen(folder)
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


NO_SETS = "leave out --no-candidate withhold, or choose another method"


def _named(job: Job, failed: list[Failure]) -> str:
    """Say which regions failed, and why."""
    first = failed[0]
    region = job.regions[first.number]
    others = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return (
        f"{len(job.regions) - len(failed):,} of {len(job.regions):,} regions are protected, but not region "
        f"{first.number + 1} ({region.label}; {region.rows:,} rows){others}: {first.why}; then continue with --resume"
    )


def _job(request: ReleaseRequest, scale: Scale, pieces: Pieces, run: Run) -> Job:
    folder = (run.folder / WORLD).resolve()  # workers elsewhere have other working folders
    make_private_folder(folder)
    remove_unfinished(folder)
    asked = f"{scale.settings!r} {scale.region_column}"
    if (folder / NOTE).exists() and json.loads((folder / NOTE).read_text("utf-8")) != asked:
        raise InputError(
            f"the regions differ from those of the run in {request.private}; give the same settings, or start again "
            "with --force"
        )
    with replacing(folder / NOTE, mode=0o600) as out:
        out.write(json.dumps(asked).encode())
    return Job(
        folder, pieces, request, current_reading(), chosen_limit(), scale.settings, scale.region_column, run.seed,
        run.key, device=scale.device,
    )  # fmt: skip
