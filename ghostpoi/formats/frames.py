"""Data frames of polars and pandas, read and changed like Parquet files; the caller gets back a frame of the same kind.

A pandas index becomes columns, because it may reveal the venue like any column.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ghostpoi.errors import InputError
from ghostpoi.formats.parquet import ParquetRows
from ghostpoi.formats.rows import Index, Rows
from ghostpoi.formats.source import Source

OLDEST = pl.CompatLevel.oldest()  # pyarrow cannot rearrange the newest text type


@dataclass(frozen=True, kw_only=True)
class FrameRows(ParquetRows):
    """The rows of a caller's frame as Parquet holds them. What does not change comes back from the frame itself."""

    frame: Any  # of polars or pandas
    row: Index | None = None  # (N,) of the frame; None: all, in their order
    origin: Mapping[str, Index | None] = field(default_factory=dict)
    # of the columns that changed: the row of the frame, (N,), that each value comes from; None: all values are new

    def copy_fields(self, columns: list[str], donor: Index) -> "FrameRows":
        self._check(columns, "changes with the venue")
        return self._moved(super().copy_fields(columns, donor), columns, donor)

    def take(self, index: Index) -> "FrameRows":
        row = index if self.row is None else self.row[index]
        return replace(self._moved(super().take(index), self.columns, index), row=row)

    def with_ids(self, column: str, ids: NDArray[np.object_]) -> "FrameRows":
        self._check([column], "gets pseudonyms")
        return replace(super().with_ids(column, ids), origin={**self.origin, column: None})

    def with_fields(self, columns: list[str], changed: Rows) -> "FrameRows":
        self._check(columns, "changes with the venue")
        new = {**self.origin, **dict.fromkeys(columns)}
        return replace(self, held=changed.held, schema=changed.schema, origin=new)

    def without_metadata(self) -> "FrameRows":
        """Drop the notes, also those in pandas' `attrs`, which may name clean files."""
        if isinstance(self.frame, pl.DataFrame):
            return super().without_metadata()
        frame = self.frame.copy(deep=False)
        frame.attrs = {}
        return replace(super().without_metadata(), frame=frame)

    def to_frame(self, mapping: dict[str, str]) -> Any:
        new = [name for name, at in self.origin.items() if at is None]
        values = pl.DataFrame(pl.from_arrow(self.drop([name for name in self.columns if name not in new]).table))
        if isinstance(self.frame, pl.DataFrame):
            return pl.DataFrame([self._polars_column(name, values) for name in self.columns])
        return self._pandas_frame(values)

    def _check(self, columns: list[str], what: str) -> None:
        if levels := [name for name in columns if name not in self.frame.columns]:
            raise InputError(f"the index {levels[0]!r} {what}; make it a column with reset_index() first")

    def _moved(self, changed: "FrameRows", columns: list[str], index: Index) -> "FrameRows":
        """Note that values of these columns are those of other rows now."""
        before = {name: self.origin.get(name, np.arange(len(self))) for name in columns}
        moved = {name: at if at is None else at[index] for name, at in before.items()}
        return replace(changed, origin={**self.origin, **moved})

    def _polars_column(self, name: str, values: pl.DataFrame) -> pl.Series:
        column: pl.Series = self.frame[name]
        kind, at = column.dtype, self.origin.get(name)
        if name not in self.origin:
            return column
        if at is None:
            column = values[name].cast(pl.String if kind == pl.Enum else kind)
        else:
            column = column.gather(pl.Series(at))
        return column.cast(pl.Enum(_distinct(column))) if kind == pl.Enum else column  # the old list names clean values

    def _pandas_frame(self, values: pl.DataFrame) -> Any:
        """Return a pandas frame. An index that counts rows starts again when rows move."""
        table, new = self.frame if self.row is None else self.frame.iloc[self.row], {}
        for name in (name for name in self.origin if name in self.columns and name in table.columns):
            old, at = self.frame[name], self.origin[name]
            new[name] = _fresh(_with_values(old, values[name]) if at is None else old.take(at)).set_axis(table.index)
        table = table.assign(**new).drop(columns=[name for name in table.columns if name not in self.columns])
        if _counts(self.frame.index):
            return table if self.row is None else table.reset_index(drop=True)
        named = list(self.frame.iloc[:0].reset_index().columns)  # levels of the index first, also those without a name
        levels = [number for number in range(table.index.nlevels) if named[number] not in self.columns]
        return table.reset_index(level=levels, drop=True) if levels else table


def _with_values(column: Any, values: pl.Series) -> Any:
    """Return a pandas column of the same kind with other values."""
    kind = column.dtype
    if hasattr(kind, "categories"):
        known = set(kind.categories)
        kind = column.cat.add_categories([one for one in _distinct(values) if one not in known]).dtype
    return type(column)(values.to_list(), dtype=kind)


def _distinct(values: pl.Series) -> pl.Series:
    """Return the distinct values of a column, categories as texts."""
    texts = isinstance(values.dtype, pl.Categorical | pl.Enum)
    return (values.cast(pl.String) if texts else values).drop_nulls().unique().sort()


def _fresh(column: Any) -> Any:
    """Return a pandas column whose list of categories holds its values alone: the old list names clean ones, too."""
    categories = getattr(column.dtype, "categories", None)
    if categories is None:
        return column
    if column.dtype.ordered:
        return column.cat.remove_unused_categories()
    return column.astype(categories.dtype).astype("category")


def frame_source(frame: Any, like: Source) -> Source:
    """Return how to read a data frame, which is held as Parquet, in the way that `like` states."""
    plain = frame if isinstance(frame, pl.DataFrame) else _from_pandas(frame)
    out = io.BytesIO()
    try:
        pq.write_table(plain.to_arrow(compat_level=OLDEST), out, compression="none", use_dictionary=False)
    except (ValueError, TypeError, pl.exceptions.PolarsError, NotImplementedError) as e:
        raise _unreadable(e) from None
    return replace(like, content=out.getvalue(), suffix=".parquet", frame=frame)


def _from_pandas(table: Any) -> pl.DataFrame:
    if not (hasattr(table, "iloc") and hasattr(table, "columns")):
        raise InputError(f"give a path, or a polars or pandas DataFrame, not {type(table).__name__}")
    if not (table.columns.is_unique and all(isinstance(name, str) for name in table.columns)):
        raise InputError("the column names of the table must be distinct strings; rename them")
    try:
        return pl.from_pandas(table.reset_index(drop=_counts(table.index)))
    except (ValueError, TypeError, pl.exceptions.PolarsError) as e:  # pyarrow's errors are ValueErrors
        raise _unreadable(e) from None


def _counts(index: Any) -> bool:
    """Tell whether a pandas index only counts rows."""
    return type(index).__name__ == "RangeIndex"


def _unreadable(error: Exception) -> InputError:
    reason = type(error).__name__  # the message of the library quotes values
    return InputError(f"the table cannot be read ({reason}); store text, numbers and times in its columns")
