"""What a format is, and what comes of reading a file: its check-ins, and all its fields to be written back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins


class Columns(Protocol):
    """Named columns to look at."""

    @property
    def columns(self) -> list[str]: ...

    def column(self, name: str) -> pl.Series:
        """One column, for comparing values."""


class Rows(Columns, Protocol):
    """All fields of a file, lossless."""

    def copy_fields(self, columns: list[str], donor: NDArray[np.int64]) -> "Rows":
        """Copy these columns of row donor[i] into row i."""

    def take(self, index: NDArray[np.int64]) -> "Rows":
        """Return these rows, in this order."""

    def write(self, out: BinaryIO) -> None:
        """Write the file in the form in which it was read."""


@dataclass(frozen=True)
class CheckinFile:
    """A file that was read and decompressed once."""

    path: Path
    format: str
    mapping: dict[str, str]  # field -> column
    table: Checkins
    sha256: bytes = field(repr=False)  # of the decompressed content; it identifies clean data, so it is never published
    parse_rows: Callable[[], Rows] = field(repr=False)

    @cached_property
    def rows(self) -> Rows:
        """All fields of the file, parsed when first asked for."""
        return self.parse_rows()


class Format(Protocol):
    """A file format. Its summary appears in the documentation."""

    @property
    def summary(self) -> str: ...

    def recognises(self, head: bytes) -> bool:
        """Tell from the first bytes, decompressed, whether a file is in this format."""

    def read(self, path: Path, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        """Read the decompressed content; `mapping` holds the fields that the user mapped to columns."""
