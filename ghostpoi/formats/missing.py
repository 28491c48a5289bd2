"""Rows that lack a value: refused, dropped, or kept as they are, as --missing says.

A kept row is genuine: nothing in it changes. It is not in the check-in table, so only the row
counts include it.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import DATE, FIELDS, Longs
from ghostpoi.errors import InputError
from ghostpoi.formats.points import POINT, is_empty_point
from ghostpoi.formats.source import Reading, Source
from ghostpoi.formats.zones import TIMEZONE
from ghostpoi.options import option

NONE: Longs = np.empty(0, np.int64)
# What R, Excel, pandas and databases write for no value, in lower case. A category may be called so.
NO_VALUE = ("", "na", "n/a", "#n/a", "<na>", "nan", "nat", "none", "null", "\\n")
BLANK = ("", "\\n")
SHORT = 16  # bytes that such a word has at most, with spaces around it
LISTED = 5  # places of rows that messages name

Where = Callable[[int], str]


def lacks_value(frame: pl.DataFrame) -> pl.Series:
    """Mark the rows (N,) that lack the value of a field that the file has."""
    every = pl.repeat(False, frame.height, eager=True)
    for field in (f for f in (*FIELDS, DATE, POINT, TIMEZONE) if f in frame.columns):
        every |= lacking(frame[field], field)
    return every


def lacking(column: pl.Series, field: str) -> pl.Series:
    """Mark the rows (N,) of a field's column that hold no value: null, NaN, a word for it or an empty point."""
    lacks = column.is_null()
    if column.dtype.is_float():
        return lacks | column.is_nan().fill_null(True)
    words = BLANK if field == "category" else NO_VALUE
    if column.dtype in (pl.Categorical, pl.Enum):
        if not _is_word(column.unique().cast(pl.String), words).any():
            return lacks
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        lacks |= _is_word(column, words)
    return lacks | is_empty_point(column) if field == POINT else lacks


def _is_word(texts: pl.Series, words: tuple[str, ...]) -> pl.Series:
    """Mark the texts (N,) that are one of these words. Long texts are not looked at, because there are many."""
    marked = pl.repeat(False, len(texts), eager=True)
    short = (texts.str.len_bytes() <= SHORT).arg_true()
    found = texts.gather(short).str.strip_chars().str.to_lowercase().is_in(words)
    return marked.scatter(short.filter(found), True)


def complete_rows(frame: pl.DataFrame, where: Where, reading: Reading) -> tuple[pl.DataFrame, Where, Longs]:
    """Return the rows that lack nothing, their places, and the numbers of the other rows, as --missing says.

    If it says to refuse them, all rows are returned: `to_checkins` refuses the first that lacks a value.
    """
    if reading.missing not in ("keep", "drop"):
        return frame, where, NONE
    lacking = lacks_value(frame)
    present = (~lacking).arg_true().to_numpy().astype(np.int64)
    return frame.filter(~lacking), lambda row: where(int(present[row])), lacking.arg_true().to_numpy().astype(np.int64)


def none_complete(source: Source | Path) -> InputError:
    """Say that a dataset has no row that lacks nothing."""
    return InputError(f"{source}: all rows lack a value; map other columns with {option('map', 'FIELD=COLUMN')}")


def places(rows: Longs, where: Where) -> str:
    """Name the first of these rows: lines 3, 7, 9."""
    named = [where(int(row)).rsplit(" ", 2)[-2:] for row in rows[:LISTED]]
    more = ", …" if len(rows) > LISTED else ""
    return f"{named[0][0]}{'s' * (len(rows) > 1)} {', '.join(number for _, number in named)}{more}"
