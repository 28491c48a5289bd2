"""What `series show` prints about a series folder, what `series verify` checks, and what `series forget` removes.

The folder holds keyed hashes of rows and users. Those of one person are found by trying every second that a release
covers, so neither a clean file nor a private folder is needed to forget a person. Venues and their crowds stay:
without them, later releases would draw earlier visits again.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Bools
from ghostpoi.draw.noise import ByContent, hashed, plain
from ghostpoi.errors import InputError
from ghostpoi.files import locked
from ghostpoi.options import option
from ghostpoi.randomness import Seed
from ghostpoi.release.manifest import MANIFEST, complaint_about, read_manifest
from ghostpoi.release.series import ledger
from ghostpoi.release.series.ledger import Entry, Series
from ghostpoi.release.verify import Check
from ghostpoi.stores import fetched

MAX_NAMED = 3  # files that a check names
PRIVATE = ("private", "input", "data_sha256", "files")  # of an entry


def describe(folder: Path) -> dict[str, Any]:
    """Return what a series holds, without its seed."""
    series = ledger.read_series(folder)
    known = ledger.read_catalogue(series)
    crowds = known.members()
    releases = [{k: v for k, v in asdict(entry).items() if k not in PRIVATE} for entry in series.entries]
    return {
        "created": series.created, "method": series.method, "settings": series.settings, "columns": series.columns,
        "venues": len(known), "crowds": len(crowds), "guests": int((~known.member & ~known.hidden).sum()),
        "without_crowd": int((known.crowd == 0).sum()),
        "rows": sum(entry.rows - entry.repeated for entry in series.entries), "releases": releases,
    }  # fmt: skip


def verify_series(folder: Path) -> list[Check]:
    """Check that nothing in the folder is lost or changed, and that ledger and releases agree."""
    series = ledger.read_series(folder)
    broken = ledger.damage(series)
    if broken:
        more = f" and {len(broken) - MAX_NAMED} more" if len(broken) > MAX_NAMED else ""
        detail = f"{'; '.join(broken[:MAX_NAMED])}{more}: restore the folder from a backup"
        return [Check("files", False, detail)]
    count = sum(len(entry.files) for entry in series.entries)
    rows = ledger.kept(series, ledger.ROWS)["row"]
    twice = len(rows) - rows.n_unique()
    drawn = f"{twice:,} rows were drawn twice" if twice else f"{len(rows):,} rows, each drawn once"
    return [
        Check("files", True, f"{count} files as the ledger names them"),
        _crowds(series),
        Check("draws", not twice, drawn),
        *(_release(entry) for entry in series.entries if entry.status != ledger.REPLACED),
    ]


def _crowds(series: Series) -> Check:
    try:
        known = ledger.read_catalogue(series)
    except InputError as e:
        return Check("crowds", False, e.text)
    empty = set(known.crowd[(known.crowd > 0) & ~known.hidden].tolist()) - set(known.members())
    detail = f"{len(known):,} venues in {len(known.members()):,} crowds, none of which has changed"
    return Check("crowds", not empty, f"{len(empty)} crowds have no members" if empty else detail)


def _release(entry: Entry) -> Check:
    """Compare an entry of the ledger with the release in its place, if it is still there."""
    with fetched(entry.release) as path:
        return _compared(entry, path)


def _compared(entry: Entry, path: Path) -> Check:
    name = f"release {entry.number}"
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


SECONDS_AT_ONCE = 1 << 20


def forget(folder: Path, user: str) -> dict[str, Any]:
    """Remove what a series keeps of a person; refuse a person whom it does not know.

    Later files that hold rows of this person are refused from then on.
    """
    with locked(folder.resolve()):
        series = ledger.read_series(folder)
        if broken := ledger.damage(series):
            raise InputError(f"{folder}: {broken[0]}; restore the folder from a backup")
        written, rows, released = ledger.user_keys([user], series.seed)[0], 0, []
        for entry in series.entries:
            users = ledger.read(series, ledger.USERS, entry)
            if written in users["written"]:
                drawn = ledger.read(series, ledger.ROWS, entry)
                others = drawn.filter(~pl.Series(_rows_of(drawn, entry, user, series.seed)))
                rows += len(drawn) - len(others)
                released.append({name: getattr(entry, name) for name in ("number", "release", "private")})
                left = {ledger.ROWS: others, ledger.USERS: users.filter(pl.col("written") != written)}
                paths = [ledger.write(series, kind, entry.number, one) for kind, one in left.items()]
                files = entry.files | ledger.hashes_of(paths)
                series = series.entry(replace(entry, files=files))
        if not released:
            raise InputError(f"{folder} has released no rows of the user {user!r}; give the id as the files write it")
        replace(series, forgotten=tuple(sorted({*series.forgotten, ledger.forgotten_key(user, series.seed)}))).store()
    return {"user": user, "rows": rows, "releases": released}


def _rows_of(rows: pl.DataFrame, entry: Entry, user: str, seed: Seed) -> Bools:
    """Mark the rows of a person, (R,), by the keys of all moments that the release covers."""
    found = np.zeros(len(rows), bool)
    who = hashed([plain(user)], seed, "users")
    for begin in range(entry.first, entry.last + 1, SECONDS_AT_ONCE):
        time = np.arange(begin, min(begin + SECONDS_AT_ONCE, entry.last + 1), dtype=np.int64)
        nobody = np.zeros(len(time), np.int32)
        moments = ByContent(seed, who, nobody, time, nobody.astype(np.uint64)).words(1, ledger.MOMENT)[0]
        found |= np.isin(rows["moment"], moments)
    return found
