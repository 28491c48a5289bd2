"""Where users cross from region to region: a session ends there, for no model knows both sides."""

import numpy as np
import polars as pl

from ghostpoi.data import regions
from ghostpoi.data.checkins import Bools
from ghostpoi.world.job import FRAGMENTS, SURVEY, Job, Region, is_done, leaving
from ghostpoi.world.routes import ROUTE
from ghostpoi.world.survey import Survey

FOLDER = "crossings"
AT_ONCE = 4_000_000  # pairs of a user and a region that are joined at once: bounds the memory


def find_crossings(job: Job) -> None:
    """Note the rows of each piece whose user was in another region in the row before."""
    place = job.folder / FOLDER
    if is_done(place) or len(job.regions) == 1:
        return
    travellers = _travellers(job)
    rows = pl.concat([_rows(job, number, travellers) for number in _pieces(job)])
    user = rows["user"].rank("dense").to_numpy().astype(np.int32)
    crossing = regions.crossings(user, rows["time"].to_numpy(), rows["region"].to_numpy())
    with leaving(place) as folder:
        for (number,), part in rows.filter(pl.Series(crossing)).group_by("piece"):
            np.save(folder / f"{number:06}.npy", np.sort(part["row"].to_numpy()))


def crossing_rows(job: Job, region: Region) -> Bools | None:
    """Mark the rows of a region, (N,), in the order of the dataset; None if nobody can cross."""
    folder = job.folder / FOLDER
    if not is_done(folder):
        return None
    found = []
    for number in region.pieces:
        route, path = np.load(job.result(FRAGMENTS, number) / ROUTE), folder / f"{number:06}.npy"
        crossing = np.zeros(len(route), bool)
        if path.exists():
            crossing[np.load(path)] = True
        found.append(crossing[route == region.number])
    return np.concatenate(found)


def _pieces(job: Job) -> list[int]:
    """The pieces that have rows."""
    return sorted({number for region in job.regions for number in region.pieces})


def _travellers(job: Job) -> pl.DataFrame:
    """The users with rows in several regions."""
    whole: list[pl.DataFrame] = []
    waiting = 0
    for number in _pieces(job):
        found, route = Survey(job.result(SURVEY, number)), np.load(job.result(FRAGMENTS, number) / ROUTE)
        pairs = pl.DataFrame({"number": found.user, "region": route}).filter(pl.col("number") >= 0).unique()
        whole.append(pairs.select(found.users.gather(pairs["number"]), "region"))
        waiting += len(pairs)
        if waiting > AT_ONCE:
            whole, waiting = [pl.concat(whole).unique()], 0
    return pl.concat(whole).unique().group_by("user").len().filter(pl.col("len") > 1).select("user")


def _rows(job: Job, number: int, travellers: pl.DataFrame) -> pl.DataFrame:
    """The rows of travellers in a piece."""
    found = Survey(job.result(SURVEY, number))
    users, user, route = found.users, found.user, np.load(job.result(FRAGMENTS, number) / ROUTE)
    travels = np.append(users.is_in(travellers["user"].implode()).to_numpy(), False)  # the last is for user -1
    row = np.flatnonzero(travels[user])
    return pl.DataFrame({
        "user": users.gather(user[row]), "time": found.time[row], "region": route[row],
        "piece": np.full(len(row), number, np.int32), "row": row,
    })  # fmt: skip
