"""Rows of formats that store values rather than text: JSON, GeoJSON, workbooks.

A field is kept as its JSON text, so that a number stays a number and text stays text, and the same value is always
written the same way.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.errors import InputError
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.build import to_file
from ghostpoi.formats.fields import find_columns, refuse_duplicate_names
from ghostpoi.formats.source import Source

TIME = "@"  # before the text of a time, which JSON lacks
MARKED = rf'^["{TIME}]'
EXACT = 1 << 53  # whole numbers up to this one are exact in every JSON parser and in workbooks


class Layout(Protocol):
    """How a format writes its rows."""

    @property
    def words(self) -> str:
        """The format as a phrase."""

    @property
    def mime_type(self) -> str: ...

    def json_path(self, column: str) -> str:
        """Return the JSONPath of a column's values; "" if the format is not JSON."""

    def write(self, columns: Sequence[str], rows: Iterator[tuple[str | None, ...]], out: BinaryIO) -> None:
        """Write rows of JSON texts; None stands for null."""

    def without_metadata(self) -> "Layout":
        """Drop what is not needed to read the rows."""


@dataclass(frozen=True)
class RecordRows:
    """Fields as JSON texts, null where a value is missing."""

    frame: pl.DataFrame
    layout: Layout
    path: Path

    @property
    def columns(self) -> list[str]:
        return self.frame.columns

    def get_column(self, name: str) -> pl.Series:
        """Return a column as text: that of strings without their quotes."""
        raw = self.frame[name]
        if not raw.str.contains(MARKED).any():
            return raw
        distinct = raw.unique().drop_nulls()
        return raw.replace_strict(distinct, [_shown(text) for text in distinct], return_dtype=pl.String)

    def copy_fields(self, columns: list[str], donor: NDArray[np.int64]) -> "RecordRows":
        index = pl.Series(donor)
        return replace(self, frame=self.frame.with_columns(self.frame[c].gather(index) for c in columns))

    def take(self, index: NDArray[np.int64]) -> "RecordRows":
        return replace(self, frame=self.frame[index])

    def largest_number(self, column: str) -> int | None:
        values = self.frame[column].drop_nulls()
        if values.str.contains(r"^-?\d+$").all():
            return EXACT
        if values.str.starts_with('"').all():
            return None
        raise InputError(
            f"{self.path}: the column {column!r} mixes text and numbers, so its values cannot become pseudonyms; "
            "store it as text"
        )

    def replace_ids(self, column: str, ids: NDArray[np.object_]) -> "RecordRows":
        is_text = self.frame[column].str.starts_with('"').any()
        new = [json_text(value) if is_text else value for value in ids.tolist()]
        return replace(self, frame=self.frame.with_columns(pl.Series(column, new, dtype=pl.String)))

    def drop(self, columns: list[str]) -> "RecordRows":
        return replace(self, frame=self.frame.drop(columns))

    def requote(self, columns: list[str]) -> "RecordRows":
        return self

    def without_metadata(self) -> "RecordRows":
        return replace(self, layout=self.layout.without_metadata())

    def write(self, out: BinaryIO) -> None:
        self.layout.write(self.columns, self.frame.iter_rows(), out)


def json_text(value: Any) -> str:
    """Return the one text by which a value is kept and written."""
    return json.dumps(value, ensure_ascii=False)


def _shown(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text.removeprefix(TIME)


def read_records(
    source: Source, data: bytes, format: str, columns: Mapping[str, list[str | None]], given: dict[str, str],
    layout: Layout, unit: str, first: int = 1,
) -> CheckinFile:  # fmt: skip
    """Read check-ins from columns of JSON texts. Messages call a row `unit`; `first` is the number of the first one."""
    refuse_duplicate_names(list(columns), str(source))
    try:
        frame = pl.DataFrame({name: pl.Series(name, texts, dtype=pl.String) for name, texts in columns.items()})
    except UnicodeEncodeError:
        raise InputError(f"{source} contains half of a character (a lone surrogate); write it as UTF-8") from None
    rows = RecordRows(frame, layout, source.path)
    found = find_columns(source, frame.columns, given)
    elsewhere = source.elsewhere
    fields = {field: rows.get_column(c) for field, c in found.items() if field not in elsewhere}
    return to_file(
        source, data, format, found, pl.DataFrame(fields), lambda row: f"{source}, {unit} {row + first}", lambda: rows
    )
