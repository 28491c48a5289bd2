"""Read and validate one piece; note its venues and the order of its rows by user."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import Longs, joined_groups
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.content import load
from ghostpoi.formats.fields import none_complete
from ghostpoi.formats.folder import columns_of, keys_of, no_part
from ghostpoi.options import option
from ghostpoi.regions.job import SURVEY, Job, is_done, leaving
from ghostpoi.regions.pieces import read_piece

ABOUT = "about.json"
VENUES = "venues.parquet"  # the id, key, position, first time and number of rows of each; the region a column names
VENUE = "venue.npy"  # (N,) the venue of each row, from 1 in the order of their keys; 0 where a row lacks a value
TIME = "time.npy"  # (N,) UTC seconds
BY_USER = "by_user.npy"  # the rows that lack no value, by the keys of their users
VENUE_KEYS, USER_KEYS = "venue_keys.npy", "user_keys.npy"  # ascending: of the venues, and of the users of BY_USER
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

    def load(self, name: str) -> NDArray[Any]:
        """Map an array into memory."""
        return np.load(self.folder / name, mmap_mode="r")

    def within(self, name: str, number: int, count: int) -> slice:
        """Return where the keys of a range lie: the range of this number, of `count` of the same width."""
        found, begins = self.load(name), [np.uint64((n << 64) // count) for n in range(count)]
        begin, end = [*np.searchsorted(found, begins[number : number + 2]).tolist(), len(found)][:2]
        return slice(begin, end)


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
                f"{job.pieces.pieces[number].path} has another format or other columns than the parts before it; give "
                "a folder of files of one kind"
            )
    if kind is None:
        raise InputError(f"{job.pieces.path} has no check-ins; give files with at least one row of data")
    for piece in (piece for piece in job.pieces.pieces if piece.number not in surveys):
        source = job.source.at(job.piece(piece.number).path)
        if columns_of(source, load(source)) != kind["columns"]:
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
    venues, venue = venues_of(job, file, folder_keys)
    venues.write_parquet(folder / VENUES)
    count = len(table) + len(file.missing)
    for name, values in ((VENUE, (venue + 1).astype(np.int32)), (TIME, table.time)):
        placed = np.zeros(count, values.dtype)
        placed[file.present] = values
        np.save(folder / name, placed)
    user = keys(table.user_ids)[table.user]
    by_user = np.argsort(user, kind="stable")
    np.save(folder / BY_USER, file.present[by_user].astype(np.int32))
    np.save(folder / USER_KEYS, user[by_user])
    np.save(folder / VENUE_KEYS, venues["key"].to_numpy())
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


def venues_of(job: Job, file: CheckinFile, folder_keys: Mapping[str, str]) -> tuple[pl.DataFrame, Longs]:
    """Return the venues of a file in the order of their keys, and the place of each row's among them, (N,)."""
    table, key = file.table, keys(file.table.venue_ids[1:])
    order = np.argsort(key, kind="stable")
    venue = np.argsort(order)[table.venue - 1]
    latest = np.argsort(table.time, kind="stable")[::-1]
    first = np.zeros(len(order), np.int64)
    first[venue[latest]] = latest  # the last assignment, the earliest row, wins
    return pl.DataFrame({
        "id": pl.Series(table.venue_ids[1:][order].tolist(), dtype=pl.String), "key": key[order],
        "lat": table.lat[first], "lon": table.lon[first], "first": table.time[first],
        "rows": np.bincount(venue, minlength=len(order)), "region": _named(job, file, folder_keys, venue, first),
    }), venue  # fmt: skip


def _named(job: Job, file: CheckinFile, folder_keys: Mapping[str, str], venue: Longs, first: Longs) -> pl.Series:
    """The regions that a column or a key of the part's folders names, in the first rows of venues."""
    column = job.region_column
    if not column:
        return pl.repeat("", len(first), eager=True)
    if column in file.all_rows.columns:
        named = file.rows.get_column(column).cast(pl.String).fill_null("")
    elif column in folder_keys:
        return pl.repeat(folder_keys[column], len(first), eager=True)
    else:
        listed = ", ".join([*file.all_rows.columns, *folder_keys])
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
