"""What else `protect` refuses or warns of: parts that undo protection, zones that change, rows that stay as they are.

A folder that is divided by venue, category or user may undo its protection. A column of time zones that changes with
the venue restricts substitutes to the same zone, or times would change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np
import polars as pl

from ghostpoi.columns.classify import Tests, constant_within
from ghostpoi.columns.dependence import value_codes
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.whole_table import WholeTable
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.folder import keys_of
from ghostpoi.formats.times import TIMEZONE
from ghostpoi.options import option


def in_file(file: CheckinFile, donor: Longs, shown: Longs) -> tuple[Longs, Longs]:
    """Turn the donor of each row of the table, and the rows to show, into rows of the file; kept rows stay."""
    if not len(file.kept):
        return donor, shown
    every = np.arange(len(file.table) + len(file.missing))
    every[file.present] = file.present[donor]
    return every, np.sort(np.concatenate([file.present[shown], file.kept]))


def check_kept(file: CheckinFile, settings: Publication) -> str | None:
    """Return the warning about rows that lack a value; refuse to keep user ids or times that others replace."""
    if not len(file.missing):
        return None
    one = len(file.missing) == 1
    what = f"that lack{'s' * one} a value or lie{'s' * one} in no cluster"
    what = what if file.reading.cluster_points else "with missing values"
    count = f"{len(file.missing):,} row{'s' * (not one)} {what} ({file.missing_at})"
    if not len(file.kept):
        return f"{count}: left out of the release"
    if settings.hides_users:
        ids = "its user id" if one else "their user ids"
        raise InputError(
            f"{file.path}: {count} would keep {ids}, which pseudonyms replace; use {option('missing', 'drop')}"
        )
    if settings.reorders:
        raise InputError(
            f"{file.path}: {count} would keep {'its time' if one else 'their times'}, which "
            f"{option('times', settings.identity.times)} replaces; use {option('missing', 'drop')}"
        )
    if one:
        return f"{count}: kept as it is, so it shows a genuine visit; {option('missing', 'drop')} leaves it out"
    return f"{count}: kept as they are, so they show genuine visits; {option('missing', 'drop')} leaves them out"


def check_zones(file: CheckinFile, change: list[str], whole: WholeTable, anywhere: bool) -> None:
    """Refuse a file in which a venue can become one of another zone. `anywhere`: any venue can become any other."""
    column = file.mapping.get(TIMEZONE)
    if column is None or column not in change:
        return
    zone, table = value_codes(file.rows.get_column(column)), file.table
    of_venue = np.zeros(len(table.venue_ids), np.int64)
    of_venue[table.venue] = zone
    pairs = ((of_venue, whole.venue_sets), (of_venue[whole.data.vocabulary.venue], whole.session_sets))
    leave = (sets.everywhere or ((sets.poi > 0) & (own[sets.poi] != own[:, None])).any() for own, sets in pairs)
    if anywhere or not constant_within(zone, table.venue) or any(leave):
        raise InputError(
            f"{file.path}: a venue can become one of another time zone, and the column {column!r} would change its "
            "times; write all times in UTC, or keep the column at your own risk with "
            f"{option('keep', column, shown=quote)}"
        )


PART = "the part of the folder"
REMEDY = "divide the rows by time or at random, or give one file"


@dataclass(frozen=True)
class _Division:
    """How a folder divides the rows: into parts, or by a key that names of folders hold, e.g. city=Paris."""

    what: str
    code: Longs  # (N,)
    names: Sequence[str]

    def of_venues(self, table: Checkins) -> Longs | None:
        """Return the part of each venue, (V+1,), if all rows of a venue are in one part, else None."""
        found = np.zeros(len(table.venue_ids), np.int64)
        found[table.venue] = self.code
        return found if (found[table.venue] == self.code).all() else None


class _WithPart:
    """The columns of a folder and, as one more, the part of each row."""

    def __init__(self, rows: Rows, part: pl.Series) -> None:
        self.rows, self.part = rows, part

    @property
    def columns(self) -> list[str]:
        return [*self.rows.columns, self.part.name]

    def get_column(self, name: str) -> pl.Series:
        return self.part if name == self.part.name else self.rows.get_column(name)


def check_parts(file: CheckinFile, change: list[str]) -> None:
    """Refuse a folder whose parts reveal clean venues, but for those that follow from the venue: see `check_sets`."""
    for division in _divisions(file):
        if division.of_venues(file.table) is not None:
            continue
        names = pl.Series(division.what, [division.names[number] for number in division.code.tolist()])
        tests = Tests(file.table, _WithPart(file.rows, names), file.mapping)
        if (found := tests.finding(division.what, tests.sample(change))) and found.share > 0:
            raise InputError(f"{file.path}: {division.what} {found}, so it could reveal clean venues; {REMEDY}")


def check_sets(file: CheckinFile, sets: Candidates | None) -> None:
    """Refuse a folder that is divided by venue, say by city, if a venue can become one of another part.

    Rows stay in their part, so it would reveal that they moved. `sets` are the candidate sets of the table's venues;
    None: any venue can become any other.
    """
    for division in _divisions(file):
        if (of_venue := division.of_venues(file.table)) is None:
            continue
        if sets is None:
            first = of_venue[1]
            second = of_venue[1:][of_venue[1:] != first][0]
        else:
            other = (sets.poi > 0) & (of_venue[sets.poi] != of_venue[:, None])
            if not other.any():
                continue
            venue, at = np.argwhere(other)[0]
            first, second = of_venue[venue], of_venue[sets.poi[venue, at]]
        raise InputError(
            f"{file.path}: its parts follow from the venue, and a venue of {division.names[first]} can become one of "
            f"{division.names[second]}, so the part would reveal clean venues; {REMEDY}"
        )


def _divisions(file: CheckinFile) -> Iterator[_Division]:
    """Yield how a folder divides the rows of the table, if it does."""
    rows = file.rows
    if len(np.unique(rows.part)) < 2:
        return
    yield _Division(PART, rows.part, rows.parts)
    keys = [keys_of(name) for name in rows.parts]
    for key in dict.fromkeys(key for one in keys for key in one):
        names, code = np.unique([f"{key}={one.get(key, '')}" for one in keys], return_inverse=True)
        if 1 < len(np.unique(code[rows.part])) < len(np.unique(rows.part)):  # else it reveals nothing, or what parts do
            yield _Division(f"the folder name {key}=", code[rows.part], names.tolist())
