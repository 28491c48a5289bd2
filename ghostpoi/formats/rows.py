"""The rows of a file, as every format offers them: all fields without loss, to be changed and written back."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.errors import InputError
from ghostpoi.files import replacing

Index = NDArray[np.int64]


class Columns(Protocol):
    """Named columns of a table, as polars data frames have them."""

    @property
    def columns(self) -> list[str]: ...

    def get_column(self, name: str) -> pl.Series:
        """Return one column."""


@dataclass(frozen=True)
class Dialect:
    """The layout of a text file."""

    path: Path
    delimiter: str
    columns: tuple[str, ...]
    encoding: str
    start: bytes  # byte-order mark and header line
    tail: bytes  # line ends after the last row
    control_separated: bool  # UNIT and RECORD separate the fields and rows of the body
    quoted: bool  # fields may be quoted
    ascii: bool  # all bytes are, so that any encoding would do
    controls: bool  # UNIT, RECORD or RETURN are text


class Layout(ABC):
    """How a format writes rows of values."""

    words: str  # the format as a phrase
    mime_type: str

    def json_path(self, column: str) -> str:
        """Return the JSONPath of a column's values; "" if the format is not JSON."""
        return ""

    @abstractmethod
    def write(self, columns: Sequence[str], rows: Iterator[tuple[str | None, ...]], out: BinaryIO) -> None:
        """Write rows of JSON texts; None stands for null."""

    def without_metadata(self) -> "Layout":
        """Drop what is not needed to read the rows."""
        return self


class Rows(ABC):
    """All fields of a file, without loss. What a kind of rows does not have is empty or None."""

    dialect: Dialect | None = None  # of text
    layout: Layout | None = None  # of JSON and workbooks
    schema: Any = None  # of Parquet
    parts: tuple[str, ...] = ()  # of a folder: their names
    part: Index = np.empty(0, np.int64)  # of a folder, (N,) ascending
    can_join = False  # with rows of other files

    @property
    @abstractmethod
    def columns(self) -> list[str]: ...

    @abstractmethod
    def get_column(self, name: str) -> pl.Series:
        """Return one column."""

    @abstractmethod
    def copy_fields(self, columns: list[str], donor: Index) -> Self:
        """Replace these columns of every row i by those of row donor[i]."""

    @abstractmethod
    def take(self, index: Index) -> Self:
        """Return these rows, in this order."""

    @abstractmethod
    def largest_number(self, column: str) -> int | None:
        """Return the largest number that a column of ids can hold; None if it can hold any text."""

    @abstractmethod
    def replace_ids(self, column: str, ids: NDArray[np.object_]) -> Self:
        """Replace a column of ids. It keeps its type."""

    @abstractmethod
    def drop(self, columns: list[str]) -> Self:
        """Leave these columns out."""

    @abstractmethod
    def write(self, out: BinaryIO) -> None:
        """Write the rows in the format of the original file."""

    def requote(self, columns: list[str]) -> Self:
        """Put fields of these columns that contain a stray quote into quotes. Their values stay the same."""
        return self

    def without_metadata(self) -> Self:
        """Drop notes of the file that are not needed to read its rows: they may hold clean data."""
        return self

    def with_line_end(self) -> Self:
        """Return rows of text whose last line ends as it would if others followed."""
        return self

    def framed(self, start: bytes | None = None, tail: bytes | None = None) -> Self:
        """Return rows of text whose file begins and ends so; None: as before."""
        return self

    def codes(self, name: str) -> tuple[NDArray[np.integer], list[str]] | None:
        """Return the number of the text of each row, (N,), and the texts; None if a column is not held so."""
        return None

    @property
    def whole(self) -> "Rows":
        """The rows of a folder as if they were one file."""
        return self

    def divided_anew(self) -> Self:
        """Return the same rows, in order; those of a folder in as many parts of equal size with numbers as names."""
        return self

    @property
    def stored(self) -> "Rows":
        """The rows of a data frame as a file holds them."""
        return self

    def with_stored(self, columns: list[str], changed: "Rows") -> "Rows":
        """Return `changed`, which differs from these rows, as they are stored, in these columns."""
        return changed

    def joined(self, parts: Sequence["Rows"], other: str) -> "Rows":
        """Return the rows of all parts as rows of this kind. `other`: what the types of a part differ from."""
        raise TypeError(f"rows of {type(self).__name__} cannot be joined")

    def as_file(self, source: Any, format: str, mapping: dict[str, str]) -> Any:
        """Return the check-ins, a `CheckinFile`; `mapping` names the columns that were found when rows were read."""
        raise TypeError(f"rows of {type(self).__name__} cannot be read again")

    def to_frame(self, mapping: dict[str, str]) -> Any:
        """Return a data frame. Columns of a file without types are text, except coordinates, which are numbers."""
        return with_degrees(pl.DataFrame({name: self.get_column(name) for name in self.columns}), mapping)

    def write_to(self, path: Path) -> None:
        """Write a file or, for the rows of a folder, a folder."""
        with replacing(path) as out:
            self.write(out)


def with_degrees(frame: pl.DataFrame, mapping: dict[str, str]) -> pl.DataFrame:
    """Return a frame with coordinates as numbers."""
    degrees = [mapping[field] for field in ("lat", "lon") if frame.schema.get(mapping.get(field, "")) == pl.String]
    return frame.with_columns(pl.col(degrees).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False))


@dataclass(frozen=True)
class FieldRows(Rows):
    """Rows whose fields are held as text, without loss."""

    frame: pl.DataFrame

    @property
    def columns(self) -> list[str]:
        return self.frame.columns

    def get_column(self, name: str) -> pl.Series:
        return self.frame[name]

    def copy_fields(self, columns: list[str], donor: Index) -> Self:
        index = pl.Series(donor)
        return replace(self, frame=self.frame.with_columns(self.frame[c].gather(index) for c in columns))

    def take(self, index: Index) -> Self:
        return replace(self, frame=self.frame[index])

    def drop(self, columns: list[str]) -> Self:
        return replace(self, frame=self.frame.drop(columns))


@dataclass(frozen=True)
class WrappedRows(Rows):
    """Rows that know more than those of a file."""

    rows: Rows

    def each(self, change: Callable[[Any], Any]) -> Self:
        """Return these rows with all that holds them changed in this way."""
        return replace(self, rows=change(self.rows))

    @property
    def columns(self) -> list[str]:
        return self.rows.columns

    def get_column(self, name: str) -> pl.Series:
        return self.rows.get_column(name)

    def copy_fields(self, columns: list[str], donor: Index) -> Self:
        return self.each(lambda held: held.copy_fields(columns, donor))

    def drop(self, columns: list[str]) -> Self:
        return self.each(lambda held: held.drop(columns))

    def without_metadata(self) -> Self:
        return self.each(lambda held: held.without_metadata())

    def largest_number(self, column: str) -> int | None:
        return self.rows.largest_number(column)

    def write(self, out: BinaryIO) -> None:
        self.rows.write(out)


def difference(expected: Rows, found: Rows, ignore: Container[str] = ()) -> str | None:
    """Return the first difference outside the columns to ignore, or None."""
    if expected.columns != found.columns:
        return f"the columns are {', '.join(found.columns)}, not {', '.join(expected.columns)}"
    for name in found.columns:
        if name in ignore or _same_codes(expected, found, name):
            continue
        one, two = expected.get_column(name), found.get_column(name)
        if len(one) != len(two):
            return f"there are {len(two):,} rows, not {len(one):,}"
        if one.dtype != two.dtype:
            return f"the column {name} has type {two.dtype}, not {one.dtype}"
        if not one.equals(two):
            return f"row {int(one.ne_missing(two).arg_max() or 0) + 1} has a different {name}"
    return None


def _same_codes(expected: Rows, found: Rows, name: str) -> bool:
    """Return whether two columns hold the same texts, from the numbers of the texts; False if that cannot be seen."""
    one, two = expected.codes(name), found.codes(name)
    if one is None or two is None or len(one[0]) != len(two[0]):
        return False
    number = {text: code for code, text in enumerate(one[1])}
    return bool((np.array([number.get(text, -1) for text in two[1]])[two[0]] == one[0]).all())


def not_joined(path: Path) -> InputError:
    """Say that files of a kind cannot be parts of a folder."""
    return InputError(f"{path}: files of this kind cannot be parts of a folder; use CSV, TSV or Parquet")
