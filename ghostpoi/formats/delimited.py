"""Formats of delimited text, Parquet and GeoPackages by their first bytes; tables of venues (--venues).

Tables of venues have the form of LibCity's .geo, RecBole's .item, GETNext's table of venues, or any delimited text like
them.
"""

import re
from functools import partial
from hashlib import sha256

import polars as pl

from ghostpoi.data.checkins import DATE, FIELDS, GROUP, IDS, NAME
from ghostpoi.errors import InputError
from ghostpoi.formats import text
from ghostpoi.formats.build import own_columns, to_file
from ghostpoi.formats.content import PARQUET, is_binary, is_geopackage, load
from ghostpoi.formats.fields import find_columns, find_venue_columns, names_column
from ghostpoi.formats.geometry import read_layer
from ghostpoi.formats.source import POINT, VENUE, CheckinFile, Format, Source, VenueTable
from ghostpoi.formats.times import TIMEZONE
from ghostpoi.options import option

OWN_FIELDS = (*FIELDS, GROUP, DATE, POINT, TIMEZONE)  # what a file may say of a check-in
TYPES: dict[str, pl.DataType] = dict.fromkeys(OWN_FIELDS, pl.String())
TYPES |= {**dict.fromkeys((*IDS, NAME), pl.Categorical()), "lat": pl.Float64(), "lon": pl.Float64()}


def read_text(body: text.Body, data: bytes, format: str, mapping: dict[str, str]) -> CheckinFile:
    """Parse typed columns directly from the bytes. If a value does not fit, parse text and convert it or name it."""
    source = body.source
    column = own_columns(source, mapping, body.dialect.columns)
    frame = None
    plain = not body.dialect.control_separated and not source.reading.decimal
    if plain and len(set(column.values())) == len(column):
        frame = body.frame({c: TYPES[field] for field, c in column.items()})
        needed = [column[field] for field in (*FIELDS, DATE, POINT) if field in column]
        ids = pl.concat(frame[column[field]].unique().cast(pl.String) for field in IDS if field in column)
        if any(frame[c].null_count() for c in needed) or ids.str.contains(r"^[ \t]|[ \t]$").any():
            frame = None
    if frame is None:
        frame = body.values(list(dict.fromkeys(column.values())))
    fields = frame.select(pl.col(c).alias(field) for field, c in column.items())
    return to_file(source, data, format, mapping, fields, body.place, partial(text.TextRows.of, body))


DELIMITERS = {".csv": ",", ".tsv": "\t"}


def _read_table(source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
    """Read any table. Columns are found by name or mapped by the user."""
    names = source.reading.column_names
    if data.startswith(PARQUET):
        from ghostpoi.formats.parquet import read_rows, to_checkin_file  # pyarrow is slow to import

        if names:
            raise InputError(f"{source} is Parquet, which names its columns itself; leave {option('columns')} out")
        return to_checkin_file(source, read_rows(source, data), data, mapping)
    body = open_table(source, data, names)
    return read_text(body, data, "table", find_columns(source, body.dialect.columns, mapping, header=not names))


def open_table(source: Source, data: bytes, names: tuple[str, ...] | None = None) -> text.Body:
    """Find the delimiter and the layout of a text. Without `names`, its first line names the columns."""
    return text.open_body(source, data, delimiter_of(source, data, names), names, None, quotes=True)


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
    _read_table,
)


def _read_geopackage(source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
    from ghostpoi.formats.parquet import ParquetRows, to_checkin_file

    table, schema = read_layer(str(source), data)
    return to_checkin_file(source, ParquetRows.of(table, source.path, schema), data, mapping, "geopackage")


GEOPACKAGE = Format("GeoPackage (.gpkg) with one layer of points; needs ghostpoi[geo]", is_geopackage, _read_geopackage)


TSMC_COLUMNS = ("user", "venue_id", "category_id", "category", "latitude", "longitude", "timezone_offset", "utc_time")
TSMC_MAPPING = {
    "user": "user", "poi": "venue_id", "category": "category_id",
    "lat": "latitude", "lon": "longitude", "time": "utc_time",
}  # fmt: skip
TIME = re.compile(rb"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [+-]\d{4} \d{4}\r?$")
NUMBER = re.compile(rb"-?\d+(\.\d+)?")


def _is_tsmc2014(head: bytes) -> bool:
    """Look for TSMC times or positions in most of the first lines, and for the absence of a header."""
    lines = [line.split(b"\t") for line in head.split(b"\n")[:20] if line.strip()]
    if not lines or not any(NUMBER.fullmatch(field) for field in lines[0]):
        return False
    likely = 0
    for fields in lines:
        has_position = len(fields) == 8 and all(NUMBER.fullmatch(field) for field in fields[5:7])
        likely += has_position or (len(fields) > 1 and bool(TIME.search(fields[-1])))
    return likely * 2 >= len(lines)


SNAP_COLUMNS = ("user", "check-in time", "latitude", "longitude", "location id")
SNAP_MAPPING = dict(zip(("user", "time", "lat", "lon", "poi"), SNAP_COLUMNS, strict=True))
SNAP_LINE = re.compile(rb"\d+\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\t-?\d+(\.\d+)?\t-?\d+(\.\d+)?\t[^\t]+")


def _is_snap(head: bytes) -> bool:
    """Look for such lines among the first ones; a few may lack values."""
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    likely = sum(bool(SNAP_LINE.fullmatch(line.rstrip(b"\r"))) for line in lines)
    return bool(lines) and lines[0].count(b"\t") == len(SNAP_COLUMNS) - 1 and likely * 2 >= len(lines)


def _read_fixed(
    source: Source, data: bytes, mapping: dict[str, str],
    format: str, columns: tuple[str, ...], own: dict[str, str], encoding: str | None = None,
) -> CheckinFile:  # fmt: skip
    """Read a published format: tabs, and always the same columns without a header."""
    found = find_columns(source, columns, own | mapping)
    return read_text(text.open_body(source, data, "\t", columns, encoding, quotes=False), data, format, found)


TSMC2014 = Format(
    "Foursquare TSMC2014: eight tab-separated columns without a header",
    _is_tsmc2014,
    partial(_read_fixed, format="tsmc2014", columns=TSMC_COLUMNS, own=TSMC_MAPPING, encoding="latin-1"),
)
SNAP = Format(
    "SNAP Gowalla and Brightkite: user, time, latitude, longitude, location id; tabs, no header",
    _is_snap,
    partial(_read_fixed, format="snap", columns=SNAP_COLUMNS, own=SNAP_MAPPING),
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
    body = open_table(source, data, TIST2015 if TIST2015_LINE.match(data) else None)
    columns = body.dialect.columns
    own = {f: c for f, c in given.items() if f in (*VENUE_FIELDS, VENUE) and c in columns}
    found = find_venue_columns(source, columns, own)
    read = found | names_column(found, columns)
    values = body.values(list(dict.fromkeys(read.values())))
    fields = values.select(pl.col(c).alias("poi" if field == VENUE else field) for field, c in read.items())
    ids = fields["poi"]
    if ids.null_count():
        row = int(ids.is_null().arg_true()[0])
        raise InputError(f"{body.place(row)}: the venue has no id; fill it in or remove the line")
    if (repeated := ids.is_duplicated()).any():
        row = int(repeated.arg_true()[-1])
        raise InputError(f"{body.place(row)}: the venue {ids[row]!r} is listed twice; remove one of them")
    return VenueTable(source.path, found, fields, text.TextRows.of(body), sha256(data).digest(), body.place)
