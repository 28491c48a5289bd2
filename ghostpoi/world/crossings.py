"""Where users cross from region to region: a session ends there, for no model knows both sides."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ghostpoi.data import regions
from ghostpoi.data.checkins import Bools
from ghostpoi.world.job import FRAGMENTS, Job, Region, is_done, leaving
from ghostpoi.world.ranges import read_range
from ghostpoi.world.routes import ROUTE, Origin
from ghostpoi.world.survey import Survey, surveys_of

STAGE = "crossings"
ROWS, BEGIN = "rows.npy", "begin.npy"  # (M, 2) the piece and its row, region by region; where each region begins


def find_crossings(job: Job, number: int, bounds: Sequence[str]) -> None:
    """Note the rows of the users of a range whose user was in another region in the row before."""
    place = job.result(STAGE, number)
    if is_done(place):
        return
    each = surveys_of(job)
    users = pl.concat([_users(job, piece, found, bounds, number) for piece, found in each.items()])
    travels = users.filter(pl.col("low").min().over("id") < pl.col("high").max().over("id"))
    own = travels.partition_by("piece", as_dict=True, maintain_order=True)
    rows = pl.concat([_rows(job, piece, each[piece], some) for (piece,), some in own.items()] or [EMPTY])
    user = rows["id"].rank("dense").to_numpy().astype(np.int32)
    crossing = regions.crossings(user, rows["time"].to_numpy(), rows["region"].to_numpy())
    found = rows.filter(pl.Series(crossing)).sort("region", "piece", "row")
    with leaving(place) as folder:
        np.save(folder / ROWS, found.select("piece", "row").to_numpy())
        np.save(folder / BEGIN, np.searchsorted(found["region"].to_numpy(), np.arange(len(job.regions) + 1)))


def crossing_rows(job: Job, region: Region, origin: Origin) -> Bools | None:
    """Mark the rows of a region, (N,), which come from there; None if nobody can cross."""
    ranges = sorted((job.folder / STAGE).glob("[0-9]*"))
    if not ranges:
        return None
    marked = np.concatenate([
        np.load(one / ROWS, mmap_mode="r")[slice(*np.load(one / BEGIN, mmap_mode="r")[region.number :][:2])]
        for one in ranges
    ])  # fmt: skip
    pairs = ((origin.piece, origin.place), marked.T)
    every, crossing = (piece.astype(np.int64) << 32 | place for piece, place in pairs)
    return np.isin(every, crossing)


def _users(job: Job, piece: int, found: Survey, bounds: Sequence[str], number: int) -> pl.DataFrame:
    """The users of a range in a piece, and the first and the last region that each was in."""
    users = read_range(found.users, bounds, number)
    low = high = np.empty(0, np.int32)
    if len(users):
        begin = users["begin"].to_numpy()
        rows = found.by_user[begin[0] : begin[-1] + users["rows"][-1]]
        region = np.load(job.result(FRAGMENTS, piece) / ROUTE, mmap_mode="r")[rows]
        low, high = (side.reduceat(region, begin - begin[0]) for side in (np.minimum, np.maximum))
    return users.with_columns(low=pl.Series(low), high=pl.Series(high), piece=pl.lit(piece, pl.Int32))


def _rows(job: Job, piece: int, found: Survey, users: pl.DataFrame) -> pl.DataFrame:
    """The rows of users in a piece."""
    begin, size = users["begin"].to_numpy(), users["rows"].to_numpy()
    within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    row = found.by_user[np.repeat(begin, size) + within]
    route = np.load(job.result(FRAGMENTS, piece) / ROUTE, mmap_mode="r")
    return pl.DataFrame({
        "id": users["id"].gather(np.repeat(np.arange(len(users)), size)), "time": found.time[row],
        "region": route[row], "piece": np.full(len(row), piece, np.int32), "row": row,
    })  # fmt: skip


EMPTY = pl.DataFrame(schema={
    "id": pl.String, "time": pl.Int64, "region": pl.Int32, "piece": pl.Int32, "row": pl.Int32,
})  # fmt: skip
