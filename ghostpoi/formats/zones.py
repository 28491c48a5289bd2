"""Names of time zones, behind the times or in a column of their own.

A name such as America/New_York is of one zone. An abbreviation such as EST may be of several, so that it counts only
beside a zone that the publisher states.
"""

import re
from datetime import datetime
from functools import cache
from typing import NamedTuple

import polars as pl

TIMEZONE = "timezone"  # an optional field: the zone of each time that has no offset
PLACE = r"[A-Z][A-Za-z]*(?:/[A-Za-z0-9_+-]+)+"
SHORT = r"[A-Z]{3,5}"
UTC = ("Z", "UTC", "GMT")
LAST = rf"\s*(?:\[({PLACE})\]|\(({PLACE})\)|\s({PLACE}|{SHORT}))$"  # 2012-04-03 18:00:09 America/New_York
INNER = rf"(:\d\d) ({PLACE}|{SHORT}) (\d{{4}})$"  # Tue Apr 03 18:00:09 EDT 2012
OFFSET = r"^(?:UTC|GMT)?([+-])(\d\d):(\d\d)$"
ABSOLUTE = r"^\s*-?\d+(?:\.\d+)?\s*$|:\d\d(?:\.\d+)?\s*(?:[+-]\d\d(?::?\d\d)?|[Zz]|UTC|GMT)"  # times that need no zone
SAMPLE = 1000  # rows in which names are looked for


class Zone(NamedTuple):
    """A zone by its name, or by its distance from UTC in seconds."""

    name: str
    east: int = 0


def split_names(text: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return times without the names of their zones, and the names; null where there is none."""
    last = pl.coalesce(pl.col("t").str.extract(LAST, group) for group in (1, 2, 3))
    frame = text.alias("t").to_frame().select(
        t=pl.col("t").str.replace(LAST, "").str.replace(INNER, "$1 $3"),
        name=last.fill_null(pl.col("t").str.extract(INNER, 2)),
    )  # fmt: skip
    return frame["t"], frame["name"]


def has_names(text: pl.Series) -> bool:
    """Tell whether times, as text, name their zones."""
    some = text.head(SAMPLE)
    return some.dtype == pl.String and bool(split_names(some)[1].is_not_null().any())


def needs_zone(time: pl.Series, form: str = "") -> pl.Series:
    """Mark the times, (N,), that have no offset and are no count of seconds. `form`: what --time-format states."""
    if time.dtype == pl.String and not form:
        return ~time.str.contains(ABSOLUTE).fill_null(True)
    if isinstance(time.dtype, pl.Datetime):
        local = time.dtype.time_zone is None
    else:
        local = time.dtype in (pl.Date, pl.Time) or (time.dtype == pl.String and "z" not in form)
    return pl.repeat(local, len(time), eager=True)


def states_zones(zones: pl.Series) -> bool:
    """Tell whether a column names zones, rather than minutes or nothing."""
    return bool(zones.cast(pl.String).str.contains("[A-Za-z:]").any())


def is_short(name: str) -> bool:
    """Tell whether a name is an abbreviation that may be of several zones."""
    return name not in UTC and name.isupper() and name.isalpha() and len(name) <= 5


@cache
def zone_of(name: str) -> Zone | None:
    """Return the zone of a name; None if there is none, or there may be several."""
    if name in UTC:
        return Zone("UTC")
    if offset := re.match(OFFSET, name):
        sign, hours, minutes = offset.groups()
        return Zone("UTC", (1 if sign == "+" else -1) * (60 * int(hours) + int(minutes)) * 60)
    return Zone(name) if not is_short(name) and is_zone(name) else None


def is_zone(name: str) -> bool:
    """Tell whether the database of time zones has a name."""
    try:
        return pl.Series([datetime(2000, 1, 1)]).dt.replace_time_zone(name).len() == 1
    except pl.exceptions.PolarsError:
        return False


def abbreviated(seconds: pl.Series, zone: str, short: str) -> pl.Series:
    """Return the times of a zone at which it has this abbreviation; null where it has another.

    When the clocks go back, the abbreviation tells which of two equal hours is meant.
    """
    utc = pl.from_epoch(pl.col("s"), "s").dt.replace_time_zone("UTC")
    here, later = (moment.dt.convert_time_zone(zone) for moment in (utc, utc.dt.offset_by("1h")))
    again = (later.dt.hour() == here.dt.hour()) & (later.dt.strftime("%Z") == short)
    found = pl.when(here.dt.strftime("%Z") == short).then(pl.col("s")).when(again).then(pl.col("s") + 3600)
    return seconds.alias("s").to_frame().select(found.alias("s")).to_series()


def local_hours(seconds: pl.Series, names: pl.Series) -> pl.Series | None:
    """Return the hour of the day in the zone of each row; None if a row has no known zone."""
    hours = pl.repeat(0, len(seconds), dtype=pl.Int64, eager=True)
    for name in names.unique().to_list():
        zone = zone_of(name.strip()) if name else None
        if zone is None:
            return None
        rows = (names == name).arg_true()
        utc = pl.from_epoch(seconds.gather(rows) + zone.east, "s").dt.replace_time_zone("UTC")
        hours = hours.scatter(rows, utc.dt.convert_time_zone(zone.name).dt.hour().cast(pl.Int64))
    return hours
