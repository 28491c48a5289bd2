"""File formats. To add one, write a module with a `Format` object and add a line to FORMATS."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from ghostpoi.errors import InputError
from ghostpoi.formats import databases
from ghostpoi.formats.content import kind_of, load, other_kind
from ghostpoi.formats.delimited import read_venues
from ghostpoi.formats.fields import none_complete
from ghostpoi.formats.folder import is_empty, is_folder, read_folder
from ghostpoi.formats.rows import Columns, Rows
from ghostpoi.formats.source import CheckinFile, Format, Reading, Source
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
    "FORMATS", "CheckinFile", "Columns", "Format", "Reading", "Rows", "Source", "has_rows", "read", "recognised",
]  # fmt: skip


def read(
    source: Source | Path, mapping: dict[str, str] | None = None, format: str | None = None, part: bool = False
) -> CheckinFile:
    """Read check-ins, of a folder of files too, in the given format, or in the first format that recognises them.

    `part`: there are other files, so that all rows of this one may lack a value.
    """
    source, given = Source.of(source), mapping or {}
    if source.query:
        source = databases.in_memory(source, given)
    if format is not None and format not in FORMATS:
        raise InputError(f"there is no format {format!r}; choose one of {', '.join(FORMATS)}")
    if place := source.reading.venues:
        content = source.beside.get(place)
        listed = Source(Path(place), limit=source.limit, content=content, suffix=Path(place).suffix)
        source = replace(source, venues=read_venues(listed, given))

    def recognise(source: Source, data: bytes) -> str:
        return format or recognised(source, data[:HEAD])

    def read_one(name: str, source: Source, data: bytes) -> CheckinFile:
        return FORMATS[name].read(source, data, given)

    if is_folder(source):
        file = read_folder(source, recognise, read_one)
    else:
        data = load(source)
        file = read_one(recognise(source, data), source, data)
    if not (part or len(file.table)):
        raise none_complete(source)
    if source.venues:
        file = replace(file, sha256=sha256(file.sha256 + source.venues.sha256).digest())
    if source.frame is not None:
        from ghostpoi.formats.frames import FrameRows  # slow to import

        rows = file.all_rows
        return replace(file, parse_rows=lambda: FrameRows(**vars(rows), frame=source.frame))
    return file


def has_rows(source: Source) -> bool:
    """Return whether a file has rows; some tools write parts that have columns only."""
    if source.path.stat().st_size > HEAD:
        return True
    data = load(source)
    return not is_empty(source, recognised(source, data[:HEAD]), data)


def recognised(source: Source, head: bytes) -> str:
    """Return the format of a file. `table` accepts any text, so it is tried last."""
    has_columns = bool(source.reading.columns)
    for name in FORMATS:
        if name != "table" and FORMATS[name].recognises(head):
            if not has_columns:
                return name
            if (words := kind_of(name, head).words) != "text":
                raise InputError(f"{source} is {words}, which names its columns itself; leave {option('columns')} out")
    if kind := other_kind(head):
        raise InputError(f"{source} {kind}")
    if has_columns or FORMATS["table"].recognises(head):
        return "table"
    raise InputError(f"{source} is a binary file; give a text table (CSV, TSV, TSMC2014), JSON or Parquet")
