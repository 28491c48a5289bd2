"""From the columns of a file to what reading it returns: the last step of every format."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Checkins, Floats
from ghostpoi.errors import InputError
from ghostpoi.formats.base import CheckinFile, Rows
from ghostpoi.formats.fields import COLUMN_NAMES, plain_name, to_checkins
from ghostpoi.formats.joined import with_venue_fields
from ghostpoi.formats.kinds import kind_of
from ghostpoi.formats.missing import Where, complete_rows, none_complete, places
from ghostpoi.formats.points import POINT, as_written
from ghostpoi.formats.reading import POSITIONS, current_reading
from ghostpoi.formats.stays import MIN_PEOPLE, MIN_STAYS, place_id, venue_positions
from ghostpoi.formats.zones import TIMEZONE, needs_zone, states_zones
from ghostpoi.options import option

DATE_LIKE = r'^[ "]*(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})\b'


def to_file(
    path: Path, data: bytes, format: str, mapping: dict[str, str], fields: pl.DataFrame, where: Where,
    rows: Callable[[], Rows],
) -> CheckinFile:  # fmt: skip
    """Return a file that was read: `fields` has a column per field, `where` names the place of a row."""
    fields, reading = with_venue_fields(fields, where), current_reading()
    mapping, fields = _with_used_zones(path, mapping, fields)
    if reading.cluster_points:
        fields = fields.with_columns(poi=pl.lit("somewhere"))
    complete, place, missing = complete_rows(fields, where)
    table = to_checkins(complete, mapping.get("category", ""), place, str(path), lambda: _dates(rows()))
    own = rows
    if reading.cluster_points and not len(table):
        raise none_complete(path)
    if reading.cluster_points == POSITIONS:
        table = _at_places(complete, mapping, place, table, table.lat, table.lon)
    elif reading.cluster_points:
        lat, lon = venue_positions(table, reading.radius_m)
        lost = np.flatnonzero(np.isnan(lat))
        if len(lost) and (reading.missing != "drop" or len(lost) == len(lat)):
            raise InputError(
                f"{path}: {len(lost):,} of {len(lat):,} points lie where nobody stays: in no cluster of {MIN_STAYS} "
                f"stays of {MIN_PEOPLE} people within {reading.cluster_points} ({places(lost, place)}); widen "
                f"{option('cluster_points')}, or leave them out with {option('missing', 'drop')}"
            )
        present = np.delete(np.arange(len(table) + len(missing)), missing)
        every = np.zeros((2, len(present) + len(missing)))
        every[:, present] = np.nan_to_num([lat, lon])
        stays = np.delete(np.arange(len(table)), lost)
        table = _at_places(complete[stays], mapping, lambda row: place(int(stays[row])), table, lat[stays], lon[stays])
        missing = np.union1d(missing, present[lost])

        def own() -> Rows:
            return _moved(rows(), mapping, every[0], every[1], reading.decimal)

    at = places(missing, where) if len(missing) else ""
    kind, digest = kind_of(format, data), sha256(data).digest()
    return CheckinFile(path, format, kind, mapping, table, digest, own, missing=missing, missing_at=at)


def _with_used_zones(path: Path, mapping: dict[str, str], fields: pl.DataFrame) -> tuple[dict[str, str], pl.DataFrame]:
    """Forget a column of time zones if no time needs it, or if it has only a name as if it named zones."""
    if TIMEZONE not in fields.columns:
        return mapping, fields
    column, needed = mapping[TIMEZONE], needs_zone(fields["time"], current_reading().time_format)
    if needed.any() and states_zones(fields[TIMEZONE]):
        return mapping, fields
    if not any(plain_name(column) in tier for tier in COLUMN_NAMES[TIMEZONE]):
        raise InputError(
            f"{option('map', f'timezone={column}')}: {path} needs no zones, or this column names none as "
            "America/New_York; remove it"
        )
    return {f: c for f, c in mapping.items() if f != TIMEZONE}, fields.drop(TIMEZONE)


def _dates(rows: Rows) -> list[str]:
    """Return the columns that look like dates."""
    first = {name: rows.get_column(name).cast(pl.String, strict=False).drop_nulls().head(1) for name in rows.columns}
    return [name for name, value in first.items() if value.str.contains(DATE_LIKE).any()]


def _at_places(
    fields: pl.DataFrame, mapping: dict[str, str], where: Where, table: Checkins, lat: Floats, lon: Floats
) -> Checkins:
    """Return the check-ins with these positions, by which venues are known."""
    ids = [place_id(*at) for at in zip(lat.tolist(), lon.tolist(), strict=True)]
    known = fields.drop(POINT, strict=False).with_columns(lat=pl.Series(lat), lon=pl.Series(lon), poi=pl.Series(ids))
    return to_checkins(known, mapping.get("category", ""), where, table.name)


def _moved(rows: Rows, mapping: dict[str, str], lat: Floats, lon: Floats, decimal: str) -> Rows:
    """Return the rows with these positions in place of the raw points."""
    texts = [[str(value).replace(".", decimal or ".") for value in one.tolist()] for one in (lat, lon)]
    if POINT in mapping:
        column = rows.get_column(mapping[POINT])
        points = [as_written(*at, str(column[0])) for at in zip(lat.tolist(), lon.tolist(), strict=True)]
        return rows.replace_ids(mapping[POINT], np.array(points, object))
    for field, values in zip(("lat", "lon"), texts, strict=True):
        rows = rows.replace_ids(mapping[field], np.array(values, object))
    return rows
