"""Tables with named columns: delimited text such as CSV and TSV, and Parquet."""

from dataclasses import dataclass
from pathlib import Path

from ghostpoi.errors import InputError
from ghostpoi.formats import text
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.compression import extension, is_binary
from ghostpoi.formats.fields import find_columns
from ghostpoi.formats.kinds import PARQUET
from ghostpoi.formats.reading import current_reading
from ghostpoi.formats.rows import read_text
from ghostpoi.options import option

DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class TableFormat:
    """Any table with a header. Columns are found by name or mapped by the user."""

    summary: str = "delimited text with a header line (CSV, TSV, `;`, `|`), or Parquet"

    def recognises(self, head: bytes) -> bool:
        """Accept Parquet and any text."""
        return head.startswith(PARQUET) or not is_binary(head)

    def read(self, path: Path, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        names = current_reading().column_names
        if data.startswith(PARQUET):
            from ghostpoi.formats.parquet import read_parquet  # pyarrow is slow to import

            if names:
                raise InputError(f"{path} is Parquet, which names its columns itself; leave {option('columns')} out")
            return read_parquet(path, data, mapping)
        body = open_table(path, data, names)
        place = str(path) if names else f"{path}, line 1"
        return read_text(body, data, "table", find_columns(body.dialect.columns, mapping, place, not names))


def open_table(path: Path, data: bytes, names: tuple[str, ...] | None = None) -> text.Body:
    """Find the delimiter and the layout of a text. Without `names`, its first line names the columns."""
    return text.open_body(path, data, delimiter_of(path, data, names), names, None, quotes=True)


def delimiter_of(path: Path, data: bytes, names: tuple[str, ...] | None = None) -> str:
    """Find what separates the columns, from the first line."""
    header = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode("latin-1")
    usual = DELIMITERS.get(extension(path).lower())
    signs = {d: header.count(d) for d in (",", "\t", ";", "|")}
    width = len(names or ())  # decimal commas may outnumber the delimiters
    return max(signs, key=lambda d: (signs[d] + 1 == width, signs[d], d == usual))


TABLE = TableFormat()
