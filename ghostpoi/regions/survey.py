"""Read and validate one piece; join the venues and users of all, a range of ids at a time."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.compression import load
from ghostpoi.formats.fields import none_complete
from ghostpoi.formats.folder import columns_of, keys_of, no_part
from ghostpoi.formats.rows import not_joined
from ghostpoi.options import option
from ghostpoi.regions.job import SURVEY, Job, is_done, leaving
from ghostpoi.regions.pieces import read_piece

AT_ONCE = 10_000_000  # rows of the users of a range: bounds the memory of its task
VENUES_AT_ONCE = 2_000_000  # the same for venues, which count in every piece that has them: 250 bytes each time
STEP = 10_000  # one id in so many is in the sample that decides where ranges end,
LEAST = 16  # and so many ids of every piece: its first id alone says nothing about the others


def leave_ids(path: Path, table: pl.DataFrame, size: pl.Series) -> None:
    """Write a table of ids, in their order, and a sample of it. `size`: what each id adds to its range."""
    table.write_parquet(path, row_group_size=STEP)
    end, total = size.cum_sum().to_numpy(), int(size.sum())
    count = max(LEAST, -(-total // STEP)) if total else 0
    chosen = np.searchsorted(end, (np.arange(count) + 0.5) * total / max(1, count), side="right")
    table[chosen].select("id", size=pl.lit(total / max(1, count))).write_parquet(_sample(path))


def bounds_of(paths: Iterable[Path], at_once: int) -> list[str]:
    """Return where each range but the first begins, so that all have about the same size, at most `at_once`."""
    sample = pl.concat([pl.read_parquet(_sample(path)) for path in paths]).sort("id")
    end, total = sample["size"].cum_sum().to_numpy(), float(sample["size"].sum())
    count = int(np.ceil(total / at_once))
    at = np.searchsorted(end, total / max(1, count) * np.arange(1, count))
    return sample["id"].gather(at).unique().sort().to_list()


def read_range(path: Path, bounds: Sequence[str], number: int) -> pl.DataFrame:
    """Read the rows of a table whose ids are in a range."""
    table = pl.scan_parquet(path)
    if number > 0:
        table = table.filter(pl.col("id") >= bounds[number - 1])
    if number < len(bounds):
        table = table.filter(pl.col("id") < bounds[number])
    return table.collect()


def _sample(path: Path) -> Path:
    return path.with_suffix(".sample")


ABOUT = "about.json"
VENUES, USERS = "venues.parquet", "users.parquet"
VENUE, TIME, BY_USER = "venue.npy", "time.npy", "by_user.npy"  # of every row


@dataclass(frozen=True)
class Survey:
    """What is known of a piece that has rows."""

    folder: Path
    kind: dict[str, Any]  # format, delimiter, columns and fields, which are the same for all pieces
    encoding: str  # of text; empty if any would do
    groups: dict[str, str]  # the group of each category, if a column states it

    @property
    def venues(self) -> Path:
        """The id, position, earliest time and number of rows of each venue, and the region that a column names."""
        return self.folder / VENUES

    @property
    def users(self) -> Path:
        """The id and number of rows of each user, and where they begin in `by_user`."""
        return self.folder / USERS

    @property
    def venue(self) -> Ints:
        """(N,) the venue of each row, from 1 in the order of their ids; 0 where a row lacks a value."""
        venue: Ints = np.load(self.folder / VENUE, mmap_mode="r")
        return venue

    @property
    def time(self) -> Longs:
        """(N,) UTC seconds."""
        time: Longs = np.load(self.folder / TIME, mmap_mode="r")
        return time

    @property
    def by_user(self) -> Ints:
        """The rows that lack no value, user by user."""
        rows: Ints = np.load(self.folder / BY_USER, mmap_mode="r")
        return rows


def survey(job: Job, number: int) -> None:
    """Survey a piece."""
    place = job.result(SURVEY, number)
    if is_done(place):
        return
    file = job.held or read_piece(job.source, job.pieces.pieces[number], job.request.mapping)
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
    """Let a job know the format, the fields and the encoding of all pieces; refuse pieces of several kinds."""
    surveys, kind = surveys_of(job), None
    for number, found in surveys.items():
        kind = kind or found.kind
        if kind != found.kind:
            raise InputError(
                f"{job.pieces.pieces[number].path} has another format or other columns than the parts before it; give "
                "a folder of files of one kind"
            )
    if kind is None:
        raise InputError(f"{job.pieces.path} has no check-ins; give files with at least one row of data")
    for piece in (piece for piece in job.pieces.pieces if piece.number not in surveys):
        source = job.source.at(piece.path)
        if columns_of(source, load(source)) != kind["columns"]:
            raise no_part(piece.path, job.pieces.pieces[min(surveys)].path)
    if not any(len(found.by_user) for found in surveys.values()):
        raise none_complete(job.source)
    encodings = sorted({found.encoding for found in surveys.values()} - {""})
    if len(encodings) > 1:
        raise InputError(
            f"{job.pieces.path}: some files are in {encodings[0]}, others in {encodings[1]}; store them in one encoding"
        )
    source = replace(job.source, encoding=encodings[0] if encodings else None)
    return replace(job, format=kind["format"], fields=kind["fields"], source=source)


def _write(folder: Path, job: Job, file: CheckinFile, keys: Mapping[str, str]) -> None:
    table, count = file.table, len(file.table) + len(file.missing)
    venues, venue = venues_of(job, file, keys)
    users, user = _in_order(table.user_ids, table.user)
    np.save(folder / VENUE, _placed(venue + 1, file, np.zeros(count, np.int32)))
    np.save(folder / TIME, _placed(table.time, file, np.zeros(count, np.int64)))
    np.save(folder / BY_USER, file.present[np.argsort(user, kind="stable")].astype(np.int32))
    leave_ids(folder / VENUES, venues, pl.repeat(1, len(venues), eager=True))
    of_user = np.bincount(user, minlength=len(users))
    known = pl.DataFrame({"id": users, "rows": of_user, "begin": np.cumsum(of_user) - of_user})
    leave_ids(folder / USERS, known, known["rows"])
    rows = file.all_rows
    if not rows.can_join:
        raise not_joined(file.path)
    delimiter = rows.dialect.delimiter if rows.dialect else ""
    kind = {
        "format": file.format, "stored": file.kind.words, "delimiter": delimiter, "columns": list(rows.columns),
        "fields": dict(file.mapping),
    }  # fmt: skip
    encoding = rows.dialect.encoding if rows.dialect and not rows.dialect.ascii else ""
    about = {"kind": kind, "encoding": encoding, "groups": dict(table.category_groups)}
    (folder / ABOUT).write_text(json.dumps(about), "utf-8")


def venues_of(job: Job, file: CheckinFile, keys: Mapping[str, str]) -> tuple[pl.DataFrame, Longs]:
    """Return the venues of a file in the order of their ids, and the place of each row's among them, (N,)."""
    table = file.table
    venues, venue = _in_order(table.venue_ids[1:], table.venue - 1)
    order = np.argsort(table.time, kind="stable")[::-1]
    first = np.zeros(len(venues), np.int64)
    first[venue[order]] = order  # the last assignment, the earliest row, wins
    return pl.DataFrame({
        "id": venues, "lat": table.lat[first], "lon": table.lon[first], "first": table.time[first],
        "rows": np.bincount(venue, minlength=len(venues)), "region": _named(job, file, keys, venue, first),
    }), venue  # fmt: skip


def _in_order(ids: NDArray[np.object_], number: Ints) -> tuple[pl.Series, Longs]:
    """Return ids in their order, and the rank of each row's, given its number."""
    found = pl.Series(ids.tolist(), dtype=pl.String)
    return found.sort(), found.rank("ordinal").to_numpy().astype(np.int64)[number] - 1


def _placed(values: Longs, file: CheckinFile, empty: Any) -> Any:
    """Return the values of a table's rows at their places in the file."""
    empty[file.present] = values
    return empty


def _named(job: Job, file: CheckinFile, keys: Mapping[str, str], venue: Longs, first: Longs) -> pl.Series:
    """The regions that a column or a key of the part's folders names, in the first rows of venues."""
    column = job.region_column
    if not column:
        return pl.repeat("", len(first), eager=True)
    if column in file.all_rows.columns:
        named = file.rows.get_column(column).cast(pl.String).fill_null("")
    elif column in keys:
        return pl.repeat(keys[column], len(first), eager=True)
    else:
        listed = ", ".join([*file.all_rows.columns, *keys])
        raise InputError(
            f"{option('map', f'region={column}')}: {file.path} has no column {column!r}; its columns are {listed}"
        )
    found = named.gather(first)
    if (other := found.gather(venue) != named).any():
        raise InputError(not_of_the_venue(column, str(file.table.venue_ids[file.table.venue[other.arg_max()]])))
    return found


def not_of_the_venue(column: str, venue: str) -> str:
    """Say that a column gives a venue several regions."""
    return (
        f"{option('map', f'region={column}')}: rows of the venue {venue} differ in the column {column!r}, so regions "
        "would reveal its visits; name a column that follows from the venue, such as its city, or leave the "
        "option out"
    )


STAGE = "venues"
TABLE, PLACES, BEGIN = "venues.parquet", "places.npy", "begin.npy"


def join_venues(job: Job, number: int, bounds: Sequence[str]) -> None:
    """Join the venues of a range. A venue lies where its earliest row says, in the first piece that has one."""
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
