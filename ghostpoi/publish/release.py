"""Make a release: the folder to publish, and the private folder, which must never be published.

The release folder holds the data and the manifest. The manifest is written last: its presence means that the release is
complete. The private folder, which only its owner may read, holds the seed, the (clean, released) pairs and models
trained on clean data.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi import __version__
from ghostpoi.data import formats
from ghostpoi.data.displacement import displacement, published
from ghostpoi.data.formats import CheckinFile, Rows
from ghostpoi.data.formats.compression import extension
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.progress import Report, Say
from ghostpoi.publish.column_rules import classify
from ghostpoi.publish.manifest import MANIFEST
from ghostpoi.publish.private_folder import RUN, ReleaseRequest, Run, begin, check_folders, resume
from ghostpoi.publish.protect import LM_UNITS, protect_table
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.publish.rounds import Checkpoint, units
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.whole_table import WholeTable, count_rows, donor_rows, fast_steps, prepare
from ghostpoi.randomness import Seed

SHORT_SEED_BITS = 64  # a shorter seed can be found by trying all of them on one leaked pair


def make_release(request: ReleaseRequest, say: Say, report: Report) -> dict[str, Any]:
    """Protect a file, write the release and return its manifest."""
    try:
        return _make(request, say, report)
    except OSError as e:
        raise InputError(
            f"{request.release} or {request.private} could not be written ({(e.strerror or str(e)).lower()}); "
            "free some space or choose other folders, then continue with --resume"
        ) from None


def given_seed(value: int | None, say: Say) -> Seed | None:
    """Convert the seed of the command line; warn if it is short enough to be found by trial."""
    if value is not None and value.bit_length() < SHORT_SEED_BITS:
        say(
            "warning: one leaked pair is enough to find a short seed by trial; omit --seed for a real release, "
            "and ghostpoi draws 128 bits from the operating system"
        )
    return None if value is None else Seed(value)


def work(settings: Publication) -> float:
    """Return the units of work of a run, for the progress bar."""
    lm = settings.lm_training.epochs * LM_UNITS if settings.method.needs_trajectory_lm else 0.0
    return lm + units(settings.method, settings.rounds)


def _make(request: ReleaseRequest, say: Say, report: Report) -> dict[str, Any]:
    unfinished = check_folders(request)
    file = formats.read(request.file, request.mapping)
    columns = classify(file.table, file.rows, file.mapping, request.file, request.keep)
    whole = prepare(file.table, request.settings)
    run = resume(request, file, unfinished) if unfinished else begin(request, file, say)
    released = protect_table(
        whole, request.settings, run.seed, request.device, cache=request.private / "trajectory_lm",
        checkpoint=Checkpoint(run.folder / "checkpoint.safetensors", run.key, say), say=say, report=report,
    )  # fmt: skip
    report("writing the release", 0)
    shown = np.flatnonzero(whole.has_candidates) if request.withhold else np.arange(len(whole.table))
    _write_pairs(run.folder / "pairs.npz", whole, released, shown)
    donor = donor_rows(whole, released, request.settings.method, run.seed)
    clean = file.rows if request.keep_metadata else file.rows.without_metadata()
    rows = clean.copy_fields(columns.change, donor)
    manifest = {  # everything in it is public
        "tool": {"name": "ghostpoi", "version": __version__},
        "method": request.method,
        "protocol": request.protocol,
        "settings": request.settings.public(),
        "columns": {"fields": file.mapping, "changed_with_the_venue": columns.change, "kept": columns.keep},
        "rows": count_rows(whole, released) | {"withheld": len(whole.table) - len(shown)},
        "plausibility": published(displacement(whole.table.venues, whole.table.venue, released.poi)),
    }
    manifest = _write_folder(request, run, file, rows.take(shown) if request.withhold else rows, manifest)
    for name in ("pairs.npz", RUN):  # the note last: until it is moved, --resume can repeat all steps
        os.replace(run.folder / name, request.private / name)
    shutil.rmtree(run.folder)
    return manifest


def _write_pairs(path: Path, whole: WholeTable, released: Substitution, shown: Any) -> None:
    """Store the pairs and all venues, including those that the release never shows, for the private report."""
    table, venues = whole.table, whole.table.venues
    categories = np.append(table.category_ids.astype(str), "")  # row 0 of the venues has category -1
    with replacing(path, mode=0o600) as out:
        np.savez_compressed(
            out, clean=table.venue, released=released.poi, poi_id=table.venue_ids.astype(str), lat=venues.lat,
            lon=venues.lon, category=categories[venues.category], shown=shown,
        )  # fmt: skip


def _write_folder(
    request: ReleaseRequest, run: Run, file: CheckinFile, rows: Rows, manifest: dict[str, Any]
) -> dict[str, Any]:
    """Write the release folder under a temporary name, then rename it."""
    release, speed = request.release.resolve(), request.settings.speed
    staging = release.with_name(f".{release.name}.{run.token}.partial")
    data = staging / f"checkins{extension(request.file)}"
    shutil.rmtree(staging, ignore_errors=True)  # left over from a killed process
    try:
        staging.mkdir()
        with replacing(data) as out:
            rows.write(out)
        written = formats.read(data, file.mapping, file.format).table
        manifest |= {
            "speed": fast_steps(written, speed.limit_kmh, speed.min_gap_s),
            "data": {
                "file": data.name,
                "format": file.format,
                "rows": len(written),
                "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
            },
        }
        with replacing(staging / MANIFEST) as out:
            out.write((json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
        _publish_folder(staging, release, request.force or request.resume)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return manifest


def _publish_folder(staging: Path, release: Path, replace: bool) -> None:
    """Rename a complete folder. An older release is removed only after the new one is in place."""
    old = staging.with_name(staging.name + ".old")
    if replace and release.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(release, old)
    try:
        os.replace(staging, release)  # fails if another process has created it
    except OSError:
        if old.exists():
            os.replace(old, release)
        raise
    shutil.rmtree(old, ignore_errors=True)
