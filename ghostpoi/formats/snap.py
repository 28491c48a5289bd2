"""SNAP's Gowalla and Brightkite: five tab-separated columns, no header, no category."""

import re
from dataclasses import dataclass

from ghostpoi.formats import text
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.fields import find_columns
from ghostpoi.formats.source import Source
from ghostpoi.formats.text_rows import read_text

COLUMNS = ("user", "check-in time", "latitude", "longitude", "location id")
MAPPING = dict(zip(("user", "time", "lat", "lon", "poi"), COLUMNS, strict=True))
LINE = re.compile(rb"\d+\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\t-?\d+(\.\d+)?\t-?\d+(\.\d+)?\t[^\t]+")


@dataclass(frozen=True)
class SnapFormat:
    """The format of loc-gowalla_totalCheckins.txt and loc-brightkite_totalCheckins.txt."""

    summary: str = "SNAP Gowalla and Brightkite: user, time, latitude, longitude, location id; tabs, no header"

    def recognises(self, head: bytes) -> bool:
        """Look for such lines among the first ones; a few may lack values."""
        lines = [line for line in head.split(b"\n")[:20] if line.strip()]
        likely = sum(bool(LINE.fullmatch(line.rstrip(b"\r"))) for line in lines)
        return bool(lines) and lines[0].count(b"\t") == len(COLUMNS) - 1 and likely * 2 >= len(lines)

    def read(self, source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        columns = find_columns(source, COLUMNS, MAPPING | mapping)
        return read_text(text.open_body(source, data, "\t", COLUMNS, None, quotes=False), data, "snap", columns)


SNAP = SnapFormat()
