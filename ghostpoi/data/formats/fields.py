"""Find the column of each field, and convert columns of any type to a validated check-in table."""

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import FIELDS, GROUP, IDS, Checkins, renumber
from ghostpoi.errors import InputError

NO_CATEGORY = ""  # the category of all venues of a file that names none
COLUMN_NAMES = tomllib.loads(Path(__file__).with_name("column_names.toml").read_text("utf-8"))


def find_columns(columns: Sequence[str], given: dict[str, str], place: str | Path) -> dict[str, str]:
    """Return the column of each field: the user's choice in `given`, otherwise by name. There may be no category.

    `place` is for messages.
    """
    for field, column in given.items():
        if field not in (*FIELDS, GROUP):
            listed = ", ".join((*FIELDS, GROUP))
            raise InputError(f"--map {field}={column}: there is no field {field!r}; fields are {listed}")
        if column not in columns:
            near = difflib.get_close_matches(column, columns, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"its columns are {_listed(columns)}"
            raise InputError(f"--map {field}={column}: {place} has no column {column!r}; {hint}")
    mapped = set(given.values())
    plain = {c: plain_name(c) for c in columns if c not in mapped}
    found = dict(given)
    for field, tiers in COLUMN_NAMES.items():
        if field in found:
            continue
        matches = next(filter(None, ([c for c, name in plain.items() if name in tier] for tier in tiers)), [])
        if not matches and field == "category":
            continue  # many files have none
        if not matches:
            raise InputError(
                f"{place}: no column looks like the {field} among {_listed(columns)}; "
                f"name it with --map {field}=COLUMN, or the columns of a file without a header line with --columns"
            )
        if len(matches) > 1:
            both = " and ".join(repr(c) for c in matches)
            raise InputError(
                f"{place}: columns {both} could both be the {field}; choose one with --map {field}={matches[0]}"
            )
        found[field] = matches[0]
    return found


def plain_name(column: str) -> str:
    """Reduce a column name to lower-case letters and digits, without a suffix such as RecBole's `:token`."""
    return re.sub(r"[^a-z0-9]", "", column.split(":")[0].lower())


def refuse_duplicate_names(columns: Sequence[str], place: str) -> None:
    """Refuse a table in which two columns have the same name."""
    if repeated := [name for name, count in Counter(columns).items() if count > 1]:
        raise InputError(f"{place}: two columns are named {repeated[0]!r}; rename one of them")


def _listed(columns: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(c if len(c) <= 40 else f"{c[:40]}..." for c in columns[:most])
    return f"{shown} and {len(columns) - most} more" if len(columns) > most else shown


def to_checkins(
    frame: pl.DataFrame, category_field: str, where: Callable[[int], str], name: str = "the table"
) -> Checkins:
    """Convert a frame with the columns of FIELDS and perhaps GROUP. Without a category, all venues have the same: "".

    `where` gives the place of a row, `name` the file, for messages.
    """

    def refuse(bad: pl.Series, field: str, complaint: str, remedy: str) -> None:
        if bad.any():
            row = int(bad.arg_true()[0])
            column = frame[field]  # Python cannot represent all times of polars
            shown = repr((column.to_physical() if column.dtype.is_temporal() else column)[row])
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            raise InputError(f"{where(row)}: {complaint.format(shown)}; {remedy}")

    if not category_field:
        frame = frame.drop("category", strict=False).with_columns(category=pl.lit(NO_CATEGORY))
    groups = _category_groups(frame) if GROUP in frame.columns and category_field else {}
    frame = frame.select(FIELDS)
    for field in FIELDS:
        column = frame[field]
        missing = column.is_null()
        if field in IDS and column.dtype.is_float():
            missing |= column.is_nan()
        elif column.dtype == pl.String and (field != "category" or category_field):
            missing |= column == ""
        refuse(missing, field, f"the {field} is missing", "fill it in or remove the row")
    degrees = {}
    remedy = "give decimal degrees or remove the row"
    for field, label, limit in (("lat", "latitude", 90), ("lon", "longitude", 180)):
        column = frame[field]
        number = column if column.dtype.is_float() else _stripped(column).cast(pl.Float64, strict=False)
        refuse(number.is_null(), field, f"the {label} {{}} is not a number", remedy)
        refuse(number.is_nan(), field, f"the {label} is NaN", remedy)
        outside = f"the {label} {{}} is outside the range -{limit} to {limit}"
        refuse(number.abs() > limit, field, outside, "correct it or remove the row")
        degrees[field] = number.cast(pl.Float64).to_numpy()
    time = parse_times(frame["time"])
    forms = "use ISO 8601 (2012-04-03T18:00:09Z), Unix seconds or the form Tue Apr 03 18:00:09 +0000 2012"
    refuse(time.is_null(), "time", "the time {} cannot be read", forms)
    user, users = _numbered(frame["user"])
    venue, venues = _numbered(frame["poi"])
    category, categories = _numbered(frame["category"])
    return Checkins(
        user, venue + np.int32(1), category, degrees["lat"], degrees["lon"], time.to_numpy(),
        users, np.concatenate([[""], venues]), categories, category_field, name, groups,
    )  # fmt: skip


def _category_groups(frame: pl.DataFrame) -> dict[str, str]:
    """Return the group of every category that has one: the most frequent in its rows, the first by name in a tie."""
    pairs = frame.select(pl.col("category", GROUP).cast(pl.String)).drop_nulls()
    counts = pairs.group_by("category", GROUP).len().sort("category", "len", GROUP, descending=[False, True, False])
    return dict(counts.unique("category", keep="first", maintain_order=True).select("category", GROUP).iter_rows())


def _numbered(ids: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each id, from 0 by first appearance, and the id of each number as text."""
    ids = ids if ids.dtype == pl.Categorical else ids.cast(pl.String).cast(pl.Categorical)
    distinct = ids.unique()
    names = np.array(distinct.cast(pl.String).to_list(), object)
    return renumber(ids.to_physical().to_numpy(), distinct.to_physical().to_numpy(), names)


def _stripped(column: pl.Series) -> pl.Series:
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


def parse_times(column: pl.Series) -> pl.Series:
    """Convert times to UTC seconds (Int64), null where a time cannot be read. A time without an offset is UTC."""
    seconds = _seconds(column)
    return seconds.set(~seconds.is_between(EARLIEST, LATEST).fill_null(True), None)


def _seconds(column: pl.Series) -> pl.Series:
    if column.dtype.is_numeric():
        return _from_unix(column)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("ms"))  # microseconds overflow
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.epoch("s")
    text = column.cast(pl.String)
    sample = _normalised(text.drop_nulls().head(1))
    for form in TIME_FORMATS:
        if sample.len() and sample.str.to_datetime(form, strict=False, time_unit="us").null_count() == 0:
            if not form.startswith("%a"):
                text = _normalised(text)
            seconds = _parse(text, form)
            for other in TIME_FORMATS:  # rows that do not have the format of the first row
                if (missing := seconds.is_null().arg_true()).len():
                    seconds = seconds.scatter(missing, _parse(_normalised(text.gather(missing)), other))
            return seconds
    return _from_unix(_stripped(text).cast(pl.Float64, strict=False))


def _normalised(text: pl.Series) -> pl.Series:
    """Bring ISO 8601 into one spelling: no outer spaces, a space between date and time, a numeric offset."""
    text = text.str.strip_chars().str.replace(r"^(\d{4}-\d\d-\d\d)[Tt]", "$1 ")
    return text.str.replace(r" ?([zZ]|UTC|GMT)$", "+00:00")


def _parse(text: pl.Series, form: str) -> pl.Series:
    """Parse times of one format, null where they differ. Pieces run in parallel, because polars parses on one core."""
    seconds = pl.col("t").str.to_datetime(form, strict=False, time_unit="us").dt.epoch("s")
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
