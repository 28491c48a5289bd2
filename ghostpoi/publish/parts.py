"""What the part of a row tells: a folder that is divided by venue, category or user may undo its protection."""

import numpy as np
import polars as pl

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.data.formats import CheckinFile
from ghostpoi.data.formats.folder import FolderRows
from ghostpoi.errors import InputError
from ghostpoi.publish.columns.classify import Tests

PART = "the part of the folder"
REMEDY = "divide the rows by time or at random, or give one file"


class _WithPart:
    """The columns of a folder and, as one more, the part of each row."""

    def __init__(self, rows: FolderRows, part: pl.Series) -> None:
        self.rows, self.part = rows, part

    @property
    def columns(self) -> list[str]:
        return [*self.rows.columns, PART]

    def get_column(self, name: str) -> pl.Series:
        return self.part if name == PART else self.rows.get_column(name)


def check_parts(file: CheckinFile, change: list[str]) -> None:
    """Refuse a folder whose parts reveal clean venues, but for those that follow from the venue: see `check_sets`."""
    rows = _divided(file)
    if rows is None or _of_venues(rows.part, file.table) is not None:
        return
    names = pl.Series(PART, [rows.names[number] for number in rows.part.tolist()])
    tests = Tests(file.table, _WithPart(rows, names), file.mapping)
    if (found := tests.finding(PART, tests.sample(change))) and found.share > 0:
        raise InputError(f"{file.path}: {PART} {found}, so it could reveal clean venues; {REMEDY}")


def check_sets(file: CheckinFile, sets: Candidates | None) -> None:
    """Refuse a folder that is divided by venue, say by city, if a venue can become one of another part.

    Rows stay in their part, so it would tell that they moved. `sets` are the candidate sets of the table's venues;
    None: any venue can become any other.
    """
    rows = _divided(file)
    of_venue = None if rows is None else _of_venues(rows.part, file.table)
    if rows is None or of_venue is None:
        return
    if sets is None:
        one, two = rows.names[of_venue[1]], next(n for k, n in enumerate(rows.names) if k != of_venue[1])
    else:
        other = (sets.poi > 0) & (of_venue[sets.poi] != of_venue[:, None])
        if not other.any():
            return
        venue, at = np.argwhere(other)[0]
        one, two = rows.names[of_venue[venue]], rows.names[of_venue[sets.poi[venue, at]]]
    raise InputError(
        f"{file.path}: its parts follow from the venue, and a venue of {one} can become one of {two}, so the part "
        f"would reveal clean venues; {REMEDY}"
    )


def _divided(file: CheckinFile) -> FolderRows | None:
    """Return the rows of the table if they come from several parts."""
    rows = file.rows
    return rows if isinstance(rows, FolderRows) and len(np.unique(rows.part)) > 1 else None


def _of_venues(part: Longs, table: Checkins) -> Longs | None:
    """Return the part of each venue, (V+1,), if all rows of a venue are in one part, else None."""
    found = np.zeros(len(table.venue_ids), np.int64)
    found[table.venue] = part
    return found if (found[table.venue] == part).all() else None
