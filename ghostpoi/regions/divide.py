"""Part the venues of all pieces into regions, send each row to its region, and find where users cross."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data import regions
from ghostpoi.data.checkins import Bools, Ints, Longs, joined_groups
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.options import option
from ghostpoi.regions.job import FRAGMENTS, Job, Region, is_done, joint, leaving
from ghostpoi.regions.packs import numbers_of, write_pack
from ghostpoi.regions.pieces import raw_rows
from ghostpoi.regions.survey import TABLE, Survey, places_of, ranges_of, read_range, read_survey, surveys_of, venues_of
from ghostpoi.release.refusals import in_file
from ghostpoi.settings import RegionSettings

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


ROUTE = "route.npy"  # next to the pack of a piece: the region of each row
TOGETHER = -1  # in the pack of a piece: the number of the rows of a sample of regions, in their order


@dataclass(frozen=True)
class Origin:
    """From where the rows of a region come, (N,): in the order of the dataset."""

    piece: Ints
    place: Ints  # in the piece

    @staticmethod
    def of(places: Mapping[int, Ints]) -> "Origin":
        """Join the places in each piece."""
        sizes = [len(own) for own in places.values()]
        return Origin(np.repeat(np.array([*places], np.int32), sizes), np.concatenate([*places.values()]))

    def shown(self, file: CheckinFile, rows: Longs) -> dict[int, Ints]:
        """Return the places in each piece that a release shows: these rows of the table, and those it keeps."""
        row = in_file(file, np.arange(len(file.table)), rows)[1] if len(file.kept) else file.present[rows]
        pieces, begin = np.unique(self.piece[row], return_index=True)
        return dict(zip(pieces.tolist(), np.split(self.place[row], begin[1:]), strict=True)) if len(row) else {}


def regions_in(job: Job, piece: int) -> list[int]:
    """Return the regions that a piece has rows in."""
    return [number for number in numbers_of(job.result(FRAGMENTS, piece)) if number != TOGETHER]


def with_pieces(job: Job) -> Job:
    """Let each region know the pieces that have rows in it."""
    here: dict[int, list[int]] = {region.number: [] for region in job.regions}
    for piece in job.pieces.pieces:
        for region in regions_in(job, piece.number):
            here[region].append(piece.number)
    return replace(job, regions=tuple(replace(one, pieces=tuple(here[one.number])) for one in job.regions))


TAIL = "tail"  # what ends the last line of a piece of text; in packs, all lines end


def scatter(job: Job, number: int) -> None:
    """Divide a piece."""
    if not is_done(job.result(FRAGMENTS, number)):
        divide(job, number, region_of_rows(job, number), [region.number for region in joint(job.regions)])


def divide(job: Job, number: int, route: Ints, sample: Sequence[int] = ()) -> None:
    """Divide a piece whose rows go to these regions, (N,). Those of a sample are left in their order, too."""
    with leaving(job.result(FRAGMENTS, number)) as folder:
        np.save(folder / ROUTE, route)
        if not len(route):
            write_pack(folder, {})
            return
        piece = job.pieces.pieces[number]
        rows = job.held.all_rows if job.held else raw_rows(job.source, piece, job.request.mapping)
        if rows.dialect:
            (folder / TAIL).write_bytes(rows.dialect.tail)
        order = np.argsort(route, kind="stable")
        numbers, begin = np.unique(route[order], return_index=True)
        together = np.flatnonzero(np.isin(route, sample))
        groups = {TOGETHER: together} if len(together) else {}
        groups |= dict(zip(numbers.tolist(), np.split(order, begin[1:]), strict=True))
        write_pack(folder, groups, rows.take(np.concatenate([*groups.values()])))


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
