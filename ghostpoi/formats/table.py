"""Tables with named columns: delimited text such as CSV and TSV, and Parquet."""

from dataclasses import dataclass

from ghostpoi.errors import InputError
from ghostpoi.formats import text
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.compression import is_binary
from ghostpoi.formats.fields import find_columns
from ghostpoi.formats.kinds import PARQUET
from ghostpoi.formats.source import Source
from ghostpoi.formats.text_rows import read_text
from ghostpoi.options import option

DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class TableFormat:
    """Any table with a header. Columns are found by name or mapped by the user."""

    summary: str = "delimited text with a header line (CSV, TSV, `;`, `|`), or Parquet"

    def recognises(self, head: bytes) -> bool:
        """Accept Parquet and any text."""
        return head.startswith(PARQUET) or not is_binary(head)

    def read(self, source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        names = source.reading.column_names
        if data.startswith(PARQUET):
            from ghostpoi.formats.parquet import read_parquet  # pyarrow is slow to import

            if names:
                raise InputError(f"{source} is Parquet, which names its columns itself; leave {option('columns')} out")
            return read_parquet(source, data, mapping)
        body = open_table(source, data, names)
        return read_text(body, data, "table", find_columns(source, body.dialect.columns, mapping, header=not names))


def open_table(source: Source, data: bytes, names: tuple[str, ...] | None = None) -> text.Body:
    """Find the delimiter and the layout of a text. Without `names`, its first line names the columns."""
    return text.open_body(source, data, delimiter_of(source, data, names), names, None, quotes=True)


def delimiter_of(source: Source, data: bytes, names: tuple[str, ...] | None = None) -> str:
    """Find what separates the columns, from the first line."""
    header = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode("latin-1")
    usual = DELIMITERS.get(source.extension.lower())
    signs = {d: header.count(d) for d in (",", "\t", ";", "|")}
    width = len(names or ())  # decimal commas may outnumber the delimiters
    return max(signs, key=lambda d: (signs[d] + 1 == width, signs[d], d == usual))


TABLE = TableFormat()
