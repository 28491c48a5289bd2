"""Tables with named columns: CSV, TSV (and anything delimited) and Parquet."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ghostpoi.data.checkins import Checkins
from ghostpoi.data.formats import text
from ghostpoi.data.formats.compression import extension, is_binary
from ghostpoi.data.formats.fields import find_columns, refuse_twins, to_checkins
from ghostpoi.data.formats.rows import ParquetRows, Rows, Source, TextRows, read_text
from ghostpoi.errors import InputError

DELIMITERS = {".csv": ",", ".tsv": "\t"}


def sniff(head: bytes) -> bool:
    """Whatever is not binary may be a table; Parquet says so itself."""
    return is_parquet(head) or not is_binary(head)


def is_parquet(head: bytes) -> bool:
    return head[:4] == b"PAR1"


def read(path: Path, data: bytes, mapping: dict[str, str]) -> tuple[Checkins, Source]:
    """The table, its columns found by name or as mapped."""
    if is_parquet(data):
        return _read_parquet(path, data, mapping)
    body = _body(path, data)
    found = find_columns(body.dialect.columns, mapping, f"{path}, line 1")
    return read_text(body, Source(path, "table", found))


def rows(source: Source, data: bytes) -> Rows:
    """Every field of the file: raw text, or the Parquet table."""
    if is_parquet(data):
        return ParquetRows(_parquet(source.path, data))
    return TextRows.of(_body(source.path, data))


def _body(path: Path, data: bytes) -> text.Body:
    first = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode("latin-1")
    counts = {d: first.count(d) for d in (",", "\t", ";", "|")}
    usual = DELIMITERS.get(extension(path).lower())
    delimiter = max(counts, key=lambda d: (counts[d], d == usual))
    return text.open_body(path, data, delimiter, None, None, quotes=True)


def _parquet(path: Path, data: bytes) -> pa.Table:
    try:
        return pq.ParquetFile(pa.BufferReader(data)).read()
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"{path} is a damaged Parquet file ({str(e).splitlines()[0]}); write it again") from None


def _read_parquet(path: Path, data: bytes, mapping: dict[str, str]) -> tuple[Checkins, Source]:
    table = _parquet(path, data)
    refuse_twins(table.column_names, str(path))
    found = find_columns(table.column_names, mapping, str(path))
    if table.num_rows == 0:
        raise InputError(f"{path} has columns and no check-ins; give a file with at least one row")
    frame = pl.DataFrame({field: _plain(path, column, table.column(column)) for field, column in found.items()})
    checkins = to_checkins(frame, found["category"], lambda row: f"{path}, row {row + 1}", str(path))
    return checkins, Source(path, "table", found)


def _plain(path: Path, name: str, column: pa.ChunkedArray) -> pl.Series:
    """A column of numbers, times or text."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if (
        pa.types.is_nested(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_duration(kind)
    ):
        raise InputError(
            f"{path}: the column {name!r} is of type {column.type}; store it as text, numbers or timestamps"
        )
    return pl.Series(name, column)
