"""From the columns of a file to what reading it returns: the last step of every format."""

from collections.abc import Callable
from hashlib import sha256

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Checkins, Floats
from ghostpoi.errors import InputError
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.fields import COLUMN_NAMES, plain_name, to_checkins
from ghostpoi.formats.kinds import kind_of
from ghostpoi.formats.missing import Where, complete_rows, none_complete, places
from ghostpoi.formats.points import POINT, as_written
from ghostpoi.formats.rows import Rows
from ghostpoi.formats.source import POSITIONS, Source
from ghostpoi.formats.stays import MIN_PEOPLE, MIN_STAYS, place_id, venue_positions
from ghostpoi.formats.zones import TIMEZONE, needs_zone, states_zones
from ghostpoi.options import option

DATE_LIKE = r'^[ "]*(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})\b'


def to_file(
    source: Source, data: bytes, format: str, mapping: dict[str, str], fields: pl.DataFrame, where: Where,
    rows: Callable[[], Rows],
) -> CheckinFile:  # fmt: skip
    """Return a file that was read: `fields` has a column per field, `where` names the place of a row."""
    fields, reading = _with_venue_fields(source, fields, where), source.reading
    mapping, fields = _with_used_zones(source, mapping, fields)
    if reading.cluster_points:
        fields = fields.with_columns(poi=pl.lit("somewhere"))
    complete, place, missing = complete_rows(fields, where, reading)
    table = to_checkins(source, complete, mapping.get("category", ""), place, lambda: _dates(rows()))
    own = rows
    if reading.cluster_points and not len(table):
        raise none_complete(source)
    if reading.cluster_points == POSITIONS:
        table = _at_places(source, complete, mapping, place, table.lat, table.lon)
    elif reading.cluster_points:
        lat, lon = venue_positions(table, reading.radius_m)
        lost = np.flatnonzero(np.isnan(lat))
        if len(lost) and (reading.missing != "drop" or len(lost) == len(lat)):
            raise InputError(
                f"{source}: {len(lost):,} of {len(lat):,} points lie where nobody stays: in no cluster of {MIN_STAYS} "
                f"stays of {MIN_PEOPLE} people within {reading.cluster_points} ({places(lost, place)}); widen "
                f"{option('cluster_points')}, or leave them out with {option('missing', 'drop')}"
            )
        present = np.delete(np.arange(len(table) + len(missing)), missing)
        every = np.zeros((2, len(present) + len(missing)))
        every[:, present] = np.nan_to_num([lat, lon])
        stays = np.delete(np.arange(len(table)), lost)
        table = _at_places(source, complete[stays], mapping, lambda row: place(int(stays[row])), lat[stays], lon[stays])
        missing = np.union1d(missing, present[lost])

        def own() -> Rows:
            return _moved(rows(), mapping, every[0], every[1], reading.decimal)

    at = places(missing, where) if len(missing) else ""
    kind, digest = kind_of(format, data), sha256(data).digest()
    return CheckinFile(source, format, kind, mapping, table, digest, own, missing=missing, missing_at=at)


def _with_venue_fields(source: Source, frame: pl.DataFrame, where: Where) -> pl.DataFrame:
    """Add the fields of the table of venues to those of the check-ins; refuse a venue that it lacks.

    If rows that lack a value are kept or dropped, a row with such a venue counts as one of them.
    """
    table = source.venues
    if table is None:
        return frame
    key = frame["poi"].cast(pl.String).str.strip_chars()
    unknown = ~key.is_in(table.fields["poi"].implode()) & key.is_not_null() & (key != "")
    if unknown.any() and source.reading.missing not in ("keep", "drop"):
        rows = unknown.arg_true().to_numpy()
        more = f" ({len(rows):,} rows have such a venue: {places(rows, where)})" if len(rows) > 1 else ""
        raise InputError(
            f"{where(int(rows[0]))}: the venue of this row is not in {table.path}{more}; add it there, or use "
            f"{option('missing', 'drop')} or {option('missing', 'keep')}"
        )
    own = frame.drop([name for name in frame.columns if name in table.fields.columns and name != "poi"])
    joined = own.with_columns(key.alias("poi")).join(table.fields, on="poi", how="left", maintain_order="left")
    return joined.with_columns(own["poi"])


def _with_used_zones(
    source: Source, mapping: dict[str, str], fields: pl.DataFrame
) -> tuple[dict[str, str], pl.DataFrame]:
    """Forget a column of time zones if no time needs it, or if it has only a name as if it named zones."""
    if TIMEZONE not in fields.columns:
        return mapping, fields
    column, needed = mapping[TIMEZONE], needs_zone(fields["time"], source.reading.time_format)
    if needed.any() and states_zones(fields[TIMEZONE]):
        return mapping, fields
    if not any(plain_name(column) in tier for tier in COLUMN_NAMES[TIMEZONE]):
        raise InputError(
            f"{option('map', f'timezone={column}')}: {source} needs no zones, or this column names none as "
            "America/New_York; remove it"
        )
    return {f: c for f, c in mapping.items() if f != TIMEZONE}, fields.drop(TIMEZONE)


def _dates(rows: Rows) -> list[str]:
    """Return the columns that look like dates."""
    first = {name: rows.get_column(name).cast(pl.String, strict=False).drop_nulls().head(1) for name in rows.columns}
    return [name for name, value in first.items() if value.str.contains(DATE_LIKE).any()]


def _at_places(
    source: Source, fields: pl.DataFrame, mapping: dict[str, str], where: Where, lat: Floats, lon: Floats
) -> Checkins:
    """Return the check-ins with these positions, by which venues are known."""
    ids = [place_id(*at) for at in zip(lat.tolist(), lon.tolist(), strict=True)]
    known = fields.drop(POINT, strict=False).with_columns(lat=pl.Series(lat), lon=pl.Series(lon), poi=pl.Series(ids))
    return to_checkins(source, known, mapping.get("category", ""), where)


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
