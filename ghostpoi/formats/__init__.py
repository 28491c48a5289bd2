"""File formats. To add one, write a module with a `Format` object and add a line to FORMATS."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from ghostpoi.errors import InputError
from ghostpoi.formats import databases
from ghostpoi.formats.build import file_of_rows
from ghostpoi.formats.content import load, other_kind
from ghostpoi.formats.delimited import read_venues
from ghostpoi.formats.fields import WITHOUT_NAMES, find_columns, none_complete, refuse_duplicate_names
from ghostpoi.formats.folder import is_folder, read_folder
from ghostpoi.formats.rows import Columns, Rows
from ghostpoi.formats.source import POINT, CheckinFile, Format, Reading, Source
from ghostpoi.options import option
from ghostpoi.plugins import Registry

FORMATS: Registry[Format] = Registry(
    "formats",
    __name__,
    {
        "tsmc2014": "delimited:TSMC2014",
        "snap": "delimited:SNAP",
        "table": "delimited:TABLE",
        "geojson": "records:GEOJSON",
        "json": "records:JSON",
        "excel": "records:EXCEL",
        "geopackage": "delimited:GEOPACKAGE",
    },
)

HEAD = 65_536  # bytes that a format sees to recognise a file

__all__ = [
    "FORMATS", "CheckinFile", "Columns", "Format", "Reading", "Rows", "Source", "decoded", "file_of", "read",
    "recognised", "with_venues",
]  # fmt: skip


def read(source: Source | Path, mapping: dict[str, str] | None = None, format: str | None = None) -> CheckinFile:
    """Read check-ins, of a folder of files too, in the given format, or in the first format that recognises them."""
    source, given = Source.of(source), mapping or {}
    if source.query:
        source = databases.in_memory(source, given)
    if format is not None and format not in FORMATS:
        raise InputError(f"there is no format {format!r}; choose one of {', '.join(FORMATS)}")
    source = with_venues(source, given)
    if is_folder(source):
        file = read_folder(source, partial(decoded, format=format), partial(file_of, given=given))
    else:
        data = load(source)
        digest, (name, rows) = sha256(data).digest(), decoded(source, data, format)
        del data  # which may be large
        file = replace(file_of(source, name, rows, given), sha256=digest)
    if not len(file.table):
        raise none_complete(source)
    if source.venues:
        file = replace(file, sha256=sha256(file.sha256 + source.venues.sha256).digest())
    return replace(file, all_rows=replace(file.all_rows, frame=source.frame))


def with_venues(source: Source, given: dict[str, str]) -> Source:
    """Read the table of venues, if one is stated."""
    if not (place := source.reading.venues):
        return source
    listed = Source(Path(place), limit=source.limit, content=source.beside.get(place), suffix=Path(place).suffix)
    return replace(source, venues=read_venues(listed, given))


def decoded(source: Source, data: bytes, format: str | None = None) -> tuple[str, Rows]:
    """Return the name of the format of a file, and all its fields."""
    name = format or recognised(source, data[:HEAD])
    rows = FORMATS[name].decode(source, data)
    if source.reading.columns and (words := rows.kind.words) != "text":
        raise InputError(f"{source} is {words}, which names its columns itself; leave {option('columns')} out")
    return name, rows


def file_of(source: Source, format: str, rows: Rows, given: Mapping[str, str]) -> CheckinFile:
    """Find the check-ins in all rows of a file; `given` is the user's choice of columns."""
    refuse_duplicate_names(rows.columns, str(source))
    if not len(rows):
        raise InputError(f"{source} has columns but no check-ins; give a file with at least one row of data")
    rows.take(np.zeros(1, np.int64))  # refuses what a release could not rearrange
    own = {f: column for f, column in FORMATS[format].fields.items() if not (POINT in given and f in ("lat", "lon"))}
    header = rows.dialect is not None and rows.dialect.has_header
    found = find_columns(source, rows.columns, {**own, **given}, header, rows.point)
    return file_of_rows(source, rows, format, found)


def recognised(source: Source, head: bytes) -> str:
    """Return the format of a file. `table` accepts any text, so it is tried last."""
    has_columns = bool(source.reading.columns)
    for name in FORMATS:
        if name != "table" and not (has_columns and name in WITHOUT_NAMES) and FORMATS[name].recognises(head):
            return name
    if kind := other_kind(head):
        raise InputError(f"{source} {kind}")
    if has_columns or FORMATS["table"].recognises(head):
        return "table"
    raise InputError(f"{source} is a binary file; give a text table (CSV, TSV, TSMC2014), JSON or Parquet")
