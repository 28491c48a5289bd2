"""Make a release: the folder to publish, and the private folder, which must never be published.

The manifest is written last: its presence means that the release is complete. The private folder, which only its owner
may read, holds the seed, the (clean, released) pairs and models trained on clean data.
"""

import hashlib
import io
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ghostpoi import formats
from ghostpoi.draw.publication import Checkpoint, Publication
from ghostpoi.draw.table import LM_UNITS, protect_table, units
from ghostpoi.draw.whole_table import fast_steps
from ghostpoi.errors import ConnectionLost, InputError
from ghostpoi.files import file_hashes, joint_hash, locked, replacing, save_arrays
from ghostpoi.formats import CheckinFile, Rows, Source
from ghostpoi.formats.rows import difference
from ghostpoi.options import option
from ghostpoi.progress import Report, Say
from ghostpoi.randomness import Seed
from ghostpoi.release import identity, private_folder
from ghostpoi.release.identity import MAP, PAIRS
from ghostpoi.release.manifest import store_manifest
from ghostpoi.release.plan import Plan, ReleasedRows, plan, release_rows, stated
from ghostpoi.release.private_folder import Note, ReleaseRequest, RowsRequest, Run
from ghostpoi.release.venue_files import data_name, venue_file

if TYPE_CHECKING:
    from ghostpoi.release.series.ledger import Series

Made = TypeVar("Made")
SHORT_SEED_BITS = 64  # a shorter seed can be found by trying all of them


def in_place(request: ReleaseRequest, make: Callable[[], Made]) -> Made:
    """Make a release while no other process writes its folders; say how to go on if they cannot be written."""
    try:
        private_folder.check_places(request)
        release, private = request.release.resolve(), request.private.resolve()
        with locked(release), locked(private), locked(request.series.resolve()) if request.series else nullcontext():
            private_folder.clean_up(release, private / private_folder.UNFINISHED)
            return make()
    except OSError as e:
        folders = " or ".join(str(folder) for folder in (request.release, request.private, request.series) if folder)
        raise InputError(
            f"{folders} could not be written ({(e.strerror or str(e)).lower()}); free some space or choose other "
            f"folders, then continue with {option('resume')}"
        ) from None


def given_seed(value: int | None, allow_short: bool, say: Say) -> Seed | None:
    """Convert the seed of the command line; refuse one that is short enough to be found by trial."""
    if value is not None and value.bit_length() < SHORT_SEED_BITS:
        why = "can be found by trial"
        if not allow_short:
            raise InputError(
                f"{option('seed')} has fewer than {SHORT_SEED_BITS} bits, so it {why}; leave {option('seed')} out, or "
                f"add {option('allow_short_seed')} for an experiment"
            )
        say(f"warning: a short seed {why}; omit {option('seed')} for a real release")
    return None if value is None else Seed(value)


def work(settings: Publication) -> float:
    """Return the units of work of a run, for the progress bar."""
    lm = settings.lm_training.epochs * LM_UNITS if settings.method.needs_trajectory_lm else 0.0
    return lm + units(settings.method, settings.rounds)


def release_file(
    request: ReleaseRequest, file: CheckinFile, sha256: bytes, unfinished: Note | None, series: "Series | None",
    say: Say, report: Report,
) -> ReleasedRows:  # fmt: skip
    """Protect one region, which is in memory, and write the release."""
    planned = plan(request, file, say, series)
    part, request = planned.series, replace(request, seed=planned.request.seed)
    if part:
        part.start()

    def may_resume(error: Exception) -> bool:  # what failed for want of room or of a server
        full = isinstance(error, RuntimeError) and "memory" in str(error)
        return bool(part) or full or isinstance(error, OSError | MemoryError | ConnectionLost)

    with private_folder.running(request, sha256, unfinished, say, may_resume) as run:
        return _released(planned, request, run, say, report)


def _released(planned: Plan, request: ReleaseRequest, run: Run, say: Say, report: Report) -> ReleasedRows:
    """Draw the venues, write the release and publish it."""
    file, part = planned.file, planned.series
    if part:
        venues = part.draw(planned.whole, report)
    else:
        venues = protect_table(
            planned.whole, request.settings, run.seed, request.device, cache=run.folder.parent / "trajectory_lm",
            checkpoint=Checkpoint(run.folder / "checkpoint.safetensors", run.key, say), say=say, report=report,
        )  # fmt: skip
    report("writing the release", 0)
    further = part.store_private(run.folder, planned.rows) if part else ()
    released = release_rows(planned, venues, run.seed)
    write_pairs(run.folder / PAIRS, released)
    with private_folder.publishing(run, request) as staging:
        data = staging / data_name(file)
        for name, content in released.beside.items():
            with replacing(staging / name) as out:
                out.write(content)
        described = described_data(request, file, released, write_data(file.source.of_release(data), file, released))
        released = released.with_manifest(described | {"data": located(data, described["data"])})
        store_manifest(staging, released.manifest, request.private)
        if part:
            part.begin(released.manifest, venues, released.shown, released.users)
    if part:
        part.complete()
    keep_private(run, request.private, (*further, PAIRS))
    return released


def keep_private(run: Run, private: Path, names: Sequence[str]) -> None:
    """Move what stays private out of the folder of a run that is complete, and remove the folder."""
    other = (MAP, private_folder.PRIVATE_PAIRS) if PAIRS in names else {PAIRS, MAP}.difference(names)
    for stale in other:  # of an older run, by region or not
        shutil.rmtree(private / stale) if (private / stale).is_dir() else (private / stale).unlink(missing_ok=True)
    for name in (*names, private_folder.RUN):  # the note last: until it is moved, --resume can repeat all steps
        if (private / name).is_dir():
            shutil.rmtree(private / name)
        os.replace(run.folder / name, private / name)
    shutil.rmtree(run.folder)


def release_in_memory(request: RowsRequest, file: CheckinFile, say: Say, report: Report) -> ReleasedRows:
    """Protect a file and write nothing. The manifest has no hash of the data: it is in no file."""
    planned, seed = plan(request, file, say), request.seed or Seed.fresh()
    venues = protect_table(planned.whole, request.settings, seed, request.device, say=say, report=report)
    released = release_rows(planned, venues, seed)
    written = write_data(in_memory(file, released.beside), file, released)
    return released.with_manifest(described_data(request, file, released, written))


def write_pairs(path: Path, released: ReleasedRows) -> None:
    """Store the pairs and all venues, including those that the release never shows, for the private report."""
    table, venues, new = released.whole.table, released.whole.table.venues, released.users
    categories = np.append(table.category_ids.astype(str), "")  # row 0 of the venues has category -1
    further: dict[str, Any] = identity.map_arrays(table, new) if new else {}
    if new and (new.time != table.time[new.row]).any():
        further["time"] = table.time
    if released.whole.crowds:
        further["repeated"] = released.whole.crowds.repeated
    arrays = {
        "clean": table.venue, "released": released.venues.poi, "poi_id": table.venue_ids.astype(str),
        "lat": venues.lat, "lon": venues.lon, "category": categories[venues.category], "shown": released.shown,
    }  # fmt: skip
    with replacing(path, mode=0o600) as out:
        save_arrays(out, arrays | further)


def located(data: Path, described: dict[str, Any]) -> dict[str, Any]:
    """Return what the manifest says about the data, with the name and the hash of the file or of all parts."""
    hashes = file_hashes(data)
    parts = {} if "" in hashes else {"parts": hashes}
    return {"file": data.name, **described, "sha256": joint_hash(hashes), **parts}


def described_data(
    request: RowsRequest, file: CheckinFile, released: ReleasedRows, written: CheckinFile
) -> dict[str, Any]:  # fmt: skip
    """Return what the manifest says about the rows, and about the data as it reads back."""
    rule, reading, beside = request.settings.speed, file.reading.stated, released.beside
    data: dict[str, Any] = {"format": file.format}
    if reading:
        data["reading"] = reading | ({"venues": venue_file(file)} if file.venues else {})
    if beside:
        data["beside"] = {name: hashlib.sha256(content).hexdigest() for name, content in beside.items()}
    found = stated([released.figures])
    speed = fast_steps(written.table, rule.limit_kmh, rule.min_gap_s)
    data |= found.pop("data")
    return found | {"speed": speed, "data": data}


def in_memory(file: CheckinFile, beside: Mapping[str, bytes] | None = None) -> Source:
    """Return where the release of a file is written to that stays in memory, with the files next to it."""
    source = file.source.of_release(Path("the release"))
    return replace(source, content=b"", suffix=file.source.extension, beside=beside or {})


def write_data(target: Source, file: CheckinFile, released: ReleasedRows) -> CheckinFile:
    """Write the rows, read them back and compare every field. A stray quote that moved may need quotes of its own."""
    rows, changed = released.rows, released.manifest["columns"]["changed_with_the_venue"]
    written = _written(target, file, rows)
    if isinstance(written, str):
        written = _written(target, file, rows.requote(changed))
    if isinstance(written, str):
        raise InputError(
            f"{file.path} cannot be released: what was written does not read back the same ({written}); "
            'put fields that contain a quote into quotes and double the quote ("12"""), and use one encoding'
        )
    return written


def _written(target: Source, file: CheckinFile, rows: Rows) -> CheckinFile | str:
    """Write the rows and return the file as it reads back, or how it differs."""
    if target.in_memory:
        rows.write(memory := io.BytesIO())
        target = replace(target, content=memory.getvalue())
    else:
        rows.write_to(target.path)
    try:
        found = formats.read(target, file.mapping, file.format)
        return difference(rows, found.all_rows) or found
    except InputError as e:
        return e.text.replace(str(target), target.path.name)
