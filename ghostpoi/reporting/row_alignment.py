"""The rows of two releases side by side. They may come from any tool, but must be releases of one file."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.errors import InputError
from ghostpoi.reporting.release_view import ReleaseView

Key = tuple[str, int, int]  # user, time, and the number of the row among those with the same user and time


def align(main: ReleaseView, other: ReleaseView, path: Path, users: Sequence[str] | None = None) -> Longs:
    """Return the row of `other` with the user and time of each row of `main`, (N,); -1 where it withholds the row.

    Each may have withheld rows, as many as its manifest says, and no other row may be missing. `users` (N,) are the
    clean user ids of the rows of `main`; without them, only times are compared where pseudonyms hide the users of
    either, so rows of one time may be exchanged.
    """
    if users is not None and other.pseudonyms:
        raise InputError(
            f"--compare {path}: its user ids are pseudonyms, so its rows cannot be put beside clean ones; "
            "compare a release that keeps user ids, or leave --with-clean out"
        )
    ours = _keys(main.table, users or main.table.user_ids[main.table.user].tolist())
    theirs = _keys(other.table, other.table.user_ids[other.table.user].tolist())
    if users is None and (main.pseudonyms or other.pseudonyms):
        ours, theirs = (_keys(view.table, [""] * len(view.table)) for view in (main, other))
    row = dict(zip(theirs, range(len(theirs)), strict=True))
    found = np.array([row.get(key, -1) for key in ours], np.int64)
    missing, known = np.flatnonzero(found < 0), set(ours)
    extra = [key for key in theirs if key not in known]
    same_file = len(ours) + main.withheld == len(theirs) + other.withheld
    if same_file and len(missing) <= other.withheld and len(extra) <= main.withheld and len(missing) < len(ours):
        return found
    if len(missing) > other.withheld:
        what = f"it lacks {len(missing):,} rows of the release, for example {_shown(ours[missing[0]])}"
    elif len(extra) > main.withheld:
        what = f"it has {len(extra):,} rows that the release lacks, for example {_shown(extra[0])}"
    else:
        what = f"it and the release withheld {other.withheld:,} and {main.withheld:,} rows of files of different length"
    raise InputError(f"--compare {path}: {what}; compare releases of one file")


def _shown(key: Key) -> str:
    return f"{f'user {key[0]} at ' if key[0] else ''}{datetime.fromtimestamp(key[1], UTC):%Y-%m-%dT%H:%M:%SZ}"


def _keys(table: Checkins, users: Sequence[str]) -> list[Key]:
    seen: Counter[tuple[str, int]] = Counter()
    keys = []
    for user, time in zip(users, table.time.tolist(), strict=True):
        keys.append((user, time, seen[user, time]))
        seen[user, time] += 1
    return keys
