"""From the columns of a file to what reading it returns: the last step of every format."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Checkins, Floats
from ghostpoi.data.formats.base import CheckinFile, Rows
from ghostpoi.data.formats.fields import to_checkins
from ghostpoi.data.formats.joined import with_venue_fields
from ghostpoi.data.formats.missing import Where, complete_rows, places
from ghostpoi.data.formats.points import POINT, as_written
from ghostpoi.data.formats.reading import POSITIONS, current_reading
from ghostpoi.data.formats.stays import MIN_PEOPLE, MIN_STAYS, place_id, venue_positions
from ghostpoi.errors import InputError


def to_file(
    path: Path, data: bytes, format: str, mapping: dict[str, str], fields: pl.DataFrame, where: Where,
    rows: Callable[[], Rows],
) -> CheckinFile:  # fmt: skip
    """Return a file that was read: `fields` has a column per field, `where` names the place of a row."""
    fields, reading = with_venue_fields(fields, where), current_reading()
    if reading.cluster_points:
        fields = fields.with_columns(poi=pl.lit("somewhere"))
    complete, place, missing = complete_rows(fields, where)
    table = to_checkins(complete, mapping.get("category", ""), place, str(path))
    own = rows
    if reading.cluster_points == POSITIONS:
        table = _at_places(complete, mapping, place, table, table.lat, table.lon)
    elif reading.cluster_points:
        lat, lon = venue_positions(table, reading.radius_m)
        lost = np.flatnonzero(np.isnan(lat))
        if len(lost) and (reading.missing != "drop" or len(lost) == len(lat)):
            raise InputError(
                f"{path}: {len(lost):,} of {len(lat):,} points lie where nobody stays: in no cluster of {MIN_STAYS} "
                f"stays of {MIN_PEOPLE} people within {reading.cluster_points} ({places(lost, place)}); widen "
                "--cluster-points, or leave them out with --missing drop"
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
    return CheckinFile(path, format, mapping, table, sha256(data).digest(), own, missing=missing, missing_at=at)


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
