"""The Python API: a polars or pandas DataFrame in, the same kind of frame with the same rows out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import polars as pl

from ghostpoi import settings as _settings
from ghostpoi.data.formats.fields import find_columns, to_checkins
from ghostpoi.errors import InputError
from ghostpoi.models.devices import device as _device
from ghostpoi.publish.protect import protect_table
from ghostpoi.publish.protocols import publication
from ghostpoi.publish.venue_columns import classify
from ghostpoi.publish.whole_table import donor_rows, prepare
from ghostpoi.randomness import Seed

if TYPE_CHECKING:
    import pandas

Frame = TypeVar("Frame", pl.DataFrame, "pandas.DataFrame")


@dataclass(frozen=True)
class FrameColumns:
    """The columns of a data frame."""

    frame: pl.DataFrame

    @property
    def columns(self) -> list[str]:
        return self.frame.columns

    def column(self, name: str) -> pl.Series:
        return self.frame[name]


def protect(
    table: Frame,
    method: str = "crowd",
    *,
    seed: int | None = None,
    protocol: str = "strong",
    columns: dict[str, str] | None = None,
    set: Sequence[str] = (),
    keep: Sequence[str] = (),
    device: str = "auto",
) -> Frame:
    """Substitute venues; rows, order and all other columns stay. `columns` maps fields, e.g. {"poi": "venue_id"}.

    Leave `seed` out for a real release: it is then 128 bits from the operating system, and nobody can repeat the draws.
    """
    frame = table if isinstance(table, pl.DataFrame) else _from_pandas(table)
    if frame.height == 0:
        raise InputError("the table has no check-ins; give at least one row")
    where = "the table"
    chosen = _settings.override(publication(method, protocol), list(set), "set")
    mapping = find_columns(frame.columns, columns or {}, where)
    fields = frame.select(pl.col(c).alias(f) for f, c in mapping.items())
    checkins = to_checkins(fields, mapping["category"], lambda row: f"row {row + 1}")
    change = classify(checkins, FrameColumns(frame), mapping, where, list(keep)).change
    if inside := [name for name in change if name not in table.columns]:
        raise InputError(f"the index {inside[0]!r} changes with the venue; make it a column with reset_index() first")
    whole = prepare(checkins, chosen)
    key = Seed.fresh() if seed is None else Seed(seed)
    released = protect_table(whole, chosen, key, _device(device))
    donor = donor_rows(whole, released, chosen.method, key)
    if isinstance(table, pl.DataFrame):
        return table.with_columns(table[name].gather(pl.Series(donor)) for name in change)
    result: Any = table.copy()
    for name in change:
        result[name] = result[name].take(donor).set_axis(result.index)
    return cast(Frame, result)


def _from_pandas(table: Any) -> pl.DataFrame:
    """Convert a pandas frame; index levels become columns, since they may reveal the venue like any other column."""
    if not (hasattr(table, "iloc") and hasattr(table, "columns")):
        raise InputError(f"protect takes a polars or pandas DataFrame, not {type(table).__name__}")
    if not (table.columns.is_unique and all(isinstance(name, str) for name in table.columns)):
        raise InputError("the column names of the table must be distinct strings; rename them")
    plain = type(table.index).__name__ == "RangeIndex"
    try:
        frame: pl.DataFrame = pl.from_pandas(table.reset_index(drop=plain))
        return frame
    except (ValueError, TypeError, pl.exceptions.PolarsError) as e:  # pyarrow's errors are ValueErrors
        reason = str(e).splitlines()[0]
        raise InputError(f"the table cannot be read ({reason}); store text, numbers and times in its columns") from None
