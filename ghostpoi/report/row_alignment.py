"""The rows of two releases side by side. They may come from any tool, but must be releases of one file."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.errors import InputError
from ghostpoi.report.release_view import ReleaseView

Key = tuple[str, int, int]  # user, time, and the number of the row among those with the same user and time


def align(main: ReleaseView, other: ReleaseView, path: Path) -> Longs:
    """Return the row of `other` with the user and time of each row of `main`, (N,); -1 where it withholds the row.

    Each may have withheld rows, as many as its manifest says, and no other row may be missing.
    """
    ours, theirs = _keys(main.table), _keys(other.table)
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
    return f"user {key[0]} at {datetime.fromtimestamp(key[1], UTC):%Y-%m-%dT%H:%M:%SZ}"


def _keys(table: Checkins) -> list[Key]:
    seen: Counter[tuple[str, int]] = Counter()
    keys = []
    for user, time in zip(table.user_ids[table.user].tolist(), table.time.tolist(), strict=True):
        keys.append((user, time, seen[user, time]))
        seen[user, time] += 1
    return keys
