"""Foursquare TSMC2014: eight tab-separated columns, no header, latin-1, no quoting."""

import re
from dataclasses import dataclass

from ghostpoi.formats import text
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.fields import find_columns
from ghostpoi.formats.source import Source
from ghostpoi.formats.text_rows import read_text

COLUMNS = ("user", "venue_id", "category_id", "category", "latitude", "longitude", "timezone_offset", "utc_time")
MAPPING = {
    "user": "user", "poi": "venue_id", "category": "category_id",
    "lat": "latitude", "lon": "longitude", "time": "utc_time",
}  # fmt: skip
TIME = re.compile(rb"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [+-]\d{4} \d{4}\r?$")
NUMBER = re.compile(rb"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class Tsmc2014Format:
    """The format of the published New York and Tokyo files."""

    summary: str = "Foursquare TSMC2014: eight tab-separated columns without a header"

    def recognises(self, head: bytes) -> bool:
        """Look for TSMC times or positions in most of the first lines, and for the absence of a header."""
        lines = [line.split(b"\t") for line in head.split(b"\n")[:20] if line.strip()]
        if not lines or not any(NUMBER.fullmatch(field) for field in lines[0]):
            return False
        likely = sum((len(fields) > 1 and bool(TIME.search(fields[-1]))) or _has_position(fields) for fields in lines)
        return likely * 2 >= len(lines)

    def read(self, source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        columns = find_columns(source, COLUMNS, MAPPING | mapping)
        body = text.open_body(source, data, "\t", COLUMNS, "latin-1", quotes=False)
        return read_text(body, data, "tsmc2014", columns)


def _has_position(fields: list[bytes]) -> bool:
    return len(fields) == 8 and all(NUMBER.fullmatch(field) for field in fields[5:7])


TSMC2014 = Tsmc2014Format()
