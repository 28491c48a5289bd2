"""Read and validate one piece; leave the venues and users that it has, and who was where in every row."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.formats import CheckinFile
from ghostpoi.data.formats.rows import TextRows
from ghostpoi.errors import InputError
from ghostpoi.world.job import SURVEY, Job, is_done, leaving
from ghostpoi.world.pieces import read_piece

KIND, VENUES, USERS, ROWS, GROUPS = "kind.json", "venues.parquet", "users.parquet", "rows.npz", "groups.json"
ENCODING = "encoding.txt"


@dataclass(frozen=True)
class Survey:
    """What is known of a piece that has rows."""

    folder: Path

    @property
    def kind(self) -> list[str]:
        """Format, columns and fields, which are the same for all pieces."""
        found: list[str] = json.loads((self.folder / KIND).read_text("utf-8"))
        return found

    @property
    def encoding(self) -> str:
        """The encoding of text; empty if any would do."""
        return (self.folder / ENCODING).read_text("utf-8")

    @property
    def groups(self) -> dict[str, str]:
        """The group of each category, if a column states it."""
        found: dict[str, str] = json.loads((self.folder / GROUPS).read_text("utf-8"))
        return found

    @property
    def venues(self) -> pl.DataFrame:
        """The id, position, earliest time and number of visits of each venue, and the region that a column names."""
        return pl.read_parquet(self.folder / VENUES)

    @property
    def users(self) -> pl.Series:
        """The id of each user."""
        return pl.read_parquet(self.folder / USERS)["user"]

    @property
    def venue(self) -> Ints:
        """(N,) the venue of each row, from 1; 0 where a row lacks a value."""
        return self._array("venue")

    @property
    def user(self) -> Ints:
        """(N,) the user of each row, from 0; -1 where a row lacks a value."""
        return self._array("user")

    @property
    def time(self) -> Longs:
        """(N,) UTC seconds."""
        return self._array("time").astype(np.int64)

    def _array(self, name: str) -> Ints:
        with np.load(self.folder / ROWS, allow_pickle=False) as found:
            array: Ints = found[name]
        return array


def survey(job: Job, number: int) -> None:
    """Survey a piece."""
    place = job.result(SURVEY, number)
    if is_done(place):
        return
    with job.reads():
        file = read_piece(job.pieces.pieces[number], job.request.mapping)
    with leaving(place) as folder:
        if file is not None:
            _write(folder, job, file)


def read_survey(job: Job, number: int) -> Survey | None:
    """Return what `survey` left; None if the piece has no rows."""
    folder = job.result(SURVEY, number)
    return Survey(folder) if (folder / KIND).exists() else None


def kind_of(job: Job) -> tuple[str | None, str | None]:
    """Return the format and the encoding of all pieces."""
    surveys = [found for piece in job.pieces.pieces if (found := read_survey(job, piece.number)) is not None]
    encodings = sorted({found.encoding for found in surveys} - {""})
    if len(encodings) > 1:
        raise InputError(
            f"{job.pieces.path}: some files are in {encodings[0]}, others in {encodings[1]}; store them in one encoding"
        )
    return surveys[0].kind[0] if surveys else None, encodings[0] if encodings else None


def _write(folder: Path, job: Job, file: CheckinFile) -> None:
    table = file.table
    venue, user, time = np.stack([np.zeros(len(table) + len(file.missing), np.int64)] * 3) - [[0], [1], [0]]
    venue[file.present], user[file.present], time[file.present] = table.venue, table.user, table.time
    np.savez(folder / ROWS, venue=venue.astype(np.int32), user=user.astype(np.int32), time=time)
    order = np.argsort(table.time, kind="stable")[::-1]
    first = np.zeros(len(table.venue_ids), np.int64)
    first[table.venue[order]] = order  # the last assignment, the earliest row, wins
    pl.DataFrame({
        "id": pl.Series(table.venue_ids[1:].tolist(), dtype=pl.String), "lat": table.venues.lat[1:],
        "lon": table.venues.lon[1:], "first": table.time[first[1:]],
        "visits": np.bincount(table.venue, minlength=len(first))[1:], "region": _named(job, file, first[1:]),
    }).write_parquet(folder / VENUES)  # fmt: skip
    pl.DataFrame({"user": pl.Series(table.user_ids.tolist(), dtype=pl.String)}).write_parquet(folder / USERS)
    (folder / GROUPS).write_text(json.dumps(dict(table.category_groups)), "utf-8")
    kind = [file.format, *file.all_rows.columns, *(f"{field}={column}" for field, column in file.mapping.items())]
    rows = file.all_rows
    encoding = rows.dialect.encoding if isinstance(rows, TextRows) and not rows.dialect.ascii else ""
    (folder / ENCODING).write_text(encoding, "utf-8")
    (folder / KIND).write_text(json.dumps(kind), "utf-8")


def _named(job: Job, file: CheckinFile, rows: Longs) -> pl.Series:
    """The regions that a column names, in these rows."""
    column = job.region_column
    if not column:
        return pl.repeat("", len(rows), eager=True)
    if column not in file.all_rows.columns:
        listed = ", ".join(file.all_rows.columns)
        raise InputError(f"--map region={column}: {file.path} has no column {column!r}; its columns are {listed}")
    named = file.rows.get_column(column).cast(pl.String).fill_null("")
    found, venue = named.gather(rows), file.table.venue
    if (other := found.gather(venue - 1) != named).any():
        raise InputError(not_of_the_venue(column, str(file.table.venue_ids[venue[other.arg_max()]])))
    return found


def not_of_the_venue(column: str, venue: str) -> str:
    """Say that a column gives a venue several regions."""
    return (
        f"--map region={column}: rows of the venue {venue} differ in the column {column!r}, so regions would tell "
        "about its visits; name a column that follows from the venue, such as its city, or leave the option out"
    )
