"""Survey the pieces, part their venues into regions, send each row to its region; read a region."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi import formats
from ghostpoi.data import regions
from ghostpoi.data.checkins import Bools, Ints, Longs, joined_groups
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.build import file_of_rows
from ghostpoi.formats.content import load
from ghostpoi.formats.fields import none_complete
from ghostpoi.formats.folder import keys_of, no_part
from ghostpoi.options import option
from ghostpoi.regions.job import FRAGMENTS, SURVEY, Job, Region, is_done, joint, leaving
from ghostpoi.regions.pieces import numbers_of, pack_by, raw_rows, read_groups, read_piece, rows_of, write_pack
from ghostpoi.release.plan import in_file
from ghostpoi.settings import RegionSettings

ABOUT = "about.json"
VENUES = "venues.parquet"  # the id, key, position, first time and number of rows of each; the region a column names
ROWS = "rows.parquet"  # the place, time, and keys of user and venue of each row that lacks no value, by user
IN_GROUPS = 1 << 16  # rows of these files, so that a range of keys is found without reading all
Keys = NDArray[np.uint64]


def keys(ids: Iterable[object]) -> Keys:
    """Hash each id to 8 bytes, which bounds the memory. Two of 100 million ids share one with a chance of .03%."""
    digests = (blake2b(str(one).encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in ids)
    return np.frombuffer(b"".join(digests), np.uint64)


@dataclass(frozen=True)
class Survey:
    """What is known of a piece that has rows."""

    folder: Path
    kind: dict[str, Any]  # format, delimiter, columns and fields, which are the same for all pieces
    encoding: str  # of text; empty if any would do
    groups: dict[str, str]  # the group of each category, if a column states it
    venues: int
    rows: int  # that lack no value
    missing: str  # where the first row is that does; "": none does


def in_range(name: str, number: int, count: int) -> pl.Expr:
    """Choose the rows whose keys lie in the range of this number, of `count` of the same width."""
    begin, end = ((n << 64) // count for n in (number, number + 1))
    return pl.col(name).is_between(pl.lit(begin, pl.UInt64), pl.lit(end - 1, pl.UInt64))


def survey(job: Job, number: int) -> None:
    """Survey a piece."""
    place = job.result(SURVEY, number)
    if is_done(place):
        return
    file = job.held or read_piece(job.source, job.piece(number), job.request.mapping)
    with leaving(place) as folder:
        if file is not None:
            _write(folder, job, file, keys_of(job.pieces.names[job.pieces.pieces[number].part]))


def read_survey(job: Job, number: int) -> Survey | None:
    """Return what `survey` left; None if the piece has no rows."""
    folder = job.result(SURVEY, number)
    about = folder / ABOUT
    return Survey(folder, **json.loads(about.read_text("utf-8"))) if about.exists() else None


def surveys_of(job: Job) -> dict[int, Survey]:
    """Return what is known of all pieces that have rows."""
    return {p.number: found for p in job.pieces.pieces if (found := read_survey(job, p.number)) is not None}


def with_kind(job: Job) -> Job:
    """Let a job know the format, fields, encoding and groups of all pieces; refuse pieces of several kinds."""
    surveys, kind = surveys_of(job), None
    for number, found in surveys.items():
        kind = kind or found.kind
        if kind != found.kind:
            raise InputError(
                f"{job.pieces.pieces[number].path} differs from earlier files in its format, columns or fields; give a "
                "folder in which all files have the same"
            )
    if kind is None:
        raise InputError(f"{job.pieces.path} has no check-ins; give files with at least one row of data")
    for piece in (piece for piece in job.pieces.pieces if piece.number not in surveys):
        source = job.source.at(job.piece(piece.number).path)
        if formats.decoded(source, load(source))[1].columns != kind["columns"]:
            raise no_part(piece.path, job.pieces.pieces[min(surveys)].path)
    if not any(found.rows for found in surveys.values()):
        raise none_complete(job.source)
    encodings = sorted({found.encoding for found in surveys.values()} - {""})
    if len(encodings) > 1:
        raise InputError(
            f"{job.pieces.path}: some files are in {encodings[0]}, others in {encodings[1]}; store them in one encoding"
        )
    groups = joined_groups((found.groups for found in surveys.values()), str(job.pieces.path))
    source = replace(job.source, encoding=encodings[0] if encodings else None)
    return replace(job, format=kind["format"], fields=kind["fields"], source=source, category_groups=groups)


def _write(folder: Path, job: Job, file: CheckinFile, folder_keys: Mapping[str, str]) -> None:
    table, rows = file.table, file.all_rows
    venues = venues_of(job, file, folder_keys)
    venues.write_parquet(folder / VENUES, row_group_size=IN_GROUPS)
    user, venue = keys(table.user_ids)[table.user], keys(table.venue_ids)[table.venue]
    here = pl.DataFrame({"row": file.present.astype(np.int32), "time": table.time, "user": user, "venue": venue})
    here.sort("user", maintain_order=True).write_parquet(folder / ROWS, row_group_size=IN_GROUPS)
    rows.refuse_to_join(file.path)
    kind = {
        "format": file.format, "stored": file.kind.words, "delimiter": rows.dialect.delimiter if rows.dialect else "",
        "columns": list(rows.columns), "fields": dict(file.mapping),
    }  # fmt: skip
    encoding = rows.dialect.encoding if rows.dialect and not rows.dialect.ascii else ""
    about = {
        "kind": kind, "encoding": encoding, "groups": dict(table.category_groups), "venues": len(venues),
        "rows": len(table), "missing": file.missing_at,
    }  # fmt: skip
    (folder / ABOUT).write_text(json.dumps(about), "utf-8")


def venues_of(job: Job, file: CheckinFile, folder_keys: Mapping[str, str]) -> pl.DataFrame:
    """Return the venues of a file in the order of their keys."""
    table, v = file.table, file.table.venues
    first = np.full(len(table.venue_ids), np.iinfo(np.int64).max)
    np.minimum.at(first, table.venue, table.time)
    rows, region = np.bincount(table.venue, minlength=len(first)), _named(job, file, folder_keys)
    ids = pl.Series(table.venue_ids.tolist(), dtype=pl.String)
    found = {"id": ids, "key": keys(table.venue_ids), "lat": v.lat, "lon": v.lon, "first": first, "rows": rows}
    return pl.DataFrame(found | {"region": region})[1:].sort("key")


def _named(job: Job, file: CheckinFile, folder_keys: Mapping[str, str]) -> pl.Series:
    """The region of each venue that a column or a key of the part's folders names, (V+1,)."""
    column, table = job.region_column, file.table
    if not column or (column in folder_keys and column not in file.all_rows.columns):
        return pl.repeat(folder_keys.get(column, ""), len(table.venue_ids), eager=True)
    if column not in file.all_rows.columns:
        listed = ", ".join([*file.all_rows.columns, *folder_keys])
        raise InputError(
            f"{option('map', f'region={column}')}: {file.path} has no column {column!r}; its columns are {listed}"
        )
    named = file.rows.get_column(column).cast(pl.String).fill_null("").to_numpy()
    found = np.full(len(table.venue_ids), "", object)
    found[table.venue] = named
    if (other := found[table.venue] != named).any():
        raise InputError(not_of_the_venue(column, str(table.venue_ids[table.venue[other.argmax()]])))
    return pl.Series(found.tolist(), dtype=pl.String)


def not_of_the_venue(column: str, venue: str) -> str:
    """Say that a column gives a venue several regions."""
    return (
        f"{option('map', f'region={column}')}: rows of the venue {venue} differ in the column {column!r}, so regions "
        "would reveal its visits; name a column that follows from the venue, such as its city, or leave the "
        "option out"
    )


JOINED = "venues"  # the stage that leaves the venues of a range of keys
FOLDER, KEYS, NUMBERS = "regions", "keys.npy", "numbers.npy"  # all venues' keys, ascending, and their regions' numbers
AT_ONCE = {  # in a range of keys, which bounds the memory of its task
    "venues": 2_000_000,  # a venue counts in every piece that has it: 250 bytes each time
    "rows": 4_000_000,  # of users
}


def ranges_of(job: Job, what: str) -> int:
    """Return how many ranges of keys the venues, or the rows of the users, of all pieces are joined in."""
    return -(-sum(getattr(found, what) for found in surveys_of(job).values()) // AT_ONCE[what])


def join_venues(job: Job, number: int, count: int) -> None:
    """Join the venues of a range of keys. A venue lies where its earliest row says, in the first piece that has one."""
    place = job.result(JOINED, number)
    if is_done(place):
        return
    every = pl.scan_parquet([one.folder / VENUES for one in surveys_of(job).values()])
    found = every.filter(in_range("key", number, count)).collect()
    if job.region_column and (several := found.filter(pl.col("region").n_unique().over("id") > 1)).height:
        raise InputError(not_of_the_venue(job.region_column, several["id"].sort()[0]))
    joined = found.sort("first", maintain_order=True).group_by("id", maintain_order=True).agg(
        pl.col("key", "lat", "lon", "region").first(), pl.col("rows").sum()
    )  # fmt: skip
    with leaving(place) as folder:
        joined.write_parquet(folder / VENUES)


def find_regions(job: Job) -> tuple[Region, ...]:
    """Return all regions, in the order of their keys; leave the number of that of each venue."""
    tables = [one / VENUES for one in job.results(JOINED)]
    by_id = pl.read_parquet(tables, columns=["id"])["id"].arg_sort()  # without the ids, which need much memory
    columns = ["key", "lat", "lon", "rows", *(["region"] if job.region_column else [])]
    venues = pl.read_parquet(tables, columns=columns)[by_id]
    number = _numbers(job, venues)
    by_key = np.argsort(venues["key"].to_numpy())
    with leaving(job.result(FOLDER, 0)) as folder:
        np.save(folder / KEYS, venues["key"].to_numpy()[by_key])
        np.save(folder / NUMBERS, number[by_key])
    ids = pl.read_parquet(tables, columns=["id"])["id"]
    return tuple(_listed(venues, number, ids.gather(by_id[np.unique(number, return_index=True)[1]])))


def regions_of(job: Job, file: CheckinFile) -> list[Region]:
    """Return the regions of a dataset that this process has read."""
    venues = venues_of(job, file, {}).sort("id")
    number = _numbers(job, venues)
    return _listed(venues, number, venues["id"].gather(np.unique(number, return_index=True)[1]))


def _numbers(job: Job, venues: pl.DataFrame) -> Ints:
    """Return the number of the region of each venue; `venues` are in the order of their ids."""
    lat, lon, rows = (venues[name].to_numpy() for name in ("lat", "lon", "rows"))
    rank, column, gap = np.arange(len(venues)), job.region_column, job.settings.gap_km
    named = venues["region"].rank("dense").to_numpy().astype(np.int32) if column else regions.by_gap(lat, lon, gap)
    number = regions.numbered(named, rank)
    count = int(number.max()) + 1
    if count > 1 and len(venues) < 2 * count and (column or gap < RegionSettings().gap_km):
        asked = option("map", f"region={column}") if column else option("set", f"regions.gap_km={gap:g}")
        raise InputError(
            f"{asked}: {count:,} regions for {len(venues):,} venues would leave most rows genuine, because substitutes "
            "come from the same region; make regions larger, say cities, or leave the option out"
        )
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
    """Divide a piece. A row that lacks a value goes with the first that does not."""
    if is_done(job.result(FRAGMENTS, number)):
        return
    piece, found = job.piece(number), read_survey(job, number)
    if found is None:
        divide(job, number, np.empty(0, np.int32), None)
        return
    own = pl.read_parquet(found.folder / ROWS, columns=["row", "venue"])
    rows = job.held.all_rows if job.held else raw_rows(job.source, piece, job.request.mapping)
    present, route = own["row"].to_numpy(), _regions_of(job, own["venue"])
    placed = np.full(0 if rows is None else len(rows), route[present.argmin()] if len(route) else 0, np.int32)
    placed[present] = route
    divide(job, number, placed, rows)


def _regions_of(job: Job, venue: pl.Series) -> Ints:
    """Return the number of the region of each of these venues, given their keys."""
    known, numbers = (np.load(job.result(FOLDER, 0) / name, mmap_mode="r") for name in (KEYS, NUMBERS))
    each, place = np.unique(venue.to_numpy(), return_inverse=True)
    found: Ints = numbers[np.searchsorted(known, each)][place]
    return found


def divide(job: Job, number: int, route: Ints, rows: Rows | None, place: Ints | None = None) -> None:
    """Divide the rows of a piece, which go to these regions, (N,). `place` (N,): other places than in the piece."""
    with leaving(job.result(FRAGMENTS, number)) as folder:
        np.save(folder / ROUTE, route)
        if rows is None or not len(route):
            write_pack(folder, {})
            return
        if rows.dialect:
            (folder / TAIL).write_bytes(rows.dialect.tail)
        place = np.arange(len(route), dtype=np.int32) if place is None else place
        order = np.lexsort((place, route))
        pack_by(folder, route[order], place[order], rows.take(order))


STAGE = "crossings"
CROSSINGS = "rows.parquet"  # the piece and number of each row that crosses, region by region


def find_crossings(job: Job, number: int, count: int) -> None:
    """Note the rows of the users of a range of keys whose user was in another region in the row before."""
    place = job.result(STAGE, number)
    if is_done(place):
        return
    each = (pl.scan_parquet(one.folder / ROWS).with_columns(piece=n) for n, one in surveys_of(job).items())
    users = pl.concat(each).filter(in_range("user", number, count)).collect()
    users = users.with_columns(region=_regions_of(job, users["venue"]))
    found = crossing(users).select("region", "piece", "row")
    with leaving(place) as folder:
        found.sort(found.columns).write_parquet(folder / CROSSINGS)


def crossing(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose user was in another region in the row before; equal times keep the order of the rows."""
    user, region = pl.col("user"), pl.col("region")
    ordered = rows.sort("user", "time", maintain_order=True)
    return ordered.filter((user == user.shift()) & (region != region.shift()))


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
    if job.pieces.several and not job.checked:  # a dataset of one file has no parts
        of_piece = np.array([piece.part for piece in job.pieces.pieces])
        numbers, part = np.unique(of_piece[origin.piece], return_inverse=True)
        rows = rows.in_parts(tuple(job.pieces.names[number] for number in numbers), part, (b"",) * len(numbers))
    return replace(file, table=table, all_rows=rows), origin


def read_joint(job: Job) -> CheckinFile:
    """Read the rows of a sample of regions, as if they were one file: in their order, without parts."""
    return _read(job, joint(job.regions), str(job.pieces.path))[0]


def file_of(job: Job, rows: Rows, named: str) -> CheckinFile:
    """Find the check-ins in rows of a dataset, which are in order."""
    source = job.source.at(Path(named))
    ordered = replace(source, reading=replace(source.reading, order=""))
    return replace(file_of_rows(ordered, rows, job.format, job.fields), source=source)


def _read(job: Job, regions: Sequence[Region], named: str) -> tuple[CheckinFile, Origin]:
    """Read the rows of some regions, in the order of the dataset."""
    numbers = sorted(region.number for region in regions)
    pieces = sorted({piece for region in regions for piece in region.pieces})
    found = [(piece, group) for piece in pieces for group in read_groups(job.result(FRAGMENTS, piece), numbers)]
    places = [group.places for _, group in found]
    piece_of = np.repeat([piece for piece, _ in found], [*map(len, places)]).astype(np.int32)
    origin, rows = Origin(piece_of, np.concatenate(places)), rows_of([group for _, group in found], named)
    del found  # which may be large
    if len(regions) > 1 or job.checked:  # the rows of a release in another order know their places in the dataset
        order = np.lexsort((origin.place, np.zeros_like(piece_of) if job.checked else piece_of))
        origin, rows = Origin(origin.piece[order], origin.place[order]), rows.take(order)
    file = file_of(job, rows, named)
    groups = job.category_groups or file.table.category_groups
    return replace(file, table=replace(file.table, category_groups=groups)), origin
