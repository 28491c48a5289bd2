"""Interfaces of file formats, and the result of reading a file."""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins
from ghostpoi.files import COMPRESSED
from ghostpoi.formats.compression import STDIN, UNPACK, compression
from ghostpoi.formats.rows import Rows
from ghostpoi.formats.source import Reading, Source, VenueTable

PARQUET = b"PAR1"  # the first bytes of such a file
SUFFIXES = {  # what a name promises
    "text": (".csv", ".tsv", ".txt", ".tab", ".dyna", ".inter"),
    "JSON": (".json", ".jsonl", ".ndjson", ".geojson", ".geojsonl"),
    "Parquet": (".parquet", ".pq"),
    "an Excel workbook": (".xlsx", ".xls"),
    "a GeoPackage": (".gpkg",),
}


@dataclass(frozen=True)
class Kind:
    """The kind of a file: a key of SUFFIXES, and the suffix that fits best."""

    words: str
    suffix: str


def kind_of(format: str, data: bytes) -> Kind:
    """Return the kind of a file by its format and its first bytes."""
    if format == "geopackage":
        return Kind("a GeoPackage", ".gpkg")
    if format == "excel":
        return Kind("an Excel workbook", ".xlsx")
    if data.startswith(PARQUET):
        return Kind("Parquet", ".parquet")
    start = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if format == "geojson":
        return Kind("JSON", ".geojson")
    if format == "json":
        return Kind("JSON", ".json" if start.startswith(b"[") else ".jsonl")
    line = start.split(b"\n", 1)[0]
    tabs = line.count(b"\t") > max(line.count(sign) for sign in (b",", b";", b"|"))
    return Kind("text", ".txt" if format != "table" else ".tsv" if tabs else ".csv")


def ending(source: Source, kind: Kind) -> str:
    """Return the extension for a release of a file: its own, or that of its kind where the name could have none."""
    path = source.path
    nameless = not source.in_memory and (path == STDIN or path.suffix.lower() in COMPRESSED)
    return source.extension or (kind.suffix if nameless else "")


def misnamed(source: Source, kind: Kind) -> str:
    """Say in which way a file, of this kind, is not what its name says; "" if it is."""
    path = source.path
    if source.in_memory or not path.is_file():
        return ""
    with path.open("rb") as file:
        found = compression(file.read(16))
    packed = path.suffix.lower() if path.suffix.lower() in COMPRESSED else ""
    if kind.words == "an Excel workbook":
        found = ""  # it is a zip archive
    remarks = []
    if found != packed:
        says = f", not {packed}" if packed else ", which its name does not say"
        remarks.append(f"is compressed as {found}{says}" if found else "is not compressed, although its name says so")
    promised = next((words for words, suffixes in SUFFIXES.items() if source.extension.lower() in suffixes), kind.words)
    if promised != kind.words:
        remarks.append(f"holds {kind.words}, not {promised} as its name says, and so will the release")
    return f"{path.name} {' and '.join(remarks)}" if remarks else ""


NO_TABLE = {  # by the first bytes of a file: what it is, what to do
    codecs.BOM_UTF16_LE: "UTF-16 text; save it as UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16 text; save it as UTF-8",
    b"PK\x03\x04": f"a zip archive; {UNPACK}",
    b"7z\xbc\xaf\x27\x1c": f"a 7z archive; {UNPACK}",
    b"Rar!": f"a RAR archive; {UNPACK}",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Excel or Word file; export the sheet as CSV",
    b"SQLite format 3\x00": "an SQLite database; give the path of the database itself",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file; store its table as Parquet or CSV",
    b"ARROW1": "an Arrow or Feather file; store it as Parquet",
    b"%PDF": "a PDF document; give the data file that it describes",
    b"\x93NUMPY": "a NumPy array; store it as CSV or Parquet with named columns",
}
HTML = re.compile(rb"<(!doctype html|html|head|body)[\s>]", re.IGNORECASE)
JSON_TEXT = re.compile(rb'\{\s*("[^"\n]*"\s*:|\}\s*$)|\[\s*([\[{]|\]\s*$)')


def other_kind(head: bytes) -> str | None:
    """Say what a file is that is no table, or None; `head` holds its first bytes."""
    if head[257:262] == b"ustar":
        return f"is a tar archive; {UNPACK}"
    if found := next((found for start, found in NO_TABLE.items() if head.startswith(start)), None):
        return f"is {found}"
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if HTML.match(text):
        return "is a web page (HTML), not a table; download the data file itself"
    if text.startswith(b"<?xml"):
        return "is XML, not a table; convert it to CSV"
    if JSON_TEXT.match(text):
        return "is JSON without rows of check-ins; give one object per line, an array of objects or GeoJSON points"
    return None


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
        """How messages call it."""
        return Path(str(self.source))

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


@dataclass(frozen=True)
class Format:
    """A file format. The documentation shows its summary."""

    summary: str
    recognises: Callable[[bytes], bool]  # whether a file has this format, by its first decompressed bytes
    read: Callable[[Source, bytes, dict[str, str]], CheckinFile]  # from the decompressed content and the given columns
