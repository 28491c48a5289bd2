"""The rows of a file, as every format offers them."""

from typing import BinaryIO, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray


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
