"""Read and validate one piece; leave the venues that it has, and the venue of every row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.formats import CheckinFile
from ghostpoi.errors import InputError
from ghostpoi.world.job import SURVEY, Job, is_done, leaving
from ghostpoi.world.pieces import read_piece

ARRAYS, VISITS = "arrays.npz", "visits.npz"


@dataclass(frozen=True)
class Visits:
    """Who was where when, in a piece. Rows that lack a value have user -1."""

    user: Ints  # (N,)
    ids: NDArray[np.str_]  # of the users
    time: Longs  # (N,)


@dataclass(frozen=True)
class Survey:
    """What is known of a piece. Rows that lack a value have venue 0."""

    kind: tuple[str, ...]  # format, columns and fields: the same for all pieces
    venue: Ints  # (N,) from 1
    ids: NDArray[np.str_]  # (V+1,)
    lat: NDArray[np.float64]  # (V+1,)
    lon: NDArray[np.float64]  # (V+1,)
    first: Longs  # (V+1,) the time of the earliest row
    region: NDArray[np.str_]  # (V+1,) the value of the column that names regions, in that row; empty without one

    @property
    def visits(self) -> Longs:
        """(V+1,) the number of rows of each venue."""
        return np.bincount(self.venue, minlength=len(self.ids)) * (np.arange(len(self.ids)) > 0)


def survey(job: Job, number: int) -> None:
    """Survey a piece."""
    place = job.result(SURVEY, number)
    if is_done(place):
        return
    with job.reads():
        file = read_piece(job.pieces.pieces[number], job.request.mapping)
    with leaving(place) as folder:
        arrays: dict[str, Any] = {} if file is None else _arrays(job, file)
        np.savez(folder / ARRAYS, **arrays)
        if file is not None:
            user, time = np.full((2, len(file.table) + len(file.missing)), -1)
            user[file.present], time[file.present] = file.table.user, file.table.time
            np.savez(folder / VISITS, user=user.astype(np.int32), ids=file.table.user_ids.astype(str), time=time)


def _arrays(job: Job, file: CheckinFile) -> dict[str, NDArray[Any]]:
    table = file.table
    venue = np.zeros(len(table) + len(file.missing), np.int32)
    venue[file.present] = table.venue
    order = np.argsort(table.time, kind="stable")
    first = np.zeros(len(table.venue_ids), np.int64)
    first[table.venue[order[::-1]]] = order[::-1]
    named = np.full(len(first), "")
    if job.region_column:
        if job.region_column not in file.all_rows.columns:
            listed = ", ".join(file.all_rows.columns)
            raise InputError(
                f"--map region={job.region_column}: {file.path} has no column {job.region_column!r}; its columns are "
                f"{listed}"
            )
        named = file.rows.get_column(job.region_column).gather(first).cast(str).fill_null("").to_numpy().astype(str)
    kind = [file.format, *file.all_rows.columns, *(f"{field}={column}" for field, column in file.mapping.items())]
    return {
        "kind": np.array(kind), "venue": venue, "ids": table.venue_ids.astype(str), "lat": table.venues.lat,
        "lon": table.venues.lon, "first": table.time[first], "region": named,
    }  # fmt: skip


def read_survey(job: Job, number: int) -> Survey | None:
    """Read what `survey` left; None if the piece has no rows."""
    with np.load(job.result(SURVEY, number) / ARRAYS, allow_pickle=False) as found:
        if not found.files:
            return None
        arrays = {name: found[name] for name in found.files}
    return Survey(tuple(arrays.pop("kind").tolist()), **arrays)


def read_visits(job: Job, number: int) -> Visits:
    """Read who was where when in a piece that has rows."""
    with np.load(job.result(SURVEY, number) / VISITS, allow_pickle=False) as found:
        return Visits(found["user"], found["ids"], found["time"])
