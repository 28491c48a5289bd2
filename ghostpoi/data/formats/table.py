"""Tables with named columns: delimited text such as CSV and TSV, and Parquet."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ghostpoi.data.formats import text
from ghostpoi.data.formats.base import CheckinFile
from ghostpoi.data.formats.compression import extension, is_binary
from ghostpoi.data.formats.fields import find_columns, refuse_duplicate_names, to_checkins
from ghostpoi.data.formats.rows import ParquetRows, read_text
from ghostpoi.errors import InputError

DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class TableFormat:
    """Any table with a header. Columns are found by name or mapped by the user."""

    summary: str = "delimited text with a header line (CSV, TSV, `;`, `|`), or Parquet"

    def recognises(self, head: bytes) -> bool:
        """Accept Parquet and any text."""
        return _is_parquet(head) or not is_binary(head)

    def read(self, path: Path, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        if _is_parquet(data):
            return _read_parquet(path, data, mapping)
        header = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode("latin-1")
        usual = DELIMITERS.get(extension(path).lower())
        delimiter = max((",", "\t", ";", "|"), key=lambda d: (header.count(d), d == usual))
        body = text.open_body(path, data, delimiter, None, None, quotes=True)
        return read_text(body, data, "table", find_columns(body.dialect.columns, mapping, f"{path}, line 1"))


def _is_parquet(head: bytes) -> bool:
    return head[:4] == b"PAR1"


def _read_parquet(path: Path, data: bytes, mapping: dict[str, str]) -> CheckinFile:
    try:
        table = pq.ParquetFile(pa.BufferReader(data)).read()
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"{path} is a damaged Parquet file ({str(e).splitlines()[0]}); write it again") from None
    refuse_duplicate_names(table.column_names, str(path))
    found = find_columns(table.column_names, mapping, str(path))
    if table.num_rows == 0:
        raise InputError(f"{path} has columns but no check-ins; give a file with at least one row of data")
    frame = pl.DataFrame({field: _plain(path, column, table.column(column)) for field, column in found.items()})
    checkins = to_checkins(frame, found["category"], lambda row: f"{path}, row {row + 1}", str(path))
    return CheckinFile(path, "table", found, checkins, sha256(data).digest(), lambda: ParquetRows(table))


def _plain(path: Path, name: str, column: pa.ChunkedArray) -> pl.Series:
    """Convert a column of numbers, times or text; refuse other types."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    refused = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_duration)
    if any(is_kind(kind) for is_kind in refused):
        raise InputError(
            f"{path}: the column {name!r} has the type {column.type}; store it as text, numbers or timestamps"
        )
    return pl.Series(name, column)


TABLE = TableFormat()
