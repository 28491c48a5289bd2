"""Data frames of polars and pandas, read and changed like Parquet files; the caller gets back a frame of the same kind.

A pandas index becomes columns, because it may reveal the venue like any column.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ghostpoi.errors import InputError
from ghostpoi.formats.rows import Index, Rows, WrappedRows
from ghostpoi.formats.source import Source

OLDEST = pl.CompatLevel.oldest()  # pyarrow cannot rearrange the newest text type


@dataclass(frozen=True)
class PolarsFrame:
    """A polars data frame."""

    frame: pl.DataFrame

    def copy_fields(self, columns: list[str], donor: Index) -> "PolarsFrame":
        index = pl.Series(donor)
        return PolarsFrame(self.frame.with_columns(_listed(self.frame[c].gather(index)) for c in columns))

    def take(self, index: Index) -> "PolarsFrame":
        return PolarsFrame(self.frame[index].select(_listed(column) for column in self.frame[index]))

    def replace_ids(self, column: str, ids: list[str]) -> "PolarsFrame":
        kind = self.frame[column].dtype
        new = pl.Series(column, ids, dtype=pl.String)
        return PolarsFrame(self.frame.with_columns(new.cast(pl.Enum(sorted(set(ids))) if kind == pl.Enum else kind)))

    def drop(self, columns: list[str]) -> "PolarsFrame":
        return PolarsFrame(self.frame.drop(columns))

    def without_metadata(self) -> "PolarsFrame":
        return self

    def with_columns(self, columns: list[str], values: pl.DataFrame) -> "PolarsFrame":
        """Return the frame with these columns of Parquet rows, in its own types."""
        kinds: dict[Any, Any] = {name: kind for name, kind in self.frame.schema.items() if name in columns}
        kinds |= {name: pl.Enum(_distinct(values[name])) for name, kind in kinds.items() if kind == pl.Enum}
        return PolarsFrame(self.frame.with_columns(values.select(columns).cast(kinds)))


@dataclass(frozen=True)
class PandasFrame:
    """A pandas data frame. An index that counts rows starts again when rows move."""

    frame: Any

    def copy_fields(self, columns: list[str], donor: Index) -> "PandasFrame":
        self._check(columns, "changes with the venue")
        table = self.frame
        new = {name: _fresh(table[name].take(donor)).set_axis(table.index) for name in columns}
        return PandasFrame(table.assign(**new))

    def take(self, index: Index) -> "PandasFrame":
        table = self.frame.iloc[index]
        table = table.assign(**{name: _fresh(table[name]) for name in table.columns})
        return PandasFrame(table.reset_index(drop=True) if _counts(self.frame.index) else table)

    def replace_ids(self, column: str, ids: list[str]) -> "PandasFrame":
        self._check([column], "gets pseudonyms")
        old = self.frame[column]
        categories = getattr(old.dtype, "categories", None)
        kind = old.dtype if categories is None else categories.dtype
        number = {"i": int, "u": int, "f": float}.get(kind.kind, str)
        same = old.dtype if categories is None else "category"
        new = type(old)([number(i) for i in ids], index=self.frame.index, dtype=same)
        return PandasFrame(self.frame.assign(**{column: new}))

    def drop(self, columns: list[str]) -> "PandasFrame":
        table = self.frame.drop(columns=[name for name in columns if name in self.frame.columns])
        named = list(self.frame.iloc[:0].reset_index().columns)  # levels of the index first, also those without a name
        levels = [number for number in range(table.index.nlevels) if named[number] in columns]
        return PandasFrame(table.reset_index(level=levels, drop=True) if levels else table)

    def without_metadata(self) -> "PandasFrame":
        """Drop the notes in `attrs`, which may name clean files."""
        frame = self.frame.copy(deep=False)
        frame.attrs = {}
        return PandasFrame(frame)

    def with_columns(self, columns: list[str], values: pl.DataFrame) -> "PandasFrame":
        self._check(columns, "changes with the venue")
        table, new = self.frame, {}
        for name in columns:
            old, kind = table[name], table[name].dtype
            if hasattr(kind, "categories"):
                known = set(kind.categories)
                kind = old.cat.add_categories([one for one in _distinct(values[name]) if one not in known]).dtype
            new[name] = _fresh(type(old)(values[name].to_list(), index=table.index, dtype=kind))
        return PandasFrame(table.assign(**new))

    def _check(self, columns: list[str], what: str) -> None:
        if levels := [name for name in columns if name not in self.frame.columns]:
            raise InputError(f"the index {levels[0]!r} {what}; make it a column with reset_index() first")


def _distinct(values: pl.Series) -> pl.Series:
    """Return the distinct values of a column, categories as texts."""
    texts = isinstance(values.dtype, pl.Categorical | pl.Enum)
    return (values.cast(pl.String) if texts else values).drop_nulls().unique().sort()


def _listed(column: pl.Series) -> pl.Series:
    """Return a polars column whose Enum lists its values alone: the old list names clean ones, too."""
    return (
        column.cast(pl.Enum(column.drop_nulls().cast(pl.String).unique().sort())) if column.dtype == pl.Enum else column
    )


def _fresh(column: Any) -> Any:
    """Return a pandas column whose list of categories holds its values alone: the old list names clean ones, too."""
    categories = getattr(column.dtype, "categories", None)
    if categories is None:
        return column
    if column.dtype.ordered:
        return column.cat.remove_unused_categories()
    return column.astype(categories.dtype).astype("category")


Frame = PolarsFrame | PandasFrame


@dataclass(frozen=True)
class FrameRows(WrappedRows):
    """The rows of a caller's frame, and the same rows as Parquet holds them."""

    frame: Frame

    @property
    def stored(self) -> Rows:
        return self.rows

    def with_stored(self, columns: list[str], changed: Rows) -> "FrameRows":
        values = changed.drop([name for name in changed.columns if name not in columns]).to_frame({})
        return FrameRows(changed, self.frame.with_columns(columns, values))

    def each(self, change: Callable[[Any], Any]) -> "FrameRows":
        return FrameRows(change(self.rows), change(self.frame))

    def take(self, index: Index) -> "FrameRows":
        return self.each(lambda held: held.take(index))

    def replace_ids(self, column: str, ids: NDArray[np.object_]) -> "FrameRows":
        return FrameRows(self.rows.replace_ids(column, ids), self.frame.replace_ids(column, [str(i) for i in ids]))

    def to_frame(self, mapping: dict[str, str]) -> Any:
        return self.frame.frame


def frame_source(frame: Any, like: Source) -> Source:
    """Return how to read a data frame, which is held as Parquet, in the way that `like` states."""
    own: Frame = PolarsFrame(frame) if isinstance(frame, pl.DataFrame) else PandasFrame(frame)
    plain = frame if isinstance(frame, pl.DataFrame) else _from_pandas(frame)
    out = io.BytesIO()
    try:
        pq.write_table(plain.to_arrow(compat_level=OLDEST), out, compression="none", use_dictionary=False)
    except (ValueError, TypeError, pl.exceptions.PolarsError, NotImplementedError) as e:
        raise _unreadable(e) from None
    return replace(like, content=out.getvalue(), suffix=".parquet", frame=own)


def _from_pandas(table: Any) -> pl.DataFrame:
    if not (hasattr(table, "iloc") and hasattr(table, "columns")):
        raise InputError(f"give a path, or a polars or pandas DataFrame, not {type(table).__name__}")
    if not (table.columns.is_unique and all(isinstance(name, str) for name in table.columns)):
        raise InputError("the column names of the table must be distinct strings; rename them")
    try:
        frame: pl.DataFrame = pl.from_pandas(table.reset_index(drop=_counts(table.index)))
        return frame
    except (ValueError, TypeError, pl.exceptions.PolarsError) as e:  # pyarrow's errors are ValueErrors
        raise _unreadable(e) from None


def _counts(index: Any) -> bool:
    """Tell whether a pandas index only counts rows."""
    return type(index).__name__ == "RangeIndex"


def _unreadable(error: Exception) -> InputError:
    reason = type(error).__name__  # the message of the library quotes values
    return InputError(f"the table cannot be read ({reason}); store text, numbers and times in its columns")
