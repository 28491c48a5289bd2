"""Venues from a table of their own (--venues): position and category by venue id."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import polars as pl

from ghostpoi.errors import InputError
from ghostpoi.formats.base import VenueTable
from ghostpoi.formats.missing import Where, places
from ghostpoi.formats.points import POINT
from ghostpoi.formats.reading import current_reading
from ghostpoi.options import option

_table: ContextVar[VenueTable | None] = ContextVar("venues", default=None)


def fields_elsewhere() -> dict[str, str]:
    """Return the fields, with their columns, that come from the table of venues."""
    table = _table.get()
    return table.mapping if table else {}


def place_elsewhere(field: str, poi: object) -> str | None:
    """Name where the table of venues gives this field of a venue; None if the file of check-ins gives it."""
    table = _table.get()
    if table is None or not {field, *[POINT] * (field in ("lat", "lon"))} & table.mapping.keys():
        return None
    return table.where(table.fields["poi"].to_list().index(str(poi).strip()))


@contextmanager
def joined_with(table: VenueTable | None) -> Iterator[None]:
    """Take positions and categories from this table inside the block."""
    token = _table.set(table)
    try:
        yield
    finally:
        _table.reset(token)


def with_venue_fields(frame: pl.DataFrame, where: Where) -> pl.DataFrame:
    """Add the fields of the table of venues to those of the check-ins; refuse a venue that it lacks.

    If rows that lack a value are kept or dropped, a row with such a venue counts as one of them.
    """
    table = _table.get()
    if table is None:
        return frame
    key = frame["poi"].cast(pl.String).str.strip_chars()
    unknown = ~key.is_in(table.fields["poi"].implode()) & key.is_not_null() & (key != "")
    if unknown.any() and current_reading().missing not in ("keep", "drop"):
        rows = unknown.arg_true().to_numpy()
        more = f" ({len(rows):,} rows have such a venue: {places(rows, where)})" if len(rows) > 1 else ""
        raise InputError(
            f"{where(int(rows[0]))}: the venue of this row is not in {table.path}{more}; add it there, or use "
            f"{option('missing', 'drop')} or {option('missing', 'keep')}"
        )
    own = frame.drop([name for name in frame.columns if name in table.fields.columns and name != "poi"])
    joined = own.with_columns(key.alias("poi")).join(table.fields, on="poi", how="left", maintain_order="left")
    return joined.with_columns(own["poi"])
