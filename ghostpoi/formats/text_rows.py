"""Rows of text files, which can be changed and written back."""

from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import DATE, FIELDS, GROUP, IDS
from ghostpoi.formats import text
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.build import to_file
from ghostpoi.formats.points import POINT
from ghostpoi.formats.source import Source
from ghostpoi.formats.zones import TIMEZONE

RETURN = text.RETURN.decode()


@dataclass(frozen=True)
class TextRows:
    """Raw fields of a text file. A carriage return at the end of a line is not part of the last field."""

    frame: pl.DataFrame
    dialect: text.Dialect
    returns: pl.Series | None  # (N,) whether the line ends with a carriage return; None: no line does

    @staticmethod
    def of(body: text.Body) -> "TextRows":
        frame, dialect = body.frame(), body.dialect
        if not dialect.control_separated and (not dialect.tail.startswith(b"\r") or text.RETURN in body.data):
            return TextRows(frame, dialect, None)
        last = frame.columns[-1]
        returns = frame[last].str.ends_with(RETURN).fill_null(False)
        # The end of the last line is in the tail. If it has none, it would be that of the line before.
        ends = dialect.tail.startswith(b"\r") if dialect.tail else bool(returns[:-1].tail(1).any())
        returns = returns.head(frame.height - 1).extend_constant(ends, 1)
        frame = frame.with_columns(pl.col(last).str.strip_suffix(RETURN))
        return TextRows(frame, replace(dialect, control_separated=True), returns)

    @property
    def columns(self) -> list[str]:
        return self.frame.columns

    def get_column(self, name: str) -> pl.Series:
        return self.frame[name]

    def copy_fields(self, columns: list[str], donor: NDArray[np.int64]) -> "TextRows":
        index = pl.Series(donor)
        frame = self.frame.with_columns(self.frame[c].gather(index) for c in columns)
        return TextRows(frame, self.dialect, self.returns)

    def take(self, index: NDArray[np.int64]) -> "TextRows":
        returns = None if self.returns is None else self.returns.gather(index)
        return TextRows(self.frame[index], self.dialect, returns)

    def largest_number(self, column: str) -> int | None:
        return None

    def replace_ids(self, column: str, ids: NDArray[np.object_]) -> "TextRows":
        """Replace a column of ids. Quotes and line ends become the same: how a row was written may tell whose it is."""
        quote = '"' if self.dialect.quoted and self.frame[column].str.contains('"', literal=True).any() else ""
        doubled = (i.replace(quote, quote * 2) if quote else i for i in ids.tolist())
        new = pl.Series(column, [f"{quote}{i}{quote}" for i in doubled], dtype=pl.String)
        return TextRows(self.frame.with_columns(new), self.dialect, self._same_returns())

    def _same_returns(self) -> pl.Series | None:
        """How most lines end, for all: if only some end with a carriage return, that may tell whose they are."""
        if self.returns is None:
            return None
        most = 2 * int(self.returns.sum()) > len(self.returns)
        return pl.repeat(most, len(self.returns), eager=True)

    def drop(self, columns: list[str]) -> "TextRows":
        return TextRows(self.frame.drop(columns), text.without(self.dialect, columns), self.returns)

    def requote(self, columns: list[str]) -> "TextRows":
        if not self.dialect.quoted:
            return self
        frame = self.frame.with_columns(_requoted(pl.col(c)).alias(c) for c in columns)
        return TextRows(frame, self.dialect, self.returns)

    def without_metadata(self) -> "TextRows":
        return self

    def with_line_end(self) -> "TextRows":
        """Return the same rows with the last line ended as it would be if others followed."""
        ends = self.returns is not None and bool(self.returns.tail(1).any())
        return replace(self, dialect=replace(self.dialect, tail=b"\r\n" if ends else b"\n"))

    def write(self, out: BinaryIO) -> None:
        frame = self.frame
        if self.returns is not None and frame.height:
            # The end of the last line is in the dialect's tail.
            returns = self.returns.head(frame.height - 1).extend_constant(False, 1)
            last = pl.col(frame.columns[-1])
            with_return = last.fill_null("") + pl.lit(RETURN)
            frame = frame.with_columns(pl.when(returns).then(with_return).otherwise(last).alias(frame.columns[-1]))
        text.write(frame, self.dialect, out)


def _requoted(raw: pl.Expr) -> pl.Expr:
    """Quote a raw field that contains a quote but is not a well-formed quoted field. Its value stays the same."""
    text = raw.str.strip_chars(f" \t{RETURN}")
    whole = text.str.starts_with('"') & text.str.ends_with('"') & (text.str.len_bytes() > 1)
    inner = text.str.strip_prefix('"').str.strip_suffix('"').str.replace_all('""', '"', literal=True)
    value = pl.when(whole).then(inner).otherwise(text)
    quoted = pl.lit('"') + value.str.replace_all('"', '""', literal=True) + pl.lit('"')
    stray = raw.str.contains('"', literal=True) & ~raw.str.contains(r'^"(?:[^"]|"")*"$')
    return pl.when(stray).then(quoted).otherwise(raw)


KINDS = dict.fromkeys(IDS, pl.Categorical()) | {
    "lat": pl.Float64(),
    "lon": pl.Float64(),
    "time": pl.String(),
    GROUP: pl.String(),
    DATE: pl.String(),
    POINT: pl.String(),
    TIMEZONE: pl.String(),
}


def read_text(body: text.Body, data: bytes, format: str, mapping: dict[str, str]) -> CheckinFile:
    """Parse typed columns directly from the bytes. If a value does not fit, parse text and convert it or name it."""
    source = body.source
    column = _columns(source, mapping)
    frame = None
    plain = not body.dialect.control_separated and not source.reading.decimal
    if plain and len(set(column.values())) == len(column):
        frame = body.frame({c: KINDS[field] for field, c in column.items()})
        needed = [column[field] for field in (*FIELDS, DATE, POINT) if field in column]
        ids = [column[field] for field in IDS if field in column]
        if any(frame[c].null_count() for c in needed) or any(_padded(frame[c]) for c in ids):
            frame = None
    if frame is None:
        frame = body.values(list(dict.fromkeys(column.values())))
    fields = frame.select(pl.col(c).alias(field) for field, c in column.items())
    return to_file(
        source, data, format, mapping, fields, lambda row: f"{source}, line {body.line(row)}", lambda: TextRows.of(body)
    )


def file_of_text(source: Source, rows: TextRows, format: str, mapping: dict[str, str]) -> CheckinFile:
    """Find the check-ins in rows of text, given the columns of all fields."""
    column, quoted = _columns(source, mapping), rows.dialect.quoted
    fields = rows.frame.select(text.value(pl.col(c), quoted).alias(field) for field, c in column.items())
    return to_file(
        source, rows.dialect.start, format, mapping, fields, lambda row: f"{source}, row {row + 1}", lambda: rows
    )


def _columns(source: Source, mapping: dict[str, str]) -> dict[str, str]:
    """Return the column of each field that the file itself gives."""
    every = (*FIELDS, GROUP, DATE, POINT, TIMEZONE)
    return {field: mapping[field] for field in every if field in mapping and field not in source.elsewhere}


def _padded(ids: pl.Series) -> bool:
    """Tell whether an id begins or ends with a space."""
    return bool(ids.unique().cast(pl.String).str.contains(r"^[ \t]|[ \t]$").any())
