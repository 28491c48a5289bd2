"""Join the venues of all pieces, a range of ids at a time: where each is, and how many visits it has."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Ints
from ghostpoi.errors import InputError
from ghostpoi.world.job import Job, is_done, leaving
from ghostpoi.world.ranges import read_range
from ghostpoi.world.survey import not_of_the_venue, surveys_of

STAGE = "venues"
TABLE, PLACES, BEGIN = "venues.parquet", "places.npy", "begin.npy"


def join_venues(job: Job, number: int, bounds: Sequence[str]) -> None:
    """Join the venues of a range. The earliest row tells where a venue is, the first piece if several have one."""
    place = job.result(STAGE, number)
    if is_done(place):
        return
    each = {piece: read_range(found.venues, bounds, number) for piece, found in surveys_of(job).items()}
    found = pl.concat(each.values())
    ordered = found.sort("id", "first", maintain_order=True)
    if job.region_column and (several := ordered.filter(pl.col("region").n_unique().over("id") > 1)).height:
        raise InputError(not_of_the_venue(job.region_column, several["id"][0]))
    joined = ordered.group_by("id", maintain_order=True).agg(
        pl.col("lat", "lon").first(), pl.col("rows").sum(), pl.col("region").first()
    )
    sizes = [each[piece].height if piece in each else 0 for piece in range(len(job.pieces.pieces))]
    with leaving(place) as folder:
        joined.write_parquet(folder / TABLE)
        np.save(folder / PLACES, found["id"].rank("dense").to_numpy().astype(np.int32) - 1)
        np.save(folder / BEGIN, np.cumsum([0, *sizes]))


def ranges_of(job: Job) -> list[Path]:
    """Return the results of all ranges. Together they have all venues in the order of their ids."""
    return sorted((job.folder / STAGE).glob("[0-9]*"))


def places_of(folder: Path, piece: int) -> Ints:
    """Return where the venues of a piece are in the table of a range."""
    begin, end = np.load(folder / BEGIN, mmap_mode="r")[piece : piece + 2]
    found: Ints = np.load(folder / PLACES, mmap_mode="r")[begin:end]
    return found
