"""Data frames of polars and pandas, read and changed like Parquet files; the caller gets back a frame of the same kind.

A pandas index becomes columns, because it may reveal the venue like any column.
"""

import io
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Protocol

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ghostpoi.errors import InputError
from ghostpoi.formats.folder import FolderRows
from ghostpoi.formats.parquet import ParquetRows
from ghostpoi.formats.rows import Rows
from ghostpoi.formats.source import Source
from ghostpoi.formats.text import value
from ghostpoi.formats.text_rows import TextRows

Index = NDArray[np.int64]
OLDEST = pl.CompatLevel.oldest()  # pyarrow cannot rearrange the newest text type


class Frame(Protocol):
    """A data frame that can be changed as rows are; every call returns a new one."""

    @property
    def frame(self) -> Any: ...

    def copy_fields(self, columns: list[str], donor: Index) -> "Frame": ...

    def take(self, index: Index) -> "Frame": ...

    def replace_ids(self, column: str, ids: list[str]) -> "Frame": ...

    def drop(self, columns: list[str]) -> "Frame": ...

    def without_metadata(self) -> "Frame": ...


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


@dataclass(frozen=True)
class PandasFrame:
    """A pandas data frame. An index that counts rows starts anew when rows move."""

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

    def _check(self, columns: list[str], what: str) -> None:
        if levels := [name for name in columns if name not in self.frame.columns]:
            raise InputError(f"the index {levels[0]!r} {what}; make it a column with reset_index() first")


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


@dataclass(frozen=True)
class FrameRows:
    """The rows of a caller's frame, and the same rows as Parquet holds them."""

    rows: Rows
    frame: Frame

    @property
    def columns(self) -> list[str]:
        return self.rows.columns

    def get_column(self, name: str) -> pl.Series:
        return self.rows.get_column(name)

    def copy_fields(self, columns: list[str], donor: Index) -> "FrameRows":
        return FrameRows(self.rows.copy_fields(columns, donor), self.frame.copy_fields(columns, donor))

    def take(self, index: Index) -> "FrameRows":
        return FrameRows(self.rows.take(index), self.frame.take(index))

    def largest_number(self, column: str) -> int | None:
        return self.rows.largest_number(column)

    def replace_ids(self, column: str, ids: NDArray[np.object_]) -> "FrameRows":
        return FrameRows(self.rows.replace_ids(column, ids), self.frame.replace_ids(column, [str(i) for i in ids]))

    def drop(self, columns: list[str]) -> "FrameRows":
        return FrameRows(self.rows.drop(columns), self.frame.drop(columns))

    def requote(self, columns: list[str]) -> "FrameRows":
        return self

    def write(self, out: BinaryIO) -> None:
        self.rows.write(out)

    def without_metadata(self) -> "FrameRows":
        return FrameRows(self.rows.without_metadata(), self.frame.without_metadata())


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


def to_frame(rows: Rows, mapping: dict[str, str]) -> Any:
    """Return rows as a data frame: the caller's kind for a frame, otherwise polars.

    The columns of a file without types are text, except coordinates, which are numbers.
    """
    if isinstance(rows, FrameRows):
        return rows.frame.frame
    if isinstance(rows, FolderRows):
        rows = rows.whole
    if isinstance(rows, ParquetRows):
        return pl.from_arrow(rows.table)
    frame = pl.DataFrame({name: rows.get_column(name) for name in rows.columns})
    if isinstance(rows, TextRows):
        frame = frame.select(value(pl.col(name), rows.dialect.quoted).alias(name) for name in frame.columns)
    degrees = [mapping[field] for field in ("lat", "lon") if frame.schema.get(mapping.get(field, "")) == pl.String]
    return frame.with_columns(pl.col(degrees).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False))


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
