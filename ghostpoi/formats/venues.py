"""A table of venues (--venues), which gives check-ins their position and category by venue id.

Its forms: LibCity's .geo, RecBole's .item, GETNext's table of POIs, or any delimited text like them.
"""

import re
from hashlib import sha256

import polars as pl

from ghostpoi.data.checkins import GROUP
from ghostpoi.errors import InputError
from ghostpoi.formats.compression import is_binary, load
from ghostpoi.formats.fields import find_venue_columns
from ghostpoi.formats.points import POINT
from ghostpoi.formats.source import VENUE, Source, VenueTable
from ghostpoi.formats.table import open_table
from ghostpoi.formats.text_rows import TextRows
from ghostpoi.options import option

FIELDS = ("lat", "lon", POINT, "category", GROUP)
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
    own = {f: c for f, c in given.items() if f in (*FIELDS, VENUE) and c in columns}
    found = find_venue_columns(source, columns, own)
    values = body.values(list(dict.fromkeys(found.values())))
    fields = values.select(pl.col(c).alias("poi" if field == VENUE else field) for field, c in found.items())
    ids = fields["poi"]

    def where(row: int) -> str:
        return f"{source}, line {body.line(row)}"

    if ids.null_count():
        row = int(ids.is_null().arg_true()[0])
        raise InputError(f"{where(row)}: the venue has no id; fill it in or remove the line")
    if (repeated := ids.is_duplicated()).any():
        row = int(repeated.arg_true()[-1])
        raise InputError(f"{where(row)}: the venue {ids[row]!r} is listed twice; remove one of them")
    return VenueTable(source.path, found, fields, TextRows.of(body), sha256(data).digest(), where)
