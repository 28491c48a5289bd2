"""Interfaces of file formats, and the result of reading a file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins
from ghostpoi.formats.kinds import Kind
from ghostpoi.formats.reading import Reading


class Columns(Protocol):
    """Named columns of a table, as polars data frames have them."""

    @property
    def columns(self) -> list[str]: ...

    def get_column(self, name: str) -> pl.Series:
        """Return one column."""


class Rows(Columns, Protocol):
    """All fields of a file, without loss."""

    def copy_fields(self, columns: list[str], donor: NDArray[np.int64]) -> "Rows":
        """Replace these columns of every row i by those of row donor[i]."""

    def take(self, index: NDArray[np.int64]) -> "Rows":
        """Return these rows, in this order."""

    def largest_number(self, column: str) -> int | None:
        """Return the largest number that a column of ids can hold; None if it can hold any text."""

    def replace_ids(self, column: str, ids: NDArray[np.object_]) -> "Rows":
        """Replace a column of ids. It keeps its type."""

    def drop(self, columns: list[str]) -> "Rows":
        """Leave these columns out."""

    def requote(self, columns: list[str]) -> "Rows":
        """Put fields of these columns that contain a stray quote into quotes. Their values stay the same."""

    def write(self, out: BinaryIO) -> None:
        """Write the rows in the format of the original file."""

    def without_metadata(self) -> "Rows":
        """Drop notes of the file that are not needed to read its rows: they may hold clean data."""


@runtime_checkable
class Coded(Protocol):
    """Rows that may hold a text column as numbers of its distinct texts."""

    def codes(self, name: str) -> tuple[NDArray[np.integer], list[str]] | None:
        """Return the number of the text of each row, (N,), and the texts; None if the column is not held so."""


VENUE = "venue"  # a field of tables of venues: the id


@dataclass(frozen=True)
class VenueTable:
    """A table of venues, which gives check-ins their position and category."""

    path: Path
    mapping: dict[str, str]  # field -> column
    fields: pl.DataFrame = field(repr=False)  # a row per venue: poi and what describes it, as text
    rows: Rows = field(repr=False)
    sha256: bytes = field(repr=False)
    where: Callable[[int], str] = field(repr=False)  # names the place of a row


@dataclass(frozen=True)
class CheckinFile:
    """A file that was read and decompressed."""

    path: Path
    format: str
    kind: Kind
    mapping: dict[str, str]  # field -> column
    table: Checkins
    sha256: bytes = field(repr=False)  # of the decompressed content; never published, because it identifies clean data
    parse_rows: Callable[[], Rows] = field(repr=False)
    reading: Reading = field(default_factory=Reading)  # what the publisher stated about it
    missing: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)  # not in the table
    missing_at: str = field(default="", repr=False)  # where the first of them are
    venues: VenueTable | None = None  # which positions and categories come from

    @cached_property
    def all_rows(self) -> Rows:
        """All rows of the file, parsed on first access."""
        return self.parse_rows()

    @cached_property
    def rows(self) -> Rows:
        """All fields of the rows of the table."""
        return self.all_rows.take(self.present) if len(self.missing) else self.all_rows

    @property
    def present(self) -> NDArray[np.int64]:
        """The rows of the file that are in the table: those that lack no value."""
        return np.delete(np.arange(len(self.table) + len(self.missing)), self.missing)

    @property
    def kept(self) -> NDArray[np.int64]:
        """The rows that lack a value and stay as they are."""
        return self.missing if self.reading.missing == "keep" else self.missing[:0]

    @property
    def counted(self) -> dict[str, int]:
        """How many rows lack a value, by what becomes of them."""
        name = {"keep": "kept", "drop": "dropped"}.get(self.reading.missing, "")
        return {name: len(self.missing)} if len(self.missing) else {}


class Format(Protocol):
    """A file format. The documentation shows its summary."""

    @property
    def summary(self) -> str: ...

    def recognises(self, head: bytes) -> bool:
        """Tell from the first decompressed bytes whether a file has this format."""

    def read(self, path: Path, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        """Read the decompressed content. `mapping` holds the user's choice of columns, field by field."""
