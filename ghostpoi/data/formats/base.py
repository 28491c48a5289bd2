"""Interfaces of file formats, and the result of reading a file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins
from ghostpoi.data.formats.reading import Reading


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


@dataclass(frozen=True)
class CheckinFile:
    """A file that was read and decompressed."""

    path: Path
    format: str
    mapping: dict[str, str]  # field -> column
    table: Checkins
    sha256: bytes = field(repr=False)  # of the decompressed content; never published, because it identifies clean data
    parse_rows: Callable[[], Rows] = field(repr=False)
    reading: Reading = field(default_factory=Reading)  # what the publisher stated about it

    @cached_property
    def rows(self) -> Rows:
        """All fields of the file, parsed on first access."""
        return self.parse_rows()


class Format(Protocol):
    """A file format. The documentation shows its summary."""

    @property
    def summary(self) -> str: ...

    def recognises(self, head: bytes) -> bool:
        """Tell from the first decompressed bytes whether a file has this format."""

    def read(self, path: Path, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        """Read the decompressed content. `mapping` holds the user's choice of columns, field by field."""
