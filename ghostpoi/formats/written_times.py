"""Write other times into a column in its own form: the same order of parts, separators, offsets and digits."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Longs
from ghostpoi.errors import InputError
from ghostpoi.formats.rows import Rows
from ghostpoi.formats.source import CheckinFile
from ghostpoi.formats.times import TIMEZONE, parse_times, stripped
from ghostpoi.options import option

ISO = r"^(\d{4}-\d\d-\d\d)(?:([ Tt])(\d\d:\d\d)(?:(:\d\d)(\.\d+)?)?)?(\D.*|)$"
LOCALE = r"^[A-Za-z]{3} ([A-Za-z]{3} \d\d) (\d\d:\d\d:\d\d)( .*?)? (\d{4})$"  # Tue Apr 03 18:00:09 +0000 2012
UNIX = r"^(-?\d+)(\.\d+)?$"
UNITS = (1, 10**3, 10**6, 10**9)  # in which a number counts a second
HOUR_S = 3600
TRIES = 3  # a time may move over a change of the clocks


def with_times(file: CheckinFile, rows: Rows, seconds: Longs) -> Rows:
    """Return rows of a file with these UTC times, (N,), in the form of theirs; refuse a form that is not known."""
    column, before = file.mapping["time"], times_of(file, rows)
    clock = seconds.copy()  # what the form shows may differ from it by an hour, where the clocks change
    for _ in range(TRIES):
        texts = _written(file, rows, clock - before)
        if texts is None:
            break
        moved = rows.with_ids(column, texts.to_numpy().astype(object))
        found = times_of(file, moved, strict=False)
        if (wrong := found != seconds).any():
            clock[wrong] += np.where(found[wrong] < 0, HOUR_S, seconds[wrong] - found[wrong])
        else:
            return moved
    raise InputError(
        f"{file.path}: other times cannot be written into the column {column!r} in its form; write all times in UTC, "
        f"as 2012-04-03T18:00:09Z or as Unix seconds, or use {option('times', 'keep')}"
    )


def offsets_of(file: CheckinFile, rows: Rows) -> Longs:
    """Return how far the clock of each time is ahead of UTC in seconds, (N,)."""
    clock = _clock(file, rows)
    return np.zeros(len(rows), np.int64) if clock is None else clock - times_of(file, rows)


def times_of(file: CheckinFile, rows: Rows, strict: bool = True) -> Longs:
    """Return the UTC times of rows of a file, (N,); if not `strict`, -1 where there is none."""
    reading, source = file.reading, file.source
    zones = file.mapping.get(TIMEZONE)
    names = rows.values(source, TIMEZONE, zones).cast(pl.String) if zones else None
    found = parse_times(_values(file, rows), reading.time_format, reading.timezone or "UTC", names)
    if strict and found.null_count():
        raise ValueError("a time of a file that was read has no value")
    return found.fill_null(-1).to_numpy()


def _clock(file: CheckinFile, rows: Rows) -> Longs | None:
    """Return what the clocks of the times show, as seconds, (N,); None if they are numbers or in an unknown form."""
    values = _values(file, rows)
    if isinstance(values.dtype, pl.Datetime) or values.dtype == pl.Date:
        return values.cast(pl.Datetime("us")).dt.epoch("s").to_numpy()
    if values.dtype != pl.String:
        return None
    frame, form = values.alias("t").to_frame(), file.reading.time_format
    if form:
        found = pl.col("t").str.to_datetime(form, strict=False, time_unit="us")
    else:
        iso = pl.format("{} {}{}", *(_part(ISO, n, empty) for n, empty in ((1, ""), (3, "00:00"), (4, ":00"))))
        usual = pl.format("{} {} {}", *(_part(LOCALE, n) for n in (4, 1, 2)))
        found = pl.coalesce(
            iso.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us"),
            usual.str.to_datetime("%Y %b %d %H:%M:%S", strict=False, time_unit="us"),
        )
    clock = frame.select(found.dt.replace_time_zone(None).dt.epoch("s")).to_series()
    return None if clock.null_count() else clock.to_numpy()


def _written(file: CheckinFile, rows: Rows, moved: Longs) -> pl.Series | None:
    """Return the texts of times that are moved by so many seconds, (N,); None if their form is not known."""
    values, clock = _values(file, rows), _clock(file, rows)
    if clock is None:
        return _numbers(values, times_of(file, rows) + moved)
    new = pl.from_epoch(pl.Series(clock + moved), "s").alias("new")
    if values.dtype != pl.String:
        zone = "Z" if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone else ""
        return new.dt.strftime("%Y-%m-%d" if values.dtype == pl.Date else f"%Y-%m-%d %H:%M:%S{zone}")
    if form := file.reading.time_format:
        old = pl.from_epoch(pl.Series(clock), "s").dt.strftime(form)
        same = "z" not in form and bool((old == values).all())
        return new.dt.strftime(form) if same else None
    frame = pl.DataFrame([values.alias("t"), new])
    return frame.select(pl.coalesce(_forms())).to_series()


def _forms() -> Iterator[pl.Expr]:
    """Yield the text of a new time in each form, null where the old one has another."""
    new = pl.col("new").dt
    minutes = pl.when(_part(ISO, 3) != "").then(new.strftime("%H:%M")).otherwise(pl.lit(""))
    seconds = pl.when(_part(ISO, 4) != "").then(new.strftime(":%S")).otherwise(pl.lit(""))
    below = _part(ISO, 5).str.replace_all(r"\d", "0")
    iso = new.strftime("%Y-%m-%d") + _part(ISO, 2) + minutes + seconds + below + _part(ISO, 6)
    yield pl.when(pl.col("t").str.contains(ISO)).then(iso)
    usual = new.strftime("%a %b %d %H:%M:%S") + _part(LOCALE, 3) + new.strftime(" %Y")
    yield pl.when(pl.col("t").str.contains(LOCALE)).then(usual)


def _part(form: str, number: int, empty: str = "") -> pl.Expr:
    return pl.col("t").str.extract(form, number).fill_null(empty)


def _numbers(values: pl.Series, seconds: Longs) -> pl.Series | None:
    """Return numbers of seconds, or of smaller units, with as many digits below the point; None for other texts."""
    is_text = values.dtype == pl.String
    if not values.dtype.is_numeric() and not (is_text and values.str.contains(UNIX).all()):
        return None
    size = np.median(np.abs(values.cast(pl.Float64).to_numpy()))
    unit = next((unit for unit in reversed(UNITS) if size >= 1e8 * unit), 1)
    digits = _part(UNIX, 2).str.replace_all(r"\d", "0") if is_text else pl.lit(".0" * values.dtype.is_float())
    new = pl.Series("new", seconds * unit).cast(pl.String)
    return pl.DataFrame([values.alias("t"), new]).select(pl.col("new") + digits).to_series()


def _values(file: CheckinFile, rows: Rows) -> pl.Series:
    """Return the times of rows as the file holds them."""
    return stripped(rows.values(file.source, "time", file.mapping["time"]))
