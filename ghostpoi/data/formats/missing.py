"""Rows that lack a value: refused, dropped, or kept as they are, as --missing says.

A kept row is genuine: nothing in it changes. It is not in the check-in table, so only the row
counts include it.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from ghostpoi.data.checkins import DATE, FIELDS, Longs
from ghostpoi.data.formats.points import POINT
from ghostpoi.data.formats.reading import current_reading
from ghostpoi.errors import InputError

NONE: Longs = np.empty(0, np.int64)
NO_NUMBER = ["", "nan", "na", "n/a", "null", "none"]
LISTED = 5  # places of rows that messages name

Where = Callable[[int], str]


def lacks_value(frame: pl.DataFrame) -> pl.Series:
    """Mark the rows (N,) that lack the value of a field that the file has."""
    lacking = pl.repeat(False, frame.height, eager=True)
    for field in (f for f in (*FIELDS, DATE, POINT) if f in frame.columns):
        column = frame[field]
        lacking |= column.is_null()
        if column.dtype.is_float():
            lacking |= column.is_nan().fill_null(True)
        elif column.dtype == pl.String:
            blank = NO_NUMBER if field in ("lat", "lon") else [""]
            lacking |= column.str.to_lowercase().is_in(blank).fill_null(True)
    return lacking


def complete_rows(frame: pl.DataFrame, where: Where) -> tuple[pl.DataFrame, Where, Longs]:
    """Return the rows that lack nothing, their places, and the numbers of the other rows, as --missing says.

    If it says to refuse them, all rows are returned: `to_checkins` refuses the first that lacks a value.
    """
    if current_reading().missing not in ("keep", "drop"):
        return frame, where, NONE
    lacking = lacks_value(frame)
    if lacking.all():
        raise InputError(f"{where(0)}: this row and all others lack a value; map other columns with --map FIELD=COLUMN")
    present = (~lacking).arg_true().to_numpy().astype(np.int64)
    return frame.filter(~lacking), lambda row: where(int(present[row])), lacking.arg_true().to_numpy().astype(np.int64)


def places(rows: Longs, where: Where) -> str:
    """Name the first of these rows: lines 3, 7, 9."""
    named = [where(int(row)).rsplit(" ", 2)[-2:] for row in rows[:LISTED]]
    more = ", …" if len(rows) > LISTED else ""
    return f"{named[0][0]}{'s' * (len(rows) > 1)} {', '.join(number for _, number in named)}{more}"
