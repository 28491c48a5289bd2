"""Trajectories: GETNext (github.com/songyangme/GETNext), Flashback (github.com/eXascaleInfolab/Flashback_code)."""

import re
from collections.abc import Iterator

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Bools, Ints
from ghostpoi.exports.base import Described, ExportData, Visits, csv_text

GETNEXT_COLUMNS = (
    "user_id", "POI_id", "POI_catid", "POI_catid_code", "POI_catname", "latitude", "longitude", "timezone", "UTC_time",
    "local_time", "day_of_week", "norm_in_day_time", "trajectory_id",
)  # fmt: skip
GETNEXT_FILES = {"train": "train", "valid": "val", "test": "test", "clean": "clean"}
DAY, SLOTS = 86_400, 48  # seconds; half hours
UNQUOTED = re.compile(r'[\s",]+')  # build_graph.py writes names as they are


class GETNext(Described):
    """One CSV file per part; without clean data, the parts of the released rows."""

    summary = "GETNext: NAME_train.csv, NAME_val.csv, NAME_test.csv and tables of ids; with --private, clean ones too"

    def files(self, data: ExportData) -> dict[str, str]:
        parts = data.parts or split(data.released)
        found = {GETNEXT_FILES[part]: csv_text(GETNEXT_COLUMNS, _rows(data, v)) for part, v in parts.items()}
        return {f"{data.name}_{part}.csv": text for part, text in found.items()} | data.id_tables

    def numbers(self, data: ExportData) -> dict[str, int]:
        trained, tested = (set(data.parts[part].user) if data.parts else set() for part in ("train", "test"))
        return {"known": len(tested & trained), "users": len(tested)}


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
    code = {category: k for k, category in enumerate(dict.fromkeys(data.venues.category[1:]))}
    time = pl.col("time").dt
    rows = data.rows(visits).select(
        "user", "venue", "category", "latitude", "longitude", "session", time.strftime("%Y-%m-%d %H:%M:%S+00:00"),
        day=time.weekday() - 1, slot=time.timestamp("ms") // 1000 % DAY * SLOTS // DAY,
    )  # fmt: skip
    for who, venue, category, lat, lon, session, when, day, slot in rows.iter_rows():
        kind = code[category], code[category], UNQUOTED.sub(" ", category)
        yield who, venue, *kind, lat, lon, 0, when, when, day, slot / SLOTS, f"{who}_{session}"


MINIMUM = 101  # check-ins: Flashback leaves out users with fewer
TRAINED = 0.8  # of a user's steps, the oldest


class Flashback(Described):
    """One file of all rows; with clean data, also one whose test rows are clean, and one of clean rows."""

    summary = "Flashback: NAME.txt and tables of ids; with --private, a file with clean test rows and one all clean"

    def files(self, data: ExportData) -> dict[str, str]:
        name, shown = data.name, data.released.venue
        found = {f"{name}.txt": _text(data, shown)} | data.id_tables
        if data.clean is not None:
            found[f"{name}.test.txt"] = _text(data, np.where(trained(data.released), shown, data.clean))
            found[f"{name}.clean.txt"] = _text(data, data.clean)
        return found

    def numbers(self, data: ExportData) -> dict[str, int]:
        rows = np.diff(data.released.start)
        return {"minimum": MINIMUM, "kept": int((rows >= MINIMUM).sum()), "users": len(rows)}


def trained(rows: Visits) -> Bools:
    """Mark the rows that Flashback sees in training, the last label included."""
    size = np.diff(rows.start)
    place = np.arange(len(rows.time)) - np.repeat(rows.start[:-1], size)
    last = ((size - 1) * TRAINED).astype(np.int64)
    return place <= np.repeat(last, size)


def _text(data: ExportData, venue: Ints) -> str:
    """Write users with the most check-ins first, and each one's rows from the newest to the oldest."""
    start, rows = data.released.start, data.rows(data.released, venue)
    users = np.argsort(-np.diff(start), kind="stable")
    order = np.concatenate([np.arange(start[u], start[u + 1])[::-1] for u in users])
    time = pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = rows[order].select("user", time, "latitude", "longitude", "venue").iter_rows()
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)
