"""The Python API: protect a polars or pandas DataFrame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import polars as pl

from ghostpoi.data.formats.fields import find_columns, to_checkins
from ghostpoi.errors import InputError
from ghostpoi.models.devices import device as _device
from ghostpoi.publish.columns import classify
from ghostpoi.publish.protect import protect_table
from ghostpoi.publish.publication_settings import publication
from ghostpoi.publish.whole_table import donor_rows, prepare
from ghostpoi.randomness import Seed
from ghostpoi.settings import override

if TYPE_CHECKING:
    import pandas

Frame = TypeVar("Frame", pl.DataFrame, "pandas.DataFrame")


def protect(
    table: Frame,
    method: str = "crowd",
    *,
    seed: int | None = None,
    protocol: str = "strong",
    columns: dict[str, str] | None = None,
    set: Sequence[str] = (),
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    device: str = "auto",
) -> Frame:
    """Return the table with venues substituted. Rows, order, types and all other columns stay the same.

    `columns` maps fields to columns, e.g. {"poi": "venue_id"}. `set` holds settings, e.g. ["method.size=64"]. `keep`
    names columns to keep even though they may reveal clean venues, `drop` columns to leave out. Omit `seed` for a real
    release: ghostpoi then draws 128 bits from the operating system, and nobody can repeat the draws.
    """
    frame = table if isinstance(table, pl.DataFrame) else _from_pandas(table)
    if frame.height == 0:
        raise InputError("the table has no check-ins; give at least one row")
    settings = override(publication(method, protocol), list(set), "set")
    mapping = find_columns(frame.columns, columns or {}, "the table")
    fields = frame.select(pl.col(column).alias(field) for field, column in mapping.items())
    checkins = to_checkins(fields, mapping["category"], lambda row: f"row {row + 1}")
    found = classify(checkins, frame, mapping, "the table", list(keep), list(drop))
    change = found.change
    if levels := [name for name in change if name not in table.columns]:
        raise InputError(f"the index {levels[0]!r} changes with the venue; make it a column with reset_index() first")
    whole = prepare(checkins, settings)
    secret = Seed.fresh() if seed is None else Seed(seed)
    released = protect_table(whole, settings, secret, _device(device))
    donor = donor_rows(whole, released, settings.method, secret)
    if isinstance(table, pl.DataFrame):
        return table.with_columns(table[name].gather(pl.Series(donor)) for name in change).drop(found.drop)
    result: Any = table.drop(columns=found.drop)
    for name in change:
        result[name] = result[name].take(donor).set_axis(result.index)
    return cast(Frame, result)


def _from_pandas(table: Any) -> pl.DataFrame:
    """Convert a pandas frame. Index levels become columns, because they may reveal the venue like any column."""
    if not (hasattr(table, "iloc") and hasattr(table, "columns")):
        raise InputError(f"protect takes a polars or pandas DataFrame, not {type(table).__name__}")
    if not (table.columns.is_unique and all(isinstance(name, str) for name in table.columns)):
        raise InputError("the column names of the table must be distinct strings; rename them")
    try:
        frame: pl.DataFrame = pl.from_pandas(table.reset_index(drop=type(table.index).__name__ == "RangeIndex"))
        return frame
    except (ValueError, TypeError, pl.exceptions.PolarsError) as e:  # pyarrow's errors are ValueErrors
        reason = str(e).splitlines()[0]
        raise InputError(f"the table cannot be read ({reason}); store text, numbers and times in its columns") from None
