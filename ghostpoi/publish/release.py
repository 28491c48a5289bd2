"""Make a release: the folder to publish, and the private folder, which must never be published.

The release folder holds the data and the manifest. The manifest is written last: its presence means that the release is
complete. The private folder, which only its owner may read, holds the seed, the (clean, released) pairs and models
trained on clean data.
"""

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi import __version__
from ghostpoi.data import formats
from ghostpoi.data.checkins import Longs
from ghostpoi.data.formats import CheckinFile, Rows
from ghostpoi.data.formats.folder import write_rows
from ghostpoi.errors import InputError
from ghostpoi.files import file_hashes, joint_hash, locked, replacing
from ghostpoi.progress import Report, Say
from ghostpoi.publish import pseudonyms
from ghostpoi.publish.figures import figures
from ghostpoi.publish.kept_rows import check_kept, in_file
from ghostpoi.publish.kept_table import KeptTable
from ghostpoi.publish.manifest import NO_CATEGORY, store_manifest
from ghostpoi.publish.methods import FreeDraw
from ghostpoi.publish.parts import check_parts, check_sets
from ghostpoi.publish.private_folder import (
    RUN,
    UNFINISHED,
    ReleaseRequest,
    Run,
    begin,
    check_folders,
    check_places,
    resume,
)
from ghostpoi.publish.protect import LM_UNITS
from ghostpoi.publish.pseudonyms import PAIRS
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.publish.rounds import units
from ghostpoi.publish.row_comparison import difference
from ghostpoi.publish.series.series_release import SeriesRelease, open_series
from ghostpoi.publish.series.settings_check import series_columns
from ghostpoi.publish.single_release import SingleRelease
from ghostpoi.publish.staging import clean_up, publish_folder, staging_folder
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.venue_files import classify_file, data_name, files_beside, split_columns, venue_file
from ghostpoi.publish.whole_table import (
    WholeTable,
    category_groups,
    check_category,
    fast_steps,
    grouped,
    prepare,
    published_aggregates,
)
from ghostpoi.randomness import Seed

SHORT_SEED_BITS = 64  # a shorter seed can be found by trying all of them


def make_release(request: ReleaseRequest, say: Say, report: Report) -> dict[str, Any]:
    """Protect a file, write the release and return its manifest."""
    try:
        check_places(request)
        release, private = request.release.resolve(), request.private.resolve()
        with locked(release), locked(private), locked(request.series.resolve()) if request.series else nullcontext():
            clean_up(release, private / UNFINISHED)
            return _make(request, say, report)
    except OSError as e:
        folders = " or ".join(str(folder) for folder in (request.release, request.private, request.series) if folder)
        raise InputError(
            f"{folders} could not be written ({(e.strerror or str(e)).lower()}); "
            "free some space or choose other folders, then continue with --resume"
        ) from None


def given_seed(value: int | None, allow_short: bool, say: Say) -> Seed | None:
    """Convert the seed of the command line; refuse one that is short enough to be found by trial."""
    if value is not None and value.bit_length() < SHORT_SEED_BITS:
        why = "can be found by trial, for the method random from the release alone"
        if not allow_short:
            raise InputError(
                f"--seed has fewer than {SHORT_SEED_BITS} bits, so it {why}; leave --seed out, "
                "or add --allow-short-seed for an experiment"
            )
        say(
            f"warning: a short seed {why}; omit --seed for a real release, "
            "and ghostpoi draws 128 bits from the operating system"
        )
    return None if value is None else Seed(value)


def work(settings: Publication) -> float:
    """Return the units of work of a run, for the progress bar."""
    lm = settings.lm_training.epochs * LM_UNITS if settings.method.needs_trajectory_lm else 0.0
    return lm + units(settings.method, settings.rounds)


def _make(request: ReleaseRequest, say: Say, report: Report) -> dict[str, Any]:
    unfinished = check_folders(request)
    series = open_series(request)
    file = formats.read(request.file, request.mapping)
    check_category(file.table, request.settings.method)
    table = grouped(file.table, request.groups, request.settings.method)
    hidden = pseudonyms.wanted(file, request.settings)
    columns = classify_file(file, request.keep, request.drop, hidden)
    if hidden is None:  # else rows are divided anew
        check_parts(file, columns.change)
    if series:
        columns = series_columns(series, file, columns, request, hidden)
    hides_users = request.settings.identity.pseudonyms != "keep"
    noted = check_kept(file, hides_users)
    rows = file.all_rows if len(file.kept) else file.rows
    rows = (rows if request.keep_metadata else rows.without_metadata()).drop(columns.drop)
    for text in [*columns.warnings, *([noted] if noted else [])]:
        say(f"warning: {text}")
    part: SingleRelease | SeriesRelease = SingleRelease(request, file, columns, table)
    if series:
        part = SeriesRelease.plan(series, request, file, table, columns)
    request = part.request
    whole = prepare(part.table, request.settings)
    if hidden is None:
        check_sets(file, None if isinstance(request.settings.method, FreeDraw) else whole.venue_sets)
    part.start()
    run = resume(request, file, unfinished) if unfinished else begin(request, file, say)
    released = part.draw(whole, run, say, report)
    report("writing the release", 0)
    shown = np.flatnonzero(whole.has_candidates) if request.withhold else np.arange(len(whole.table))
    _, shown_in_file = in_file(file, np.arange(len(whole.table)), shown)
    further = part.store_private(run.folder, rows)
    rows, new, user = part.with_fields(rows, whole, released, run.seed, hides_users), None, file.mapping["user"]
    if hides_users:
        new = part.users(whole, shown, run.seed, rows.largest_number(user))
        shown = new.row
        rows = rows.take(shown).replace_ids(user, new.released_ids)
    elif request.withhold:
        rows = rows.take(shown_in_file)
    _write_pairs(run.folder / PAIRS, whole, released, shown, new)
    manifest = {  # everything in it is public
        "tool": {"name": "ghostpoi", "version": __version__},
        "method": request.method,
        "protocol": request.protocol,
        "settings": request.settings.public(),
        "columns": {
            "fields": file.mapping,
            "changed_with_the_venue": columns.change,
            "kept": columns.keep,
            "dropped": list(dict.fromkeys([*columns.drop, *split_columns(file, request.drop)[1]])),
            "kept_on_request": [name for name in columns.keep if name in request.keep]
            + split_columns(file, request.keep)[1],
        },
        "disclosure": {
            "category": request.settings.method.keeps_category if table.category_field else NO_CATEGORY,
            "category_groups": category_groups(whole, request.settings.method),
            "aggregates": published_aggregates(table, request.settings.method),
        },
        **({} if new is None else {"identity": new.public}),
        **part.public,
        **figures(whole, request.settings.method, released, shown, file.counted),
    }
    visits = Counter(whole.table.venue_ids[released.poi[shown]].tolist())
    users = whole.table.user_ids[np.unique(whole.table.user[shown])] if new is None else np.unique(new.released_ids)
    beside = files_beside(file, request.keep, request.drop, visits, users.tolist())
    with _written_folder(request, run, file, rows, manifest, beside) as staging:
        part.begin(manifest, released, shown, new)
        publish_folder(staging, request.release.resolve(), request.force or request.resume)
    part.complete()
    for name in (*further, PAIRS, RUN):  # the note last: until it is moved, --resume can repeat all steps
        os.replace(run.folder / name, request.private / name)
    shutil.rmtree(run.folder)
    return manifest


def _write_pairs(
    path: Path, whole: WholeTable, released: Substitution, shown: Longs, new: pseudonyms.NewUsers | None
) -> None:
    """Store the pairs and all venues, including those that the release never shows, for the private report.

    `shown` (M,) is the clean row of each released row.
    """
    table, venues = whole.table, whole.table.venues
    categories = np.append(table.category_ids.astype(str), "")  # row 0 of the venues has category -1
    further: dict[str, Any] = pseudonyms.map_arrays(table, new) if new else {}
    if isinstance(table, KeptTable):
        further["repeated"] = table.repeated
    with replacing(path, mode=0o600) as out:
        np.savez_compressed(
            out, clean=table.venue, released=released.poi, poi_id=table.venue_ids.astype(str), lat=venues.lat,
            lon=venues.lon, category=categories[venues.category], shown=shown,
            **further,
        )  # fmt: skip


@contextmanager
def _written_folder(
    request: ReleaseRequest, run: Run, file: CheckinFile, rows: Rows, manifest: dict[str, Any], beside: dict[str, bytes]
) -> Iterator[Path]:
    """Write the release folder in a private place, and what depends on the data into the manifest.

    `beside`: files that belong to the data.
    """
    release, speed = request.release.resolve(), request.settings.speed
    with staging_folder(run, release) as staging:
        data = staging / data_name(file)
        for name, content in beside.items():
            with replacing(staging / name) as out:
                out.write(content)
        written = _write_data(data, file, rows, manifest["columns"]["changed_with_the_venue"])
        stated = file.reading.stated
        manifest |= {
            "speed": fast_steps(written.table, speed.limit_kmh, speed.min_gap_s),
            "data": {
                "file": data.name,
                "format": file.format,
                **({"reading": stated | ({"venues": venue_file(file)} if file.venues else {})} if stated else {}),
                **({"beside": {name: hashlib.sha256(c).hexdigest() for name, c in beside.items()}} if beside else {}),
                "rows": len(written.table) + len(written.kept),
                "sha256": joint_hash(hashes := file_hashes(data)),
                **({} if "" in hashes else {"parts": hashes}),
            },
        }
        store_manifest(staging, manifest, request.private)
        yield staging


def _write_data(path: Path, file: CheckinFile, rows: Rows, changed: list[str]) -> CheckinFile:
    """Write the rows, read them back and compare every field. A stray quote that moved may need quotes of its own."""
    written = _written(path, file, rows)
    if isinstance(written, str):
        written = _written(path, file, rows.requote(changed))
    if isinstance(written, str):
        raise InputError(
            f"{file.path} cannot be released: what was written does not read back the same ({written}); "
            'put fields that contain a quote into quotes and double the quote ("12"""), and use one encoding'
        )
    return written


def _written(path: Path, file: CheckinFile, rows: Rows) -> CheckinFile | str:
    """Write the rows and return the file as it reads back, or how it differs."""
    write_rows(path, rows)
    try:
        found = formats.read(path, file.mapping, file.format, file.reading.of_release(path.parent))
        return difference(rows, found.all_rows) or found
    except InputError as e:
        return str(e).replace(str(path), path.name)
