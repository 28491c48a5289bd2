"""Formats of delimited text, Parquet and GeoPackages by their first bytes; tables of venues (--venues).

Tables of venues have the form of LibCity's .geo, RecBole's .item, GETNext's table of venues, or any delimited text like
them.
"""

import re
from functools import partial
from hashlib import sha256

import polars as pl

from ghostpoi.data.checkins import GROUP
from ghostpoi.errors import InputError
from ghostpoi.formats import text
from ghostpoi.formats.content import PARQUET, is_binary, is_geopackage, load
from ghostpoi.formats.fields import find_venue_columns, names_column
from ghostpoi.formats.geometry import read_layer
from ghostpoi.formats.rows import Rows
from ghostpoi.formats.source import POINT, VENUE, Format, Source, VenueTable
from ghostpoi.options import option

DELIMITERS = {".csv": ",", ".tsv": "\t"}


def _decode_table(source: Source, data: bytes) -> Rows:
    if data.startswith(PARQUET):
        from ghostpoi.formats.parquet import read_rows  # pyarrow is slow to import

        return read_rows(source, data)
    names = source.reading.column_names
    return text.decode(source, data, delimiter_of(source, data, names), names)


def delimiter_of(source: Source, data: bytes, names: tuple[str, ...] | None = None) -> str:
    """Find what separates the columns, from the first line."""
    header = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode("latin-1")
    usual = DELIMITERS.get(source.extension.lower())
    signs = {d: header.count(d) for d in (",", "\t", ";", "|")}
    width = len(names or ())  # decimal commas may outnumber the delimiters
    return max(signs, key=lambda d: (signs[d] + 1 == width, signs[d], d == usual))


TABLE = Format(
    "delimited text with a header line (CSV, TSV, `;`, `|`), or Parquet",
    lambda head: head.startswith(PARQUET) or not is_binary(head),
    _decode_table,
)


def _decode_geopackage(source: Source, data: bytes) -> Rows:
    from ghostpoi.formats.parquet import ParquetRows

    table, schema = read_layer(str(source), data)
    return ParquetRows.of(table, source.path, schema)


GEOPACKAGE = Format(
    "GeoPackage (.gpkg) with one layer of points; needs ghostpoi[geo]", is_geopackage, _decode_geopackage
)


TSMC_COLUMNS = ("user", "venue_id", "category_id", "category", "latitude", "longitude", "timezone_offset", "utc_time")
TSMC_MAPPING = {
    "user": "user", "poi": "venue_id", "category": "category_id",
    "lat": "latitude", "lon": "longitude", "time": "utc_time",
}  # fmt: skip
N = rb"-?\d+(\.\d+)?"
TIME = rb"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [+-]\d{4} \d{4}"
TSMC_START = re.compile(rb"(.*\t)?%b(\t.*)?" % N)  # no header: a field is a number
TSMC_LINE = re.compile(rb"(?:[^\t]*\t){5}%b\t%b\t[^\t]*|.*\t[^\t]*%b\r?" % (N, N, TIME))
SNAP_COLUMNS = ("user", "check-in time", "latitude", "longitude", "location id")
SNAP_MAPPING = dict(zip(("user", "time", "lat", "lon", "poi"), SNAP_COLUMNS, strict=True))
SNAP_START = re.compile(rb"[^\t]*(\t[^\t]*){4}")
SNAP_LINE = re.compile(rb"\d+\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\t%b\t%b\t[^\t\r]+\r?" % (N, N))


def _is_of(start: re.Pattern[bytes], line: re.Pattern[bytes], head: bytes) -> bool:
    """Return whether the first line is so, and most of the first lines are so: a few may lack values."""
    lines = [one for one in head.split(b"\n")[:20] if one.strip()]
    return bool(lines and start.fullmatch(lines[0])) and 2 * sum(map(bool, map(line.fullmatch, lines))) >= len(lines)


TSMC2014 = Format(
    "Foursquare TSMC2014: eight tab-separated columns without a header",
    partial(_is_of, TSMC_START, TSMC_LINE),
    partial(text.decode, delimiter="\t", columns=TSMC_COLUMNS, encoding="latin-1", quotes=False),
    TSMC_MAPPING,
)
SNAP = Format(
    "SNAP Gowalla and Brightkite: user, time, latitude, longitude, location id; tabs, no header",
    partial(_is_of, SNAP_START, SNAP_LINE),
    partial(text.decode, delimiter="\t", columns=SNAP_COLUMNS, quotes=False),
    SNAP_MAPPING,
)


VENUE_FIELDS = ("lat", "lon", POINT, "category", GROUP)
# Foursquare's table of the whole world has no header.
TIST2015 = ("venue_id", "latitude", "longitude", "category_name", "country")
TIST2015_LINE = re.compile(rb"[0-9a-f]{24}\t-?\d+\.\d+\t-?\d+\.\d+\t[^\t\n]*\t[^\t\n]*\r?\n")


def read_venues(source: Source, given: dict[str, str]) -> VenueTable:
    """Read a table of venues; `given` is the user's choice of columns, of which those that it has count."""
    data = load(source)
    if is_binary(data[:65_536]):
        raise InputError(
            f"{option('venues', source)} is a binary file; give a table of venues as text (CSV, TSV, .geo, .item)"
        )
    rows = text.decode(source, data, delimiter_of(source, data), TIST2015 if TIST2015_LINE.match(data) else None)
    own = {f: c for f, c in given.items() if f in (*VENUE_FIELDS, VENUE) and c in rows.columns}
    found = find_venue_columns(source, rows.columns, own)
    read = found | names_column(found, rows.columns)
    fields = pl.DataFrame({"poi" if field == VENUE else field: rows.values(source, "", c) for field, c in read.items()})
    ids, place = fields["poi"], partial(rows.place, source)
    if ids.null_count():
        raise InputError(
            f"{place(int(ids.is_null().arg_true()[0]))}: the venue has no id; fill it in or remove the line"
        )
    if (repeated := ids.is_duplicated()).any():
        row = int(repeated.arg_true()[-1])
        raise InputError(f"{place(row)}: the venue {ids[row]!r} is listed twice; remove one of them")
    return VenueTable(source.path, found, fields, rows, sha256(data).digest(), place)
