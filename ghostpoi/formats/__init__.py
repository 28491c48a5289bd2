"""File formats. To add one, write a module with a `Format` object and add a line to FORMATS."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from ghostpoi.errors import InputError
from ghostpoi.formats.base import CheckinFile, Columns, Format, Rows
from ghostpoi.formats.compression import load
from ghostpoi.formats.folder import is_empty, is_folder, read_folder
from ghostpoi.formats.in_memory import content_of
from ghostpoi.formats.joined import joined_with
from ghostpoi.formats.kinds import kind_of
from ghostpoi.formats.missing import none_complete
from ghostpoi.formats.other_kinds import other_kind
from ghostpoi.formats.reading import Reading, current_reading, read_as
from ghostpoi.formats.venue_table import read_venues
from ghostpoi.options import option
from ghostpoi.plugins import Registry

FORMATS: Registry[Format] = Registry(
    "formats",
    __name__,
    {
        "tsmc2014": "tsmc2014:TSMC2014",
        "snap": "snap:SNAP",
        "table": "table:TABLE",
        "geojson": "geojson:GEOJSON",
        "json": "json_text:JSON",
        "excel": "excel:EXCEL",
    },
)

HEAD = 65_536  # bytes that a format sees to recognise a file

__all__ = [
    "FORMATS", "CheckinFile", "Columns", "Format", "Reading", "Rows", "current_reading", "has_rows", "read",
    "read_as", "recognised",
]  # fmt: skip


def read(
    path: Path, mapping: dict[str, str] | None = None, format: str | None = None, reading: Reading | None = None,
    part: bool = False,
) -> CheckinFile:  # fmt: skip
    """Read a check-in file, or a folder of them, in the given format, or in the first format that recognises it.

    `reading`: what the publisher states about the file. Default: the options of the command. `part`: there are other
    files, so that all rows of this one may lack a value.
    """
    reading = current_reading() if reading is None else reading
    if format is not None and format not in FORMATS:
        raise InputError(f"there is no format {format!r}; choose one of {', '.join(FORMATS)}")

    def recognise(path: Path, data: bytes) -> str:
        return format or recognised(path, data[:HEAD], bool(reading.columns))

    def read_one(name: str, path: Path, data: bytes) -> CheckinFile:
        return FORMATS[name].read(path, data, mapping or {})

    with read_as(reading):
        venues = read_venues(Path(reading.venues), mapping or {}) if reading.venues else None
        with joined_with(venues):
            if content_of(path) is None and is_folder(path):
                file = read_folder(path, recognise, read_one)
            else:
                data = load(path)
                file = read_one(recognise(path, data), path, data)
    if not (part or len(file.table)):
        raise none_complete(path)
    file = replace(file, reading=reading, venues=venues)
    return _wrapped(replace(file, sha256=sha256(file.sha256 + venues.sha256).digest()) if venues else file)


def has_rows(path: Path) -> bool:
    """Tell whether a file has rows; some tools write parts that have columns only."""
    if path.stat().st_size > HEAD:
        return True
    data = load(path)
    return not is_empty(recognised(path, data[:HEAD], bool(current_reading().columns)), data)


def recognised(path: Path, head: bytes, has_columns: bool) -> str:
    """Return the format of a file. `table` accepts any text, so it is tried last."""
    for name in FORMATS:
        if name != "table" and FORMATS[name].recognises(head):
            if not has_columns:
                return name
            if (words := kind_of(name, head).words) != "text":
                raise InputError(f"{path} is {words}, which names its columns itself; leave {option('columns')} out")
    if kind := other_kind(head):
        raise InputError(f"{path} {kind}")
    if has_columns or FORMATS["table"].recognises(head):
        return "table"
    raise InputError(f"{path} is a binary file; give a text table (CSV, TSV, TSMC2014), JSON or Parquet")


def _wrapped(file: CheckinFile) -> CheckinFile:
    """Return a table in memory with the rows that its holder wants; a file as it is."""
    content = content_of(file.path)
    return file if content is None else replace(file, parse_rows=lambda: content.wrap(file.all_rows))
