"""Foursquare TSMC2014: eight tab-separated columns, no header, latin-1, no quoting."""

import re
from pathlib import Path

from ghostpoi.data.checkins import Checkins
from ghostpoi.data.formats import text
from ghostpoi.data.formats.fields import find_columns
from ghostpoi.data.formats.rows import Rows, Source, TextRows, read_text

COLUMNS = ("user", "venue_id", "category_id", "category", "latitude", "longitude", "timezone_offset", "utc_time")
MAPPING = {
    "user": "user",
    "poi": "venue_id",
    "category": "category_id",
    "lat": "latitude",
    "lon": "longitude",
    "time": "utc_time",
}
TIME = re.compile(rb"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [+-]\d{4} \d{4}\r?$")
NUMBER = re.compile(rb"-?\d+(\.\d+)?")


def sniff(head: bytes) -> bool:
    """Most of the first lines have a TSMC time at their end, or eight columns of which two are numbers; no header."""
    lines = [line.split(b"\t") for line in head.split(b"\n")[:20] if line.strip()]
    if not lines or not any(NUMBER.fullmatch(field) for field in lines[0]):
        return False
    likely = sum((len(fields) > 1 and bool(TIME.search(fields[-1]))) or _eight(fields) for fields in lines)
    return likely * 2 >= len(lines)


def _eight(fields: list[bytes]) -> bool:
    return len(fields) == 8 and all(NUMBER.fullmatch(field) for field in fields[5:7])


def read(path: Path, data: bytes, mapping: dict[str, str]) -> tuple[Checkins, Source]:
    """The table of a TSMC2014 file."""
    columns = find_columns(COLUMNS, MAPPING | mapping, str(path))
    return read_text(_body(path, data), Source(path, "tsmc2014", columns))


def rows(source: Source, data: bytes) -> Rows:
    """Every field of the file as raw text."""
    return TextRows.of(_body(source.path, data))


def _body(path: Path, data: bytes) -> text.Body:
    return text.open_body(path, data, "\t", COLUMNS, "latin-1", quotes=False)
