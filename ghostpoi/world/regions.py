"""Part the venues of all pieces into regions, and tell each piece where its venues are."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data import regions
from ghostpoi.data.checkins import Ints, joined_groups
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.options import option
from ghostpoi.settings import RegionSettings
from ghostpoi.world.job import Job, Region, is_done, leaving
from ghostpoi.world.survey import read_survey, surveys_of, venues_of
from ghostpoi.world.venues import TABLE, places_of, ranges_of

FOLDER, LIST, GROUPS = "regions", "regions.json", "groups.json"


def find_regions(job: Job) -> tuple[Region, ...]:
    """Return all regions, in the order of their keys."""
    place = job.folder / FOLDER
    if not is_done(place):
        with leaving(place) as folder:
            _find(job, folder)
    return tuple(Region(**one) for one in json.loads((place / LIST).read_text("utf-8")))


def region_of_rows(job: Job, number: int) -> Ints:
    """Return the region of each row of a piece, (N,). A row that lacks a value goes with the first that does not."""
    found = read_survey(job, number)
    if found is None:
        return np.empty(0, np.int32)
    numbers = ((np.load(job.folder / FOLDER / f"{one.name}.npy", mmap_mode="r"), one) for one in ranges_of(job))
    of_venue = np.concatenate([np.zeros(1, np.int32), *(own[places_of(one, number)] for own, one in numbers)])
    venue = found.venue
    of_venue[0] = of_venue[venue[venue > 0][:1]].sum()
    route: Ints = of_venue[venue]
    return route


def _find(job: Job, folder: Path) -> None:
    columns = ["lat", "lon", "rows", *(["region"] if job.region_column else [])]
    each = [pl.read_parquet(one / TABLE, columns=columns) for one in ranges_of(job)]
    venues = pl.concat(each)
    number = _numbers(job, venues)
    for one, own in zip(ranges_of(job), np.split(number, np.cumsum([len(table) for table in each])[:-1]), strict=True):
        np.save(folder / f"{one.name}.npy", own)
    listed = _listed(venues, number, _first_venues(job, number))
    _write_groups(job, folder)
    (folder / LIST).write_text(json.dumps([asdict(region) for region in listed]), "utf-8")


def regions_of(job: Job, file: CheckinFile) -> list[Region]:
    """Return the regions of a dataset that this process has read."""
    venues = venues_of(job, file, {})[0]
    number = _numbers(job, venues)
    return _listed(venues, number, venues[np.unique(number, return_index=True)[1]])


def _numbers(job: Job, venues: pl.DataFrame) -> Ints:
    """Return the number of the region of each venue; `venues` are in the order of their ids."""
    lat, lon, rows = (venues[name].to_numpy() for name in ("lat", "lon", "rows"))
    rank = np.arange(len(venues))
    if job.region_column:
        number = regions.numbered(venues["region"].rank("dense").to_numpy().astype(np.int32), rank)
    else:
        number = regions.numbered(regions.by_gap(lat, lon, job.settings.gap_km), rank)
    _check_size(job, int(number.max()) + 1, len(venues))
    cut = regions.cut(lat, lon, rows, number, rank, job.settings.most_venues, job.settings.most_rows)
    return regions.numbered(cut, rank)


def _listed(venues: pl.DataFrame, number: Ints, first: pl.DataFrame) -> list[Region]:
    """Describe regions; `first` has the first venue of each."""
    named = venues.with_columns(number=pl.Series(number)).group_by("number").agg(
        pl.col("lat", "lon").median(), pl.col("rows").sum(), venues=pl.len()
    ).sort("number")  # fmt: skip
    return [
        Region(
            row["number"], own["id"], own["region"] or f"near {row['lat']:.2f}, {row['lon']:.2f}", row["venues"],
            row["rows"],
        )
        for row, own in zip(named.iter_rows(named=True), first.iter_rows(named=True), strict=True)
    ]  # fmt: skip


def _first_venues(job: Job, number: Ints) -> pl.DataFrame:
    """Return the id of the first venue of each region, and the name of the region."""
    rank, before, found = np.unique(number, return_index=True)[1], 0, list[pl.DataFrame]()
    for one in ranges_of(job):
        own = pl.read_parquet(one / TABLE, columns=["id", "region"])
        here = rank[(rank >= before) & (rank < before + len(own))] - before
        found.append(own[here])
        before += len(own)
    return pl.concat(found)


def groups_of(job: Job) -> dict[str, str]:
    """Return the group of each category of the dataset, if a column states it. A region may hold other rows of one."""
    place = job.folder / FOLDER / GROUPS
    found: dict[str, str] = json.loads(place.read_text("utf-8")) if place.exists() else {}
    return found


def _write_groups(job: Job, folder: Path) -> None:
    each = (found.groups for found in surveys_of(job).values())
    (folder / GROUPS).write_text(json.dumps(joined_groups(each, str(job.pieces.path))), "utf-8")


def _check_size(job: Job, count: int, venues: int) -> None:
    """Refuse regions that the publisher made so small that most venues have no other to become."""
    if count == 1 or 2 * count <= venues:
        return
    column, gap = job.region_column, job.settings.gap_km
    if column or gap < RegionSettings().gap_km:
        asked = option("map", f"region={column}") if column else option("set", f"regions.gap_km={gap:g}")
        raise InputError(
            f"{asked}: {count:,} regions for {venues:,} venues would leave most rows genuine, because substitutes come "
            "from the same region; make regions larger, say cities, or leave the option out"
        )
