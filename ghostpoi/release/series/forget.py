"""Remove a person from a series folder, for a request of erasure.

The folder holds keyed hashes of rows and users. Those of one person are found by trying every second that a release
covers, so neither a clean file nor a private folder is needed. Venues and their crowds stay: without them, later
releases would draw earlier visits again.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.data.checkins import Bools
from ghostpoi.draw.noise import ByContent, hashed, plain
from ghostpoi.errors import InputError
from ghostpoi.files import locked
from ghostpoi.randomness import Seed
from ghostpoi.release.series.ledger import (
    MOMENT,
    DrawnRows,
    Entry,
    KnownUsers,
    Series,
    damage,
    forgotten_key,
    read_series,
    sha256,
)

SECONDS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Trace:
    """What a series keeps of a person from one release."""

    entry: Entry
    rows: DrawnRows
    users: KnownUsers
    mine: Bools  # (R,)
    known: Bools  # (U,)


def forget(folder: Path, user: str) -> dict[str, Any]:
    """Remove what a series keeps of a person; refuse a person whom it does not know.

    Later files that hold rows of this person are refused from then on.
    """
    with locked(folder.resolve()):
        series = read_series(folder)
        if broken := damage(series):
            raise InputError(f"{folder}: {broken[0]}; restore the folder from a copy")
        traces = [_trace(series, entry, user) for entry in series.entries]
        if not any(trace.known.any() for trace in traces):
            raise InputError(f"{folder} has released no rows of the user {user!r}; check the id")
        for trace in traces:
            if trace.known.any() or trace.mine.any():
                series = _without(series, trace)
        replace(series, forgotten=tuple(sorted({*series.forgotten, forgotten_key(user, series.seed)}))).store()
    return {
        "user": user,
        "rows": int(sum(trace.mine.sum() for trace in traces)),
        "releases": [
            {name: getattr(trace.entry, name) for name in ("number", "release", "private")}
            for trace in traces if trace.known.any()
        ],
    }  # fmt: skip


def _trace(series: Series, entry: Entry, user: str) -> Trace:
    path = series.named("rows", entry.number, ".npz")
    rows, users = DrawnRows.load([path]), KnownUsers.load([path])
    meant = hashed([plain(user)], series.seed, "known users")[:, 0]
    known = np.isin(users.meant, meant)
    mine = _rows_of(rows, entry, user, series.seed) if known.any() else np.zeros(len(rows.row), bool)
    return Trace(entry, rows, users, mine, known)


def _rows_of(rows: DrawnRows, entry: Entry, user: str, seed: Seed) -> Bools:
    """Mark the rows of a person, (R,), by the keys of all moments that the release covers."""
    found = np.zeros(len(rows.row), bool)
    who = hashed([plain(user)], seed, "users")
    for begin in range(entry.first, entry.last + 1, SECONDS_AT_ONCE):
        time = np.arange(begin, min(begin + SECONDS_AT_ONCE, entry.last + 1), dtype=np.int64)
        nobody = np.zeros(len(time), np.int32)
        moments = ByContent(seed, who, nobody, time, nobody.astype(np.uint64)).words(1, MOMENT)[0]
        found |= np.isin(rows.moment, moments)
    return found


def _without(series: Series, trace: Trace) -> Series:
    """Write the rows and users of a release without a person, and return the series that names the new file."""
    path, keep = series.named("rows", trace.entry.number, ".npz"), ~trace.mine
    rows = DrawnRows(*(getattr(trace.rows, name)[keep] for name in ("row", "moment", "venue", "user")))
    rows.save(path, KnownUsers(trace.users.written[~trace.known], trace.users.meant[~trace.known]))
    return series.entry(replace(trace.entry, files=trace.entry.files | {path.name: sha256(path)}))
