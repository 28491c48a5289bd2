"""Part the venues of all pieces into regions, send each row to its region, find where users cross; read a region."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data import regions
from ghostpoi.data.checkins import Bools, Ints, Longs
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.build import file_of_rows
from ghostpoi.options import option
from ghostpoi.regions import survey
from ghostpoi.regions.job import FRAGMENTS, Job, Region, is_done, joint, leaving
from ghostpoi.regions.packs import numbers_of, read_groups, rows_of, write_pack
from ghostpoi.regions.pieces import raw_rows
from ghostpoi.release.refusals import in_file
from ghostpoi.settings import RegionSettings

JOINED = "venues"  # the stage that leaves the venues of a range of keys
FOLDER, NUMBERS = "regions", "numbers.npy"  # the number of the region of each venue, in the order of their keys
VENUES_AT_ONCE = 2_000_000  # of a range; a venue counts in every piece that has it: 250 bytes each time
ROWS_AT_ONCE = 4_000_000  # of the users of a range: bounds the memory of its task


def ranges_of_venues(job: Job) -> int:
    """Return how many ranges of keys the venues of all pieces are joined in."""
    return -(-sum(found.venues for found in survey.surveys_of(job).values()) // VENUES_AT_ONCE)


def ranges_of_users(job: Job) -> int:
    """Return the same for the rows of users."""
    return -(-sum(found.rows for found in survey.surveys_of(job).values()) // ROWS_AT_ONCE)


def join_venues(job: Job, number: int, count: int) -> None:
    """Join the venues of a range of keys. A venue lies where its earliest row says, in the first piece that has one."""
    place = job.result(JOINED, number)
    if is_done(place):
        return
    each = survey.surveys_of(job).values()
    here = ((one.folder / survey.VENUES, one.within(survey.VENUE_KEYS, number, count)) for one in each)
    found = pl.concat([pl.scan_parquet(path)[places].collect() for path, places in here])
    if job.region_column and (several := found.filter(pl.col("region").n_unique().over("id") > 1)).height:
        raise InputError(survey.not_of_the_venue(job.region_column, several["id"].sort()[0]))
    joined = found.sort("first", maintain_order=True).group_by("id", maintain_order=True).agg(
        pl.col("key", "lat", "lon", "region").first(), pl.col("rows").sum()
    )  # fmt: skip
    with leaving(place) as folder:
        joined.write_parquet(folder / survey.VENUES)


def find_regions(job: Job) -> tuple[Region, ...]:
    """Return all regions, in the order of their keys; leave the number of that of each venue."""
    tables = [one / survey.VENUES for one in job.results(JOINED)]
    by_id = pl.read_parquet(tables, columns=["id"])["id"].arg_sort()  # without the ids, which need much memory
    columns = ["key", "lat", "lon", "rows", *(["region"] if job.region_column else [])]
    venues = pl.read_parquet(tables, columns=columns)[by_id]
    number = _numbers(job, venues)
    by_key = np.argsort(venues["key"].to_numpy())
    with leaving(job.result(FOLDER, 0)) as folder:
        np.save(folder / survey.VENUE_KEYS, venues["key"].to_numpy()[by_key])
        np.save(folder / NUMBERS, number[by_key])
    ids = pl.read_parquet(tables, columns=["id"])["id"]
    return tuple(_listed(venues, number, ids.gather(by_id[np.unique(number, return_index=True)[1]])))


def region_of_rows(job: Job, number: int) -> Ints:
    """Return the region of each row of a piece, (N,). A row that lacks a value goes with the first that does not."""
    found = survey.read_survey(job, number)
    if found is None:
        return np.empty(0, np.int32)
    folder = job.result(FOLDER, 0)
    known, numbers = (np.load(folder / name, mmap_mode="r") for name in (survey.VENUE_KEYS, NUMBERS))
    venue = found.load(survey.VENUE)
    of_venue = np.append(np.int32(0), numbers[np.searchsorted(known, found.load(survey.VENUE_KEYS))])
    of_venue[0] = of_venue[venue[venue > 0][:1]].sum()
    return of_venue[venue]


def regions_of(job: Job, file: CheckinFile) -> list[Region]:
    """Return the regions of a dataset that this process has read."""
    venues = survey.venues_of(job, file, {})[0].sort("id")
    number = _numbers(job, venues)
    return _listed(venues, number, venues["id"].gather(np.unique(number, return_index=True)[1]))


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


def _listed(venues: pl.DataFrame, number: Ints, keys: pl.Series) -> list[Region]:
    """Describe regions, given that of each venue in the order of ids, and the id of the first venue of each region."""
    found = venues.with_columns(number=pl.Series(number)).group_by("number").agg(
        pl.col("^region$").first(), pl.col("lat", "lon").median(), pl.col("rows").sum(), venues=pl.len()
    ).sort("number")  # fmt: skip
    return [
        Region(
            row["number"], key, row.get("region") or f"near {row['lat']:.2f}, {row['lon']:.2f}", row["venues"],
            row["rows"],
        )
        for key, row in zip(keys, found.iter_rows(named=True), strict=True)
    ]  # fmt: skip


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


@dataclass(frozen=True)
class Origin:
    """From where the rows of a region come, (N,): in the order of the dataset."""

    piece: Ints
    place: Ints  # in the piece

    def shown(self, file: CheckinFile, rows: Longs) -> dict[int, Ints]:
        """Return the places in each piece that a release shows: these rows of the table, and those it keeps."""
        row = in_file(file, np.arange(len(file.table)), rows)[1] if len(file.kept) else file.present[rows]
        pieces, begin = np.unique(self.piece[row], return_index=True)
        return dict(zip(pieces.tolist(), np.split(self.place[row], begin[1:]), strict=True)) if len(row) else {}


def regions_in(job: Job, piece: int) -> list[int]:
    """Return the regions that a piece has rows in."""
    return numbers_of(job.result(FRAGMENTS, piece))


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
    if is_done(job.result(FRAGMENTS, number)):
        return
    piece, route = job.piece(number), region_of_rows(job, number)
    rows = job.held.all_rows if job.held else raw_rows(job.source, piece, job.request.mapping) if len(route) else None
    divide(job, number, route, rows)


def divide(job: Job, number: int, route: Ints, rows: Rows | None) -> None:
    """Divide the rows of a piece, which go to these regions, (N,)."""
    with leaving(job.result(FRAGMENTS, number)) as folder:
        np.save(folder / ROUTE, route)
        if rows is None or not len(route):
            write_pack(folder, {})
            return
        if rows.dialect:
            (folder / TAIL).write_bytes(rows.dialect.tail)
        order = np.argsort(route, kind="stable")
        numbers, begin = np.unique(route[order], return_index=True)
        groups = dict(zip(numbers.tolist(), np.split(order, begin[1:]), strict=True))
        write_pack(folder, groups, rows.take(order))


STAGE = "crossings"
CROSSINGS = "rows.parquet"  # the piece and number of each row that crosses, region by region


def find_crossings(job: Job, number: int, count: int) -> None:
    """Note the rows of the users of a range of keys whose user was in another region in the row before."""
    place = job.result(STAGE, number)
    if is_done(place):
        return
    users = pl.concat([_users(job, piece, found, number, count) for piece, found in survey.surveys_of(job).items()])
    rows = users.filter(pl.col("region").min().over("user") < pl.col("region").max().over("user"))
    user = rows["user"].rank("dense").to_numpy().astype(np.int32)
    crossing = regions.crossings(user, rows["time"].to_numpy(), rows["region"].to_numpy())
    found = rows.filter(pl.Series(crossing)).select("region", "piece", "row").sort("region", "piece", "row")
    with leaving(place) as folder:
        found.write_parquet(folder / CROSSINGS)


def _users(job: Job, piece: int, found: survey.Survey, number: int, count: int) -> pl.DataFrame:
    """The rows of the users of a range in a piece."""
    here = found.within(survey.USER_KEYS, number, count)
    row = found.load(survey.BY_USER)[here]
    route = np.load(job.result(FRAGMENTS, piece) / ROUTE, mmap_mode="r")
    user, time = found.load(survey.USER_KEYS)[here], found.load(survey.TIME)[row]
    rows = pl.DataFrame({"user": user, "time": time, "region": route[row], "row": row})
    return rows.with_columns(piece=pl.lit(piece, pl.Int32))


def crossing_rows(job: Job, region: Region, origin: Origin) -> Bools | None:
    """Mark the rows of a region, (N,), which come from there; None if nobody can cross."""
    if not (found := job.results(STAGE)):
        return None
    marked = pl.scan_parquet([one / CROSSINGS for one in found]).filter(pl.col("region") == region.number).collect()
    pairs = (origin.piece, origin.place), (marked["piece"].to_numpy(), marked["row"].to_numpy())
    every, crossing = (piece.astype(np.int64) << 32 | place for piece, place in pairs)
    return np.isin(every, crossing)


def read_region(job: Job, region: Region) -> CheckinFile:
    """Read the rows of a region. They know the part of the dataset that each belongs to."""
    return job.file or read_with_origin(job, region)[0]


def read_with_origin(job: Job, region: Region) -> tuple[CheckinFile, Origin]:
    """Read the rows of a region; return also where they come from."""
    file, origin = _read(job, [region], job.name_of(region.number))
    crossing = crossing_rows(job, region, origin)
    table = replace(file.table, crossing=None if crossing is None else crossing[file.present])
    rows = file.all_rows
    return replace(file, table=table, parse_rows=lambda: _by_part(job, origin, rows)), origin


def read_joint(job: Job) -> CheckinFile:
    """Read the rows of a sample of regions, as if they were one file: in their order, without parts."""
    return _read(job, joint(job.regions), str(job.pieces.path))[0]


def _read(job: Job, regions: Sequence[Region], named: str) -> tuple[CheckinFile, Origin]:
    """Read the rows of some regions, in the order of the dataset."""
    numbers = sorted(region.number for region in regions)
    pieces = sorted({piece for region in regions for piece in region.pieces})
    found = [(piece, group) for piece in pieces for group in read_groups(job.result(FRAGMENTS, piece), numbers)]
    places = [group.places for _, group in found]
    piece_of = np.repeat([piece for piece, _ in found], [*map(len, places)]).astype(np.int32)
    origin, rows = Origin(piece_of, np.concatenate(places)), rows_of([group for _, group in found], named)
    del found  # which may be large
    if len(regions) > 1:
        order = np.lexsort((origin.place, origin.piece))
        origin, rows = Origin(origin.piece[order], origin.place[order]), rows.take(order)
    source = job.source.at(Path(named))
    ordered = replace(source, reading=replace(source.reading, order=""))  # the rows of each part are in order
    file = replace(file_of_rows(ordered, rows, job.format, job.fields), source=source)
    groups = job.category_groups or file.table.category_groups
    return replace(file, table=replace(file.table, category_groups=groups)), origin


def _by_part(job: Job, origin: Origin, rows: Rows) -> Rows:
    """Let each row know its part. A dataset of one file has no parts."""
    if not job.pieces.several:
        return rows
    of_piece = np.array([piece.part for piece in job.pieces.pieces])
    numbers, part = np.unique(of_piece[origin.piece], return_inverse=True)
    names = tuple(job.pieces.names[number] for number in numbers)
    return rows.in_parts(names, part, (b"",) * len(names))
