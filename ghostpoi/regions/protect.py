"""Make a release of a dataset: protect each region, join their figures, and put the parts of the release together.

Regions are protected under the user ids and times of the file, in its order. Other ids, times and places are drawn for
all rows as in memory, which takes about 200 bytes per row; the rows themselves then move block by block.
"""

import hashlib
import os
import pickle
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ghostpoi import formats
from ghostpoi.data.checkins import Checkins, Longs, concatenated
from ghostpoi.draw.publication import Checkpoint, device_for
from ghostpoi.draw.table import protect_table
from ghostpoi.draw.whole_table import fast_steps
from ghostpoi.errors import ConnectionLost, EngineFailed, InputError, RegionsFailed
from ghostpoi.files import make_folder, make_private_folder, replacing, save_arrays
from ghostpoi.formats import CheckinFile, Rows, Source
from ghostpoi.formats.rows import Dialect
from ghostpoi.formats.source import shown as as_size
from ghostpoi.formats.written_times import with_times
from ghostpoi.options import option
from ghostpoi.progress import Report, Say
from ghostpoi.regions import job as jobs
from ghostpoi.regions.columns import check_columns, test_all_columns
from ghostpoi.regions.dataset import Stages, TaskFailed, divided, job_of, read_here
from ghostpoi.regions.divide import ROWS, TAIL, file_of, read_with_origin, regions_in, surveys_of
from ghostpoi.regions.engine import Failure, Scale, engine_of
from ghostpoi.regions.job import FRAGMENTS, RELEASED, Job, Region, is_done, leaving, make_inside
from ghostpoi.regions.pieces import (
    PIECE_ROWS,
    Pieces,
    content_hash,
    head_of,
    in_order,
    numbers_of,
    pack_by,
    read_groups,
    read_piece,
    write_pack,
)
from ghostpoi.release import identity, make, private_folder
from ghostpoi.release.identity import MAP, check_span
from ghostpoi.release.manifest import store_manifest
from ghostpoi.release.plan import ReleasedRows, joint_speed, plan, release_rows, stated, tell_duplicates
from ghostpoi.release.private_folder import PRIVATE_PAIRS, Note, ReleaseRequest, Run

MOVED = "moved"  # blocks of rows on their way
MEMORY = 200  # bytes for each row of which the id and the time are changed


def table_of(source: Source, pieces: Pieces, mapping: dict[str, str], memory: int | None = None) -> Checkins:
    """Return the users, places and times of all rows of a dataset; refuse more rows than fit."""
    tables, rows = list[Checkins](), 0
    for piece in pieces.pieces:
        if file := read_piece(source, piece, mapping):
            tables.append(file.table)
            rows += len(file.table)
        if memory is not None and (need := MEMORY * rows) > memory:
            raise InputError(
                f"{pieces.path}: other user ids and times are drawn over all rows, which needs {as_size(need)}; "
                f"allow more with {option('memory')}, or keep both with {option('pseudonyms', 'keep')} and "
                f"{option('times', 'keep')}"
            )
    return concatenated(tables, str(pieces.path))


def origins(job: Job) -> tuple[Longs, Longs]:
    """Return the row of the table that each released row comes from, (M,), in the order of the file, and its region."""
    before, rows, regions = 0, list[Longs](), list[Longs]()
    for piece, survey in surveys_of(job).items():
        present = np.sort(pl.read_parquet(survey.folder / ROWS, columns=["row"])["row"].to_numpy())
        found = [(g.places, r) for r in regions_in(job, piece) for g in read_groups(job.result(RELEASED, r), [piece])]
        place = np.concatenate([np.empty(0, np.int32), *(places for places, _ in found)])
        region = np.repeat([r for _, r in found], [len(places) for places, _ in found]).astype(np.int64)
        order = np.argsort(place)
        rows.append(before + np.searchsorted(present, place[order]))
        regions.append(region[order])
        before += survey.rows
    return np.concatenate(rows), np.concatenate(regions)


def released_rows(job: Job, piece: int) -> Rows | None:
    """Return the released rows of a piece in the order of the dataset, if any. Each region has read its own back."""
    folders = (job.result(RELEASED, region) for region in regions_in(job, piece))
    groups = [group for folder in folders for group in read_groups(folder, [piece])]
    places = np.concatenate([group.places for group in groups]) if groups else np.empty(0)
    if len(np.unique(places)) < len(places):
        raise ValueError("two regions hold the same row")
    return in_order(groups, job.pieces.names[job.pieces.pieces[piece].part]) if groups else None


def tail_of(job: Job, part: int) -> bytes:
    """Return what ends the last line of a part, if it is text."""
    tail = job.result(FRAGMENTS, job.pieces.of_part(part)[-1].number) / TAIL
    return tail.read_bytes() if tail.exists() else b""


def new_names(pieces: Pieces) -> tuple[str, ...]:
    """Return the names of the parts of a release whose rows stand in another order."""
    ending = min(Path(name).suffix for name in pieces.names)
    return tuple(f"part-{n:05}{ending}" for n in range(len(pieces.names))) if pieces.several else pieces.names


def sizes_of(rows: int, parts: int) -> list[int]:
    """Return how many rows each part of a release has if they stand in another order."""
    return np.bincount(np.arange(rows) * parts // max(1, rows), minlength=parts).tolist()


def write_changed(job: Job, clean: Checkins, out: Path, private: Path) -> dict[str, Any]:
    """Write the rows of a release to a folder, with new ids, times and places.

    Write what undoes that to a private file; return what the manifest says about it.
    """
    settings, user, count, work = job.request.settings, job.fields["user"], len(job.pieces.names), job.folder / MOVED
    shown, region = origins(job)
    released = ((p, rows) for p in job.pieces.pieces if (rows := released_rows(job, p.number)) is not None)
    _, some = first = next(released)
    file = file_of(job, some, str(job.pieces.path))
    new = identity.draw(clean, shown, settings, job.seed, some.largest_number(user) if settings.hides_users else None)
    place = np.empty(len(clean), np.int64)
    place[new.row] = np.arange(len(new.row))
    place, ids = place[shown], new.released_ids
    ends = np.cumsum([0, *sizes_of(len(shown), count)])
    blocks = np.concatenate([np.arange(a, b, PIECE_ROWS) for a, b in pairwise(ends)])
    make_private_folder(work)
    tails, tables, folders, at = [b""], list[Checkins](), list[Path](), 0
    for piece, rows in chain([first], released):
        tables.append(file_of(job, rows, str(job.pieces.path)).table)
        tails.append(tail_of(job, piece.part))
        folders.append(work / f"{piece.number:06}")
        make_private_folder(folders[-1])
        here, at = place[at : at + len(rows)], at + len(rows)
        order = np.argsort(here)
        block = np.searchsorted(blocks, here[order], "right") - 1
        pack_by(folders[-1], block, (here[order] - blocks[block]).astype(np.int32), rows.take(order))

    def changed(number: int, name: str) -> Rows:
        rows = in_order([group for folder in folders for group in read_groups(folder, [number])], name)
        here = slice(blocks[number], blocks[number] + len(rows))
        rows = rows.replace_ids(user, ids[here]) if settings.hides_users else rows
        return with_times(file, rows, new.time[here]) if settings.identity.times != "keep" else rows

    for name, (begin, end) in zip(new_names(job.pieces), pairwise(ends), strict=True):
        own = np.flatnonzero((blocks >= begin) & (blocks < end)).tolist()
        write_part(out / name, (changed(number, name) for number in own), head_of(folders[0]), max(tails))
    with replacing(private, mode=0o600) as stored:
        save_arrays(stored, {"shown": new.row, **identity.map_arrays(clean, new)})
    # A step is counted where both its ends are in one region, as verify counts it.
    unit = np.unique(np.stack([region, new.number[shown]]), axis=1, return_inverse=True)[1].reshape(-1)
    table = concatenated(tables, str(job.pieces.path))
    shows = replace(table, user=unit.astype(np.int32), time=new.time[place])
    speed = fast_steps(shows, settings.speed.limit_kmh, settings.speed.min_gap_s)
    return {"identity": new.public, "speed": speed}


def write_part(path: Path, rows: Iterator[Rows], head: Any, tail: bytes) -> None:
    """Write rows as one file: a table, or text, which begins and ends as `head` and `tail` say if it has no rows."""
    with replacing(path) as out:
        if not isinstance(head, Dialect):
            from ghostpoi.formats.parquet import write_tables  # pyarrow is slow to import

            first = next(rows, None)
            found = (some.segment() for some in chain([first], rows) if some is not None)
            write_tables(found, head if first is None else first.schema, out)
            return
        end = None
        for some in rows:
            if ended := some.with_line_end().dialect:
                some.framed(ended.start if end is None else end, b"").write(out)
                end = ended.tail
        out.write(head.start if end is None else tail)


PER_ROW = ("user", "venue", "category", "lat", "lon", "time", "crossing")
IDS = {"user_ids": 0, "venue_ids": 1, "category_ids": 0}  # how many stay: venues are numbered from 1


def without_rows(file: CheckinFile, dropped: Sequence[str] = ()) -> CheckinFile:
    """Return a file of the same kind that has no rows, and lacks these columns."""
    table, none = file.table, np.empty(0, np.int64)
    kept = dict.fromkeys(PER_ROW, 0) | IDS
    short = {f.name: value[: kept[f.name]] for f in fields(Checkins)
             if f.name in kept and (value := getattr(table, f.name)) is not None}  # fmt: skip
    return replace(
        file, table=replace(table, **short), missing=none, all_rows=file.all_rows.take(none).drop([*dropped])
    )


FIGURES, PAIRS = "figures", "pairs.npz"  # the manifest of a region and its figures; its pairs


def protect_region(job: Job, number: int) -> None:
    """Protect a region."""
    region, place = job.regions[number], job.result(RELEASED, number)
    if is_done(place):
        return
    if job.columns is None:
        raise ValueError("the columns are not tested yet")
    file, origin = read_with_origin(job, region)
    if len(job.regions) > 1:
        check_columns(job, file, job.columns)
    # Models and checkpoints, which are needed until the region is done.
    work = make_inside(job.folder, "work", f"{number:06}")
    with leaving(place) as folder:
        released = _protected(work, job, region, file)
        write_pack(folder, origin.shown(file, released.shown), released.rows if len(released.rows) else None)
        make.write_pairs(folder / PAIRS, released)
        (folder / FIGURES).write_bytes(pickle.dumps((released.manifest, released.figures)))
    shutil.rmtree(work, ignore_errors=True)  # another worker may do the same task, and be done


def _protected(work: Path, job: Job, region: Region, file: CheckinFile) -> ReleasedRows:
    """Return the released rows of a region, as they read back."""
    request, seed, quiet = job.request, job.seed, lambda text: None
    columns = job.columns if len(job.regions) > 1 else None  # a single region was tested as a whole, and is again
    # Ids and times are drawn for all regions at once.
    planned = replace(plan(request, file, quiet, columns=columns), in_order=True)
    checkpoint = Checkpoint(work / "checkpoint.safetensors", f"{job.key} {region.key}", quiet)
    device = device_for(job.device, request.settings)
    venues = protect_table(planned.whole, request.settings, seed, device, cache=work, checkpoint=checkpoint)
    released = release_rows(planned, venues, seed)
    released = replace(released, rows=released.rows.whole.with_line_end())
    withheld = not len(released.shown) and not len(file.kept)
    written = without_rows(file) if withheld else make.write_data(make.in_memory(file), file, released)
    return replace(released, rows=written.all_rows, manifest=make.described_data(request, file, released, written))


def joint_manifest(job: Job, say: Say) -> dict[str, Any]:
    """Join the manifests of all regions; tell how many rows repeat others."""
    each, figures = zip(*(pickle.loads((one / FIGURES).read_bytes()) for one in job.results(RELEASED)), strict=True)
    tell_duplicates(sum(one.duplicates for one in figures), say)
    found, data = stated(figures), each[0]["data"]
    speed = joint_speed([one["speed"] for one in each])
    joint: dict[str, Any] = each[0] | found | {"speed": speed, "data": data | found["data"]}
    if len(job.regions) == 1:
        return joint
    most = {name: getattr(job.settings, name) for name in ("most_venues", "most_rows")}
    return joint | {"regions": {"count": len(job.regions), **job.rule, **most}}  # so that anybody can part them again


PARTS, PART = "parts", "part"  # the stage that leaves the parts of the release


def assemble(job: Job, part: int) -> None:
    """Write a part of the release."""
    if is_done(job.result(PARTS, part)):
        return
    pieces = job.pieces.of_part(part)
    rows = (found for piece in pieces if (found := released_rows(job, piece.number)) is not None)
    regions = (job.result(RELEASED, region.number) for region in job.regions)
    head = head_of(next(folder for folder in regions if numbers_of(folder)))  # what a part without rows begins with
    with leaving(job.result(PARTS, part)) as folder:
        write_part(folder / PART, rows, head, tail_of(job, part))


WORLD = "world"  # how folders in the folder of a run begin that hold the results of tasks
LAYOUT = "figures"  # of the results: those of older versions are useless


Made = tuple[dict[str, Any], ReleasedRows | None]  # the manifest; the rows, if all were in memory at once


def make_release(request: ReleaseRequest, scale: Scale | None, say: Say, report: Report) -> Made:
    """Protect a dataset and write the release: at once, or region by region if an option asks for that."""

    def made() -> Made:
        if scale:
            jobs.refuse(request, request.file.reading, series=request.series is not None)
        unfinished, series = private_folder.check_folders(request), None
        with private_folder.rows_at_hand(request, unfinished) as ready:
            if scale:
                return _at_scale(ready, scale, unfinished, say, report)
            if request.series:
                from ghostpoi.release.series.add import open_series

                series = open_series(ready, request.series)
            file = formats.read(ready.file, ready.mapping)
            released = make.release_file(ready, file, unfinished, series, say, report)
            return released.manifest, released

    return make.in_place(request, made)


def _at_scale(request: ReleaseRequest, scale: Scale, unfinished: Note | None, say: Say, report: Report) -> Made:
    """Protect a dataset region by region or, if it is one region that fits into a piece, at once."""
    job = job_of(Path(), request.file, request, scale)
    with engine_of(scale) as engine:
        stages = Stages(engine, report, scale)
        job = read_here(job, stages)
        if job.file:
            released = make.release_file(request, job.file, unfinished, None, say, report)
            return released.manifest, released
        return _by_region(job, request, content_hash(job.pieces), unfinished, stages, say), None


def _by_region(
    job: Job, request: ReleaseRequest, sha256: bytes, unfinished: Note | None, stages: Stages, say: Say
) -> dict[str, Any]:
    """Divide a dataset, protect each region and write the release; return its manifest."""

    def may_resume(error: Exception) -> bool:  # with other options or another file, a refused run would be useless
        return not isinstance(error, InputError) or isinstance(error, RegionsFailed | ConnectionLost)

    with private_folder.running(request, sha256, unfinished, say, may_resume) as run:
        try:
            job = replace(job, folder=_folder(job, run, say), seed=run.seed, key=run.key)
            job, manifest = _released(job, request, run, stages, say)
        except (TaskFailed, EngineFailed) as e:
            raise RegionsFailed(f"{e.text}; then continue with {option('resume')}") from None
    pairs = run.folder / PRIVATE_PAIRS
    make_private_folder(pairs)
    for region in job.regions:
        own = job.result(RELEASED, region.number) / PAIRS
        if own.exists():  # else a run that was killed has moved it
            own.rename(pairs / f"{region.number:06}.npz")
    kept = [PRIVATE_PAIRS] * any(pairs.iterdir()) + [MAP] * (run.folder / MAP).exists()
    make.keep_private(run, request.private, kept)
    return manifest


def _released(job: Job, request: ReleaseRequest, run: Run, stages: Stages, say: Say) -> tuple[Job, dict[str, Any]]:
    """Do all stages, and publish the release; return the job as it is known then, and the manifest."""
    job, clean = test_all_columns(divided(job, stages), stages), None
    if request.settings.reorders:
        clean = table_of(job.source, job.pieces, job.fields, stages.scale.memory)
        check_span(clean, request.settings)
    for text in job.columns.warnings if job.columns else []:
        say(f"warning: {text}")
    every, needs_torch = range(len(job.regions)), request.settings.method.needs_torch
    _, failed = stages.tried(
        "protecting", protect_region, job, every, on_gpu=needs_torch, by_region=True, goes_on=True
    )  # fmt: skip
    if failed:
        raise _failure(job, failed)
    manifest = joint_manifest(job, say)
    if manifest["rows"]["withheld"] == sum(region.rows for region in job.regions):
        raise InputError(
            f"{request.file}: no venue has a candidate, so all rows would be withheld; leave out "
            f"{option('no_candidate', 'withhold')}, or choose another method"
        )
    if needs_torch and not manifest["rows"]["in_sessions"]["rows"]:
        raise jobs.no_sessions(request.file)
    with private_folder.publishing(run, request) as staging:
        _write(staging, run, request, job, manifest, stages, clean)
    return job, manifest


def _write(
    staging: Path, run: Run, request: ReleaseRequest, job: Job, manifest: dict[str, Any], stages: Stages,
    clean: Checkins | None,
) -> None:  # fmt: skip
    """Write the content of the release folder. `clean`: all clean rows, if the release has other ids or times."""
    data = staging / "checkins" if job.pieces.several else staging / job.pieces.names[0]
    out = data if job.pieces.several else staging
    make_folder(out)
    if clean is not None:
        stages.report("writing", 0)
        manifest |= write_changed(job, clean, out, run.folder / MAP)
    else:
        stages.run("writing", assemble, job, range(len(job.pieces.names)), job.pieces.names.__getitem__)
        for part, name in enumerate(job.pieces.names):
            if not is_done(made := job.result(PARTS, part)):
                raise jobs.unseen(job.folder)
            make_folder((out / name).parent)
            try:
                os.link(made / PART, out / name)  # so that a run that is killed later finds it again
            except OSError:  # another file system
                shutil.copyfile(made / PART, out / name)
            (out / name).chmod(0o644)
    manifest["data"] = make.located(data, manifest["data"])
    store_manifest(staging, manifest, request.private)


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


def _folder(job: Job, run: Run, say: Say) -> Path:
    """Return the folder for the results of tasks; remove those of other divisions."""
    # Tasks of an earlier run, version or division may still be at work somewhere: they leave their results elsewhere.
    asked = f"{run.token} {run.key} {job.settings!r} {job.region_column} {LAYOUT}"
    name = f"{WORLD}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"
    folder = (run.folder / name).resolve()  # workers elsewhere have other working folders
    _remove([*run.folder.glob(f".{WORLD}-*")])
    if others := [path for path in run.folder.glob(f"{WORLD}-*") if path.name != name]:
        say("the regions, device or version are not those of the interrupted run, so the dataset is divided again")
        _remove([path.rename(path.with_name(f".{path.name}")) for path in others])  # whole or not at all
    make_private_folder(folder)
    jobs.remove_unfinished(folder)
    return folder


def _remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder)
