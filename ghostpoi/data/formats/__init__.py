"""File formats. To add one, write a module with a `Format` object and add a line to FORMATS."""

from dataclasses import replace
from pathlib import Path

from ghostpoi.data.formats.base import CheckinFile, Columns, Format, Rows
from ghostpoi.data.formats.compression import load
from ghostpoi.data.formats.in_memory import content_of
from ghostpoi.data.formats.other_kinds import other_kind
from ghostpoi.data.formats.reading import Reading, current_reading, read_as
from ghostpoi.data.formats.snap import SNAP
from ghostpoi.data.formats.table import TABLE
from ghostpoi.data.formats.tsmc2014 import TSMC2014
from ghostpoi.errors import InputError
from ghostpoi.plugins import Registry

FORMATS: Registry[Format] = Registry("formats", {"tsmc2014": TSMC2014, "snap": SNAP, "table": TABLE})

HEAD = 65_536  # bytes that a format sees to recognise a file

__all__ = [
    "FORMATS", "CheckinFile", "Columns", "Format", "Reading", "Rows", "current_reading", "read", "read_as",
]  # fmt: skip


def read(
    path: Path, mapping: dict[str, str] | None = None, format: str | None = None, reading: Reading | None = None
) -> CheckinFile:
    """Read a check-in file in the given format, or in the first format that recognises it.

    `reading`: what the publisher states about the file. Default: the options of the command.
    """
    reading = current_reading() if reading is None else reading
    if format is not None and format not in FORMATS:
        raise InputError(f"there is no format {format!r}; choose one of {', '.join(FORMATS)}")
    data = load(path)
    if format is None and (kind := other_kind(data[:HEAD])):
        raise InputError(f"{path} {kind}")
    if reading.columns:
        format = "table"
    # `table` accepts any text, so it is tried last.
    for name in [format] if format else sorted(FORMATS, key=lambda name: name == "table"):
        if format or FORMATS[name].recognises(data[:HEAD]):
            with read_as(reading):
                return _wrapped(replace(FORMATS[name].read(path, data, mapping or {}), reading=reading))
    raise InputError(f"{path} is a binary file; give a text table (CSV, TSV, TSMC2014) or Parquet")


def _wrapped(file: CheckinFile) -> CheckinFile:
    """Return a table in memory with the rows that its holder wants; a file as it is."""
    content = content_of(file.path)
    return file if content is None else replace(file, parse_rows=lambda: content.wrap(file.all_rows))
