"""Interfaces of file formats, and the result of reading a file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins
from ghostpoi.formats.kinds import Kind
from ghostpoi.formats.rows import Rows
from ghostpoi.formats.source import Reading, Source, VenueTable


@dataclass(frozen=True)
class CheckinFile:
    """A file that was read and decompressed."""

    source: Source
    format: str
    kind: Kind
    mapping: dict[str, str]  # field -> column
    table: Checkins
    sha256: bytes = field(repr=False)  # of the decompressed content; never published, because it identifies clean data
    parse_rows: Callable[[], Rows] = field(repr=False)
    missing: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)  # not in the table
    missing_at: str = field(default="", repr=False)  # where the first of them are

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def reading(self) -> Reading:
        """What the publisher stated about it."""
        return self.source.reading

    @property
    def venues(self) -> VenueTable | None:
        """The table that positions and categories come from."""
        return self.source.venues

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

    def read(self, source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        """Read the decompressed content. `mapping` holds the user's choice of columns, field by field."""
