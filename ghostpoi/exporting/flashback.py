"""Flashback (github.com/eXascaleInfolab/Flashback_code): check-ins as in Gowalla, each user's newest first."""

import numpy as np

from ghostpoi.data.checkins import Bools, Ints
from ghostpoi.exporting.base import ExportData, Visits
from ghostpoi.exporting.text import id_tables, iso, user_numbers

MINIMUM = 101  # check-ins: Flashback leaves out users with fewer
TRAINED = 0.8  # of a user's steps, the oldest
USAGE = """Copy the folder's `.txt` files to `data` of Flashback, then:

    python train.py --dataset {name}.txt

Flashback keeps users with at least {minimum} check-ins: {kept} of {users} here. Its `--batch-size` must not exceed
that. It skips the last user of a file, who is the one with the fewest check-ins. Users and venues are numbers;
`{name}.users.csv` and `{name}.venues.csv` give their ids. Times are UTC.
"""
SPLIT_USAGE = """
`{name}.test.txt` shows released venues where Flashback trains, and clean ones where it tests. `{name}.clean.txt` shows
clean venues only.
"""


class Flashback:
    """One file of all rows; with clean data, also one whose test rows are clean, and one of clean rows."""

    summary = "Flashback: NAME.txt and tables of ids; with --private, a file with clean test rows and one all clean"

    def files(self, data: ExportData) -> dict[str, str]:
        name, shown = data.name, data.released.venue
        found = {f"{name}.txt": _text(data, shown)} | id_tables(data)
        if data.clean is not None:
            found[f"{name}.test.txt"] = _text(data, np.where(trained(data.released), shown, data.clean))
            found[f"{name}.clean.txt"] = _text(data, data.clean)
        return found

    def usage(self, data: ExportData) -> str:
        rows = np.diff(data.released.start)
        counts = {"minimum": MINIMUM, "kept": int((rows >= MINIMUM).sum()), "users": len(rows)}
        return (USAGE + (SPLIT_USAGE if data.clean is not None else "")).format(name=data.name, **counts)


def trained(rows: Visits) -> Bools:
    """Mark the rows that Flashback sees in training, the last label included."""
    size = np.diff(rows.start)
    place = np.arange(len(rows.time)) - np.repeat(rows.start[:-1], size)
    last = ((size - 1) * TRAINED).astype(np.int64)
    return place <= np.repeat(last, size)


def _text(data: ExportData, venue: Ints) -> str:
    """Write users with the most check-ins first, and each one's rows from the newest to the oldest."""
    rows, venues, number = data.released, data.venues, user_numbers(data)
    users = np.argsort(-np.diff(rows.start), kind="stable")
    order = np.concatenate([np.arange(rows.start[u], rows.start[u + 1])[::-1] for u in users])
    at = venue[order]
    lines = zip(rows.user[order], iso(rows.time[order]), venues.lat[at], venues.lon[at], at, strict=True)
    return "".join(f"{number[user]}\t{time}Z\t{lat}\t{lon}\t{v}\n" for user, time, lat, lon, v in lines)
