"""Times: from text, numbers and dates to UTC seconds; names of time zones, in the times or in a column of their own.

A name such as America/New_York is of one zone. An abbreviation such as EST may be of several, so that it counts only
if the publisher states a zone.
"""

import re
from datetime import datetime
from functools import cache
from typing import NamedTuple, TypeVar

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
    """Return whether times, as text, name their zones."""
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
    """Return whether a column names zones, rather than minutes or nothing."""
    return bool(zones.cast(pl.String).str.contains("[A-Za-z:]").any())


def is_short(name: str) -> bool:
    """Return whether a name is an abbreviation that may be of several zones."""
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
    """Return whether the database of time zones has a name."""
    try:
        return pl.Series([datetime(2000, 1, 1)]).dt.replace_time_zone(name).len() == 1
    except pl.exceptions.PolarsError:
        return False


def abbreviated(seconds: pl.Series, zone: str, short: str) -> pl.Series:
    """Return the times of a zone at which it has this abbreviation; null where it has another.

    When the clocks go back, the abbreviation says which of two equal hours is meant.
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


def stripped(column: pl.Series) -> pl.Series:
    """Drop outer spaces of text; other columns stay as they are."""
    column = column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column
    return column.str.strip_chars() if column.dtype == pl.String else column


TIME_FORMATS = (
    "%a %b %d %H:%M:%S %z %Y",  # TSMC: Tue Apr 03 18:00:09 +0000 2012
    "%a %b %d %H:%M:%S %Y",
    "%Y-%m-%d %H:%M:%S%.f%#z",  # %#z: the minutes of the offset are optional
    "%Y-%m-%d %H:%M:%S%.f",  # without an offset: UTC
    "%Y-%m-%d %H:%M%#z",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
)
Times = TypeVar("Times", pl.Series, pl.Expr)
MIN_PIECE = 100_000  # times per thread; fewer are parsed faster on one thread
EARLIEST, LATEST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, which `datetime` can represent


def parse_times(column: pl.Series, form: str = "", zone: str = "UTC", zones: pl.Series | None = None) -> pl.Series:
    """Convert times to UTC seconds (Int64), null where a time cannot be read.

    A time without an offset is of the zone that it names, that `zones` names, or of `zone`. With `form`, every time has
    this form, as --time-format takes it.
    """
    seconds = _seconds(column, form, zone) if zones is None else _in_zones(column, zones, form, zone)
    return seconds.set(~seconds.is_between(EARLIEST, LATEST).fill_null(True), None)


def _seconds(column: pl.Series, stated: str, zone: str) -> pl.Series:
    if column.dtype.is_numeric():
        return _from_unix(column)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("ms"))  # microseconds overflow
    if isinstance(column.dtype, pl.Datetime):
        local = zone != "UTC" and column.dtype.time_zone is None
        return (_at(column, zone) if local else column).dt.epoch("s")
    text = column.cast(pl.String)
    if stated:
        return _parse(text.str.strip_chars(), stated, zone)
    seconds = _of_usual_forms(text, zone)
    if (missing := seconds.is_null().arg_true()).len():
        bare, names = split_names(text.gather(missing).str.strip_chars())
        others = missing.filter(names.is_null())
        if others.len() < missing.len():
            seconds = seconds.scatter(missing, _in_zones(bare, names, stated, zone))
            seconds = seconds.scatter(others, _of_usual_forms(text.gather(others), zone))
    return seconds


def _in_zones(column: pl.Series, names: pl.Series, form: str, stated: str) -> pl.Series:
    """Convert times, each of the zone that is named next to it, null where no known zone is."""
    seconds = pl.repeat(None, len(column), dtype=pl.Int64, eager=True)
    for name in names.drop_nulls().unique().to_list():
        rows = (names == name).arg_true()
        some, zone = column.gather(rows), zone_of(name.strip())
        if zone is not None:
            east = zone.east * needs_zone(some, form).cast(pl.Int64)
            seconds = seconds.scatter(rows, _seconds(some, form, zone.name) - east)
        elif is_short(name.strip()) and stated != "UTC":
            seconds = seconds.scatter(rows, abbreviated(_seconds(some, form, stated), stated, name.strip()))
    return seconds


def _of_usual_forms(text: pl.Series, zone: str) -> pl.Series:
    sample = _normalised(text.drop_nulls().head(1))
    for form in TIME_FORMATS:
        if sample.len() and sample.str.to_datetime(form, strict=False, time_unit="us").null_count() == 0:
            if not form.startswith("%a"):
                text = _normalised(text)
            seconds = _parse(text, form, zone)
            for other in TIME_FORMATS:  # rows that do not have the format of the first row
                if (missing := seconds.is_null().arg_true()).len():
                    seconds = seconds.scatter(missing, _parse(_normalised(text.gather(missing)), other, zone))
            return seconds
    return _from_unix(stripped(text).cast(pl.Float64, strict=False))


def _normalised(text: pl.Series) -> pl.Series:
    """Bring ISO 8601 into one spelling: no outer spaces, a space between date and time, a numeric offset."""
    text = text.str.strip_chars().str.replace(r"^(\d{4}-\d\d-\d\d)[Tt]", "$1 ")
    return text.str.replace(r" ?([zZ]|UTC|GMT)$", "+00:00")


def _parse(text: pl.Series, form: str, zone: str) -> pl.Series:
    """Parse times of one format, null where they differ. Pieces run in parallel, because polars parses on one core."""
    time = pl.col("t").str.to_datetime(form, strict=False, time_unit="us")
    if zone != "UTC" and "z" not in form:
        time = _at(time, zone)
    seconds = time.dt.epoch("s")
    size = max(MIN_PIECE, -(-text.len() // pl.thread_pool_size()))
    pieces = [text.slice(at, size).to_frame("t").lazy().select(seconds) for at in range(0, max(1, text.len()), size)]
    return pl.concat(pl.collect_all(pieces)).to_series()


def _at(time: Times, zone: str) -> Times:
    """Give times a zone. When the clocks go back, an hour occurs twice: the first is meant."""
    return time.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")


def _from_unix(number: pl.Series) -> pl.Series:
    """Convert Unix times. The median shows whether they are seconds or a smaller unit (1e11 s is the year 5138)."""
    number = number.cast(pl.Float64) if number.dtype.is_float() else number.cast(pl.Int64, strict=False)
    if number.dtype == pl.Float64:
        number = number.set(~number.is_finite().fill_null(False), None)
    size = float(number.abs().median() or 0)  # type: ignore[arg-type]
    for limit, divisor in ((1e17, 10**9), (1e14, 10**6), (1e11, 10**3)):
        if size >= limit:
            number = number // divisor
            break
    return number.floor().cast(pl.Int64, strict=False) if number.dtype == pl.Float64 else number
