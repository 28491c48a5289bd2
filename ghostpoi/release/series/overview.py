"""What `series show` prints about a series folder, and what `series verify` checks."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.release.manifest import MANIFEST, complaint_about, read_manifest
from ghostpoi.release.series import ledger
from ghostpoi.release.series.ledger import DrawnRows, Entry, Series, damage, read_catalogue, read_series
from ghostpoi.release.verify import Check

MAX_NAMED = 3  # files that a check names
PRIVATE = ("private", "input", "data_sha256", "files")  # of an entry


def describe(folder: Path) -> dict[str, Any]:
    """Return what a series holds, without its seed."""
    series = read_series(folder)
    known = read_catalogue(series)
    crowds = known.members()
    return {
        "created": series.created,
        "method": series.method,
        "settings": series.settings,
        "columns": series.columns,
        "venues": len(known),
        "crowds": len(crowds),
        "guests": int((~known.member & ~known.hidden).sum()),
        "without_crowd": int((known.crowd == 0).sum()),
        "rows": sum(entry.rows - entry.repeated for entry in series.entries),
        "releases": [
            {name: value for name, value in asdict(entry).items() if name not in PRIVATE} for entry in series.entries
        ],
    }


def verify_series(folder: Path) -> list[Check]:
    """Check that nothing in the folder is lost or changed, and that ledger and releases agree."""
    series = read_series(folder)
    broken = damage(series)
    if broken:
        more = f" and {len(broken) - MAX_NAMED} more" if len(broken) > MAX_NAMED else ""
        detail = f"{'; '.join(broken[:MAX_NAMED])}{more}: restore the folder from a copy"
        return [Check("files", False, detail)]
    count = sum(len(entry.files) for entry in series.entries)
    return [
        Check("files", True, f"{count} files as the ledger names them"),
        _crowds(series),
        _draws(series),
        *(_release(entry) for entry in series.entries if entry.status != ledger.REPLACED),
    ]


def _crowds(series: Series) -> Check:
    try:
        known = read_catalogue(series)
    except InputError as e:
        return Check("crowds", False, e.text)
    empty = set(known.crowd[(known.crowd > 0) & ~known.hidden].tolist()) - set(known.members())
    detail = f"{len(known):,} venues in {len(known.members()):,} crowds, none of which has changed"
    return Check("crowds", not empty, f"{len(empty)} crowds have no members" if empty else detail)


def _draws(series: Series) -> Check:
    rows = DrawnRows.load([series.named("rows", entry.number, ".npz") for entry in series.entries])
    twice = len(rows.row) - len(np.unique(rows.row))
    detail = f"{len(rows.row):,} rows, each drawn once"
    return Check("draws", not twice, f"{twice:,} rows were drawn twice" if twice else detail)


def _release(entry: Entry) -> Check:
    """Compare an entry of the ledger with the release in its place, if it is still there."""
    name, path = f"release {entry.number}", Path(entry.release)
    if not (path / MANIFEST).is_file():
        if entry.status == ledger.BEGUN:
            return Check(name, False, f"begun and not at {path}; repeat its protect command with {option('resume')}")
        return Check(name, True, f"no longer at {path}, so not compared")
    try:
        manifest = read_manifest(path)
        problem = complaint_about(path, manifest)
    except InputError as e:
        return Check(name, False, e.text)
    if problem:
        return Check(name, False, f"{path}: {problem}")
    if manifest["data"]["sha256"] != entry.data_sha256:
        again = f"repeat its protect command with {option('resume')}"
        how = again if entry.status == ledger.BEGUN else "it was made outside the series"
        return Check(name, False, f"{path} holds other data than the ledger says; {how}")
    late = "; the next protect notes it as complete" if entry.status == ledger.BEGUN else ""
    return Check(name, True, f"{entry.rows:,} rows at {path}, as in the ledger{late}")
