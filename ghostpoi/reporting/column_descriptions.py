"""The released file as the dataset card and the Croissant metadata describe it: layout and columns."""

import csv
from dataclasses import dataclass
from pathlib import Path

from ghostpoi.formats import Rows
from ghostpoi.formats.folder import FolderRows
from ghostpoi.formats.records import Layout, RecordRows
from ghostpoi.formats.rows import TextRows
from ghostpoi.reporting.release_view import ReleaseView
from ghostpoi.reporting.templates import TEXTS

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
TEXT_TYPES = (  # the first one that every value of a column matches
    ("sc:Boolean", "(?i:true|false)"),
    ("sc:Integer", r"-?(?:0|[1-9]\d{0,17})"),  # values with leading zeros are labels
    ("sc:Float", r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"),
)
ARROW_TYPES = (  # by functions of pyarrow.types
    ("is_boolean", "sc:Boolean"), ("is_integer", "sc:Integer"), ("is_floating", "sc:Float"),
    ("is_decimal", "sc:Float"), ("is_timestamp", "sc:DateTime"), ("is_date", "sc:Date"), ("is_time", "sc:Time"),
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column of the released file."""

    name: str
    title: str  # the name as it stands in the file, surrounding spaces included
    type: str  # one of Croissant's data types
    description: str


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """The released file."""

    path: Path
    rows: int
    columns: tuple[Column, ...]
    delimiter: str | None  # None: it is no delimited text
    records: Layout | None  # of a format that stores values; None: delimited text or Parquet
    encoding: str
    has_header: bool
    parts: int  # in a folder; 0: it is one file

    @property
    def layout(self) -> str:
        """The format as a phrase."""
        return f"a folder of {self.parts:,} parts, {self.kind}" if self.parts else self.kind

    @property
    def kind(self) -> str:
        """The format of the file, or of every part, as a phrase."""
        if self.records is not None:
            return self.records.words
        if self.delimiter is None:
            return "Apache Parquet"
        encoding = "UTF-8" if self.encoding == "utf-8" else "Latin-1"
        header = "a header line" if self.has_header else "no header line and no quotes"
        return f"{encoding} text, columns separated by {SEPARATORS[self.delimiter]}, {header}"

    @property
    def mime_type(self) -> str:
        if self.records is not None:
            return self.records.mime_type
        if self.delimiter is None:
            return "application/x-parquet"
        if not self.has_header:
            return "text/plain"
        return "text/tab-separated-values" if self.delimiter == "\t" else "text/csv"


def describe(release: ReleaseView) -> DataFile:
    """Describe the data file of a release."""
    source, rows = release.file, release.file.rows
    parts, rows = (len(rows.names), rows.whole) if isinstance(rows, FolderRows) else (0, rows)
    role = {column: field for field, column in source.mapping.items()}
    changed = release.manifest["columns"]["changed_with_the_venue"]
    titles, same = _titles(rows), release.manifest["disclosure"]["category"] == "exact"
    columns = (
        Column(
            name, titles[at], _type(rows, at, role.get(name)),
            _description(role.get(name), name in changed, release.pseudonyms, same),
        )
        for at, name in enumerate(rows.columns)
    )  # fmt: skip
    dialect = rows.dialect if isinstance(rows, TextRows) else None
    return DataFile(
        path=source.path,
        rows=len(release.table) + len(source.kept),
        columns=tuple(columns),
        delimiter=dialect.delimiter if dialect else None,
        records=rows.layout if isinstance(rows, RecordRows) else None,
        encoding=dialect.encoding if dialect else "",
        has_header=dialect is None or bool(dialect.start.strip(b"\xef\xbb\xbf\r\n")),
        parts=parts,
    )


def _titles(rows: Rows) -> list[str]:
    if not isinstance(rows, TextRows) or not (header := rows.dialect.start.lstrip(b"\xef\xbb\xbf\r\n")):
        return rows.columns
    line = header.decode(rows.dialect.encoding).rstrip("\r\n")
    return next(csv.reader([line], delimiter=rows.dialect.delimiter))


def _description(role: str | None, changes: bool, pseudonyms: dict[str, str] | None, same_category: bool) -> str:
    how = "changes with the venue" if changes else "as in the publisher's file"
    if role == "user" and pseudonyms:
        how = pseudonyms["column"]
    text = TEXTS["roles"].get(role, "Additional column")
    return f"{text}; {'the same for every substitute' if role == 'category' and same_category else how}."


def _type(rows: Rows, at: int, role: str | None) -> str:
    """The data type of a column."""
    if not isinstance(rows, TextRows):
        return _arrow_type(rows, at)
    values = rows.get_column(rows.columns[at]).unique().drop_nulls().str.strip_chars(' \t\r\x1d"')
    values = values.filter(values != "")
    for name, pattern in TEXT_TYPES if role not in ("lat", "lon") else TEXT_TYPES[2:]:
        if values.len() and values.str.contains(f"^(?:{pattern})$").all():
            is_label = name == "sc:Float" and values.str.contains(r"^-?0\d+$").any()
            return "sc:Text" if is_label else name
    return "sc:DateTime" if role == "time" else "sc:Text"


def _arrow_type(rows: Rows, at: int) -> str:
    from pyarrow import types  # slow to import

    from ghostpoi.formats.parquet import ParquetRows

    if not isinstance(rows, ParquetRows):
        return "sc:Text"
    kind = rows.schema.field(at).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return next((name for is_type, name in ARROW_TYPES if getattr(types, is_type)(kind)), "sc:Text")
