"""Local hours of a release: from a zone that the publisher stated, or from offsets and zones of the file."""

from typing import NamedTuple

import polars as pl

from ghostpoi.data.checkins import Longs
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.fields import COLUMN_NAMES, plain_name
from ghostpoi.formats.zones import TIMEZONE, has_names, local_hours, split_names, states_zones
from ghostpoi.publish.columns.harmless import OFFSET

OFFSETS = ("timezone", "timezoneoffset", "tzoffset", "utcoffset", "offset")  # columns of minutes east of UTC
FURTHEST, QUARTER = 16 * 60, 15  # minutes; offsets are multiples of a quarter of an hour


class Hours(NamedTuple):
    """Hours of the day, (N,), and what clock they are of."""

    hour: Longs
    clock: str


def hours_of(file: CheckinFile) -> Hours:
    """Return the local hours of all rows if the file tells a time zone, otherwise those of UTC."""
    time = file.table.time
    if zone := file.reading.timezone:
        utc = pl.Series(time).cast(pl.Int64) * 1_000_000
        local = utc.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
        return Hours(local.dt.hour().cast(pl.Int64).to_numpy(), f"local time of {zone}")
    for name, zones in _zones(file):
        if (hours := local_hours(pl.Series(time), zones)) is not None:
            return Hours(hours.to_numpy(), f"local time, from {name}")
    for name, minutes in _offsets(file):
        known = minutes.is_not_null().all() and minutes.is_between(-FURTHEST, FURTHEST).all()
        if known and (minutes != 0).any():
            return Hours((time + 60 * minutes.to_numpy()) // 3600 % 24, f"local time, from {name}")
    return Hours(time // 3600 % 24, "UTC")


def _zones(file: CheckinFile) -> list[tuple[str, pl.Series]]:
    """Return columns that may name the zone of each row, with a phrase for each."""
    names, times = {name for tier in COLUMN_NAMES[TIMEZONE] for name in tier}, _text(file, file.mapping["time"])
    columns = [c for c in file.rows.columns if c not in file.mapping.values() and plain_name(c) in names]
    columns = [file.mapping[TIMEZONE]] if TIMEZONE in file.mapping else columns
    found = [(f"the column {c}", zones) for c in columns if states_zones(zones := _text(file, c))]
    return [*found, *([("the zones of the times", split_names(times)[1])] if has_names(times) else [])]


def _offsets(file: CheckinFile) -> list[tuple[str, pl.Series]]:
    """Return columns that may hold the offset of each row, with a phrase for each: in minutes, or null if they do not.

    Small numbers are hours.
    """
    columns = [c for c in file.rows.columns if plain_name(c) in OFFSETS and c not in file.mapping.values()]
    found = [(f"the column {c}", _minutes(_text(file, c).cast(pl.Float64, strict=False))) for c in columns]
    written = _text(file, file.mapping["time"]).str.extract(OFFSET).str.replace("Z", "+00")
    hours, minutes = (written.str.extract(r"^[+-](\d\d):?(\d\d)?", group).cast(pl.Int64) for group in (1, 2))
    east = (60 * hours + minutes.fill_null(0)) * written.str.starts_with("-").replace_strict({True: -1, False: 1})
    return [*found, ("the offsets of the times", east)]


def _minutes(offset: pl.Series) -> pl.Series:
    minutes = (offset if (offset.abs() > FURTHEST / 60).any() else offset * 60).cast(pl.Int64, strict=False)
    return minutes.set(minutes % QUARTER != 0, None)


def _text(file: CheckinFile, column: str) -> pl.Series:
    return file.rows.get_column(column).cast(pl.String).str.strip_chars(' \t\x1d"')
