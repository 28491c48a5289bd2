"""GETNext (github.com/songyangme/GETNext): CSV files of trajectories to train, validate and test on."""

import re
from collections.abc import Iterator

import numpy as np

from ghostpoi.data.checkins import Bools
from ghostpoi.exporting.base import ExportData, Visits
from ghostpoi.exporting.text import csv_text, id_tables, iso, session_of, user_numbers

COLUMNS = (
    "user_id", "POI_id", "POI_catid", "POI_catid_code", "POI_catname", "latitude", "longitude", "timezone", "UTC_time",
    "local_time", "day_of_week", "norm_in_day_time", "trajectory_id",
)  # fmt: skip
FILES = {"train": "train", "valid": "val", "test": "test", "clean": "clean"}
DAY, SLOTS = 86_400, 48  # seconds; half hours
UNQUOTED = re.compile(r'[\s",]+')  # build_graph.py writes names as they are
USAGE = """Copy this folder to `dataset/{name}` of GETNext, name it and its training file in `build_graph.py`, run
`python build_graph.py`, then:

    python train.py --data-train dataset/{name}/{name}_train.csv --data-val dataset/{name}/{name}_val.csv \\
        --data-adj-mtx dataset/{name}/graph_A.csv --data-node-feats dataset/{name}/graph_X.csv

Users, venues and categories are numbers; `{name}.users.csv` and `{name}.venues.csv` give their ids. Times are UTC, also
in `local_time`.
"""
PUBLIC_USAGE = """
All rows are released ones. A pause of more than a day ends a trajectory; each user's first 80% are for training, the
next 10% for validation.
"""
SPLIT_USAGE = """
`train` shows released venues; `clean` shows the clean venues of the same rows; `val` and `test` are clean. GETNext
skips trajectories of users that it has not trained on: {known} of {users} test users are in `train`.
"""


class GETNext:
    """One CSV file per part; without clean data, the parts of the released rows."""

    summary = "GETNext: NAME_train.csv, NAME_val.csv, NAME_test.csv and tables of ids; with --private, clean ones too"

    def files(self, data: ExportData) -> dict[str, str]:
        parts = data.parts or split(data.released)
        found = {f"{data.name}_{FILES[part]}.csv": csv_text(COLUMNS, _rows(data, v)) for part, v in parts.items()}
        return found | id_tables(data)

    def usage(self, data: ExportData) -> str:
        trained, tested = (set(data.parts[part].user) if data.parts else set() for part in ("train", "test"))
        text = USAGE + (SPLIT_USAGE if data.parts else PUBLIC_USAGE)
        return text.format(name=data.name, known=len(tested & trained), users=len(tested))


def split(rows: Visits) -> dict[str, Visits]:
    """Cut each user's rows into trajectories, and split these in time order."""
    first = np.diff(rows.time, prepend=rows.time[0]) > DAY
    first[rows.start[:-1]] = True
    start = np.append(np.flatnonzero(first), len(rows.time))
    owner = np.searchsorted(rows.start, start[:-1], side="right")
    count, place = np.bincount(owner)[owner], np.arange(len(owner)) - np.searchsorted(owner, owner)
    part = (10 * place >= 8 * count).astype(int) + (10 * place >= 9 * count)
    return {name: _take(rows, start, part == k) for k, name in enumerate(("train", "valid", "test"))}


def _take(rows: Visits, start: np.ndarray, which: Bools) -> Visits:
    size = np.diff(start)
    keep = np.repeat(which, size)
    return Visits(rows.user[keep], rows.venue[keep], rows.time[keep], np.append(0, np.cumsum(size[which])))


def _rows(data: ExportData, visits: Visits) -> Iterator[tuple[object, ...]]:
    venues, number = data.venues, user_numbers(data)
    code = {category: k for k, category in enumerate(dict.fromkeys(venues.category[1:]))}
    lat, lon, days = venues.lat.tolist(), venues.lon.tolist(), visits.time // DAY
    weekday = ((days + 3) % 7).tolist()  # 1 January 1970 was a Thursday
    slot = ((visits.time - DAY * days) * SLOTS // DAY / SLOTS).tolist()
    rows = zip(visits.user, visits.venue.tolist(), iso(visits.time), weekday, slot, session_of(visits), strict=True)
    for user, v, time, day, in_day, session in rows:
        category, when, who = venues.category[v], time.replace("T", " ") + "+00:00", number[user]
        name = UNQUOTED.sub(" ", category)
        kind = code[category], code[category], name
        yield who, v, *kind, lat[v], lon[v], 0, when, when, day, in_day, f"{who}_{session}"
