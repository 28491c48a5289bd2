"""Times: from text, numbers and dates to UTC seconds."""

import polars as pl


def stripped(column: pl.Series) -> pl.Series:
    """Drop outer spaces of text; other columns stay as they are."""
    column = column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column
    return column.str.strip_chars() if column.dtype == pl.String else column


TIME_FORMATS = (
    "%a %b %d %H:%M:%S %z %Y",  # TSMC: Tue Apr 03 18:00:09 +0000 2012
    "%Y-%m-%d %H:%M:%S%.f%#z",  # %#z: the minutes of the offset are optional
    "%Y-%m-%d %H:%M:%S%.f",  # without an offset: UTC
    "%Y-%m-%d %H:%M%#z",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
)
MIN_PIECE = 100_000  # times per thread; fewer are parsed faster on one thread
EARLIEST, LATEST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, which `datetime` can represent


def parse_times(column: pl.Series, form: str = "", zone: str = "UTC") -> pl.Series:
    """Convert times to UTC seconds (Int64), null where a time cannot be read.

    A time without an offset is of the zone. With `form`, every time has this form, as --time-format takes it.
    """
    seconds = _seconds(column, form, zone)
    return seconds.set(~seconds.is_between(EARLIEST, LATEST).fill_null(True), None)


def _seconds(column: pl.Series, stated: str, zone: str) -> pl.Series:
    if column.dtype.is_numeric():
        return _from_unix(column)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("ms"))  # microseconds overflow
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.epoch("s")
    text = column.cast(pl.String)
    if stated:
        return _parse(text.str.strip_chars(), stated, zone)
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
    """Parse times of one format, null where they differ. Pieces run in parallel, because polars parses on one core.

    When the clocks go back, an hour occurs twice in a zone: the first is meant.
    """
    time = pl.col("t").str.to_datetime(form, strict=False, time_unit="us")
    if zone != "UTC" and "z" not in form:
        time = time.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    seconds = time.dt.epoch("s")
    size = max(MIN_PIECE, -(-text.len() // pl.thread_pool_size()))
    pieces = [text.slice(at, size).to_frame("t").lazy().select(seconds) for at in range(0, max(1, text.len()), size)]
    return pl.concat(pl.collect_all(pieces)).to_series()


def _from_unix(number: pl.Series) -> pl.Series:
    """Convert Unix times. The median tells seconds from milli-, micro- and nanoseconds (1e11 s is the year 5138)."""
    number = number.cast(pl.Float64) if number.dtype.is_float() else number.cast(pl.Int64, strict=False)
    if number.dtype == pl.Float64:
        number = number.set(~number.is_finite().fill_null(False), None)
    size = float(number.abs().median() or 0)  # type: ignore[arg-type]
    for limit, divisor in ((1e17, 10**9), (1e14, 10**6), (1e11, 10**3)):
        if size >= limit:
            number = number // divisor
            break
    return number.floor().cast(pl.Int64, strict=False) if number.dtype == pl.Float64 else number
