"""Which column is what, and from columns of any type to a check-in table with every value checked."""

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import FIELDS, IDS, Checkins, renumber
from ghostpoi.errors import InputError

# The names people use, as lower-case letters and digits alone, best tier first. Two matches in one tier are ambiguous.
NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "user": (("userid", "uid"), ("user",)),
    "poi": (
        ("poiid", "venueid", "locationid", "locid", "placeid", "itemid", "businessid"),
        ("poi", "venue", "location", "place", "loc", "item"),
    ),
    "category": (
        ("categoryid", "catid", "poicatid", "poicategoryid", "venuecategoryid", "venuecatid", "placecategoryid"),
        ("category", "cat", "poicategory", "poicat", "venuecategory", "venuecat", "placecategory"),
        ("categoryname", "catname", "poicatname", "poicategoryname", "venuecategoryname", "venuecatname"),
    ),
    "lat": (("lat", "latitude"), ("poilat", "poilatitude", "venuelat", "venuelatitude")),
    "lon": (("lon", "lng", "long", "longitude"), ("poilon", "poilng", "poilongitude", "venuelon", "venuelongitude")),
    "time": (
        ("utctime", "utctimestamp", "utcdatetime", "timeutc", "timestamputc", "checkinutctimestamp"),
        ("t", "ts", "time", "timestamp", "datetime", "checkintime", "checkintimestamp", "unixtime"),
        ("localtime", "localtimestamp", "createdat", "date"),
    ),
}


def find_columns(columns: Sequence[str], given: dict[str, str], place: str | Path) -> dict[str, str]:
    """The column of each field: as mapped by the user, else by its name. `place` is where the names stand."""
    for field, column in given.items():
        if field not in FIELDS:
            raise InputError(f"--map {field}={column}: there is no field {field!r}; fields are {', '.join(FIELDS)}")
        if column not in columns:
            near = difflib.get_close_matches(column, columns, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"its columns are {_listed(columns)}"
            raise InputError(f"--map {field}={column}: {place} has no column {column!r}; {hint}")
    taken = set(given.values())
    plain = {c: re.sub(r"[^a-z0-9]", "", c.split(":")[0].lower()) for c in columns if c not in taken}
    found = dict(given)
    for field, tiers in NAMES.items():
        if field in found:
            continue
        for tier in tiers:
            matches = [c for c, name in plain.items() if name in tier]
            if len(matches) > 1:
                both = " and ".join(repr(c) for c in matches)
                raise InputError(
                    f"{place}: columns {both} could both be the {field}; choose one with --map {field}={matches[0]}"
                )
            if matches:
                found[field] = matches[0]
                break
        else:
            raise InputError(
                f"{place}: no column looks like the {field} among {_listed(columns)}; "
                f"name it with --map {field}=COLUMN (a table needs a header line)"
            )
    return found


def refuse_twins(columns: Sequence[str], place: str) -> None:
    """Two columns of one name cannot be told apart."""
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            raise InputError(f"{place}: the column name {name!r} stands twice; rename one of them")
        seen.add(name)


def _listed(columns: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(c if len(c) <= 40 else f"{c[:40]}..." for c in columns[:most])
    return f"{shown} and {len(columns) - most} more" if len(columns) > most else shown


def to_checkins(
    frame: pl.DataFrame, category_field: str, where: Callable[[int], str], name: str = "the table"
) -> Checkins:
    """A frame with the columns of FIELDS as a table. `where` names the place of a row in the file, `name` the file."""

    def refuse(bad: pl.Series, field: str, complaint: str, remedy: str) -> None:
        if bad.any():
            row = int(bad.arg_true()[0])
            shown = repr(frame[field][row])
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            raise InputError(f"{where(row)}: {complaint.format(shown)}; {remedy}")

    frame = frame.select(FIELDS)
    for field in FIELDS:
        column = frame[field]
        missing = column.is_null()
        if field in IDS and column.dtype.is_float():
            missing |= column.is_nan()
        elif column.dtype == pl.String:
            missing |= column == ""
        refuse(missing, field, f"the {field} is missing", "fill it in or remove the row")
    numbers = {}
    degrees = "give decimal degrees or remove the row"
    for field, word, limit in (("lat", "latitude", 90), ("lon", "longitude", 180)):
        column = frame[field]
        number = column if column.dtype.is_float() else _stripped(column).cast(pl.Float64, strict=False)
        refuse(number.is_null(), field, f"the {word} {{}} is not a number", degrees)
        refuse(number.is_nan(), field, f"the {word} is NaN", degrees)
        refuse(
            number.abs() > limit,
            field,
            f"the {word} {{}} lies outside -{limit} to {limit}",
            "correct or remove the row",
        )
        numbers[field] = number.cast(pl.Float64).to_numpy()
    time = parse_times(frame["time"])
    refuse(
        time.is_null(),
        "time",
        "the time {} cannot be read",
        "use ISO 8601 (2012-04-03T18:00:09Z), Unix seconds or the form Tue Apr 03 18:00:09 +0000 2012",
    )
    user, users = _numbered(frame["user"])
    venue, venues = _numbered(frame["poi"])
    category, categories = _numbered(frame["category"])
    return Checkins(
        user, venue + np.int32(1), category, numbers["lat"], numbers["lon"], time.to_numpy(),
        users, np.concatenate([[""], venues]), categories, category_field, name,
    )  # fmt: skip


def _numbered(column: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    column = column if column.dtype == pl.Categorical else column.cast(pl.String).cast(pl.Categorical)
    distinct = column.unique()
    names = np.array(distinct.cast(pl.String).to_list(), object)
    return renumber(column.to_physical().to_numpy(), distinct.to_physical().to_numpy(), names)


def _stripped(column: pl.Series) -> pl.Series:
    return column.str.strip_chars() if column.dtype == pl.String else column


FORMS = (
    "%a %b %d %H:%M:%S %z %Y",  # TSMC: Tue Apr 03 18:00:09 +0000 2012
    "%Y-%m-%d %H:%M:%S%.f%#z",  # #: minutes may be missing
    "%Y-%m-%d %H:%M:%S%.f",  # no offset: taken as UTC
    "%Y-%m-%d %H:%M%#z",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
)
MIN_PIECE = 100_000  # times: fewer are parsed sooner than threads would share them
FIRST, LAST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999: what a calendar can show


def parse_times(column: pl.Series) -> pl.Series:
    """UTC seconds (Int64), null where a time cannot be read. A time without offset is taken as UTC."""
    seconds = _seconds(column)
    return seconds.set(~seconds.is_between(FIRST, LAST).fill_null(True), None)


def _seconds(column: pl.Series) -> pl.Series:
    if column.dtype.is_numeric():
        return _unix(column)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.epoch("s")
    sample = _iso_spaced(_stripped(column.cast(pl.String)).drop_nulls().head(1))
    text = column.cast(pl.String)
    for form in FORMS:
        if sample.len() and sample.str.to_datetime(form, strict=False, time_unit="us").null_count() == 0:
            if not form.startswith("%a"):
                text = _iso_spaced(_stripped(text))
            return _fill_other_forms(text, _in_form(text, form))
    return _unix(_stripped(text).cast(pl.Float64, strict=False))


def _iso_spaced(text: pl.Series) -> pl.Series:
    """ISO 8601 in one spelling: a space between date and time, a numeric offset."""
    return text.str.replace(r"^(\d{4}-\d\d-\d\d)[Tt]", "$1 ").str.replace(r" ?([zZ]|UTC|GMT)$", "+00:00")


def _fill_other_forms(text: pl.Series, seconds: pl.Series) -> pl.Series:
    """Rows that are not in the first row's form may be in another."""
    for form in FORMS:
        missing = seconds.is_null().arg_true()
        if missing.len() == 0:
            break
        rest = _iso_spaced(_stripped(text.gather(missing)))
        seconds = seconds.scatter(missing, _in_form(rest, form))
    return seconds


def _in_form(text: pl.Series, form: str) -> pl.Series:
    """Seconds of the times in this form, else null; in pieces side by side, since polars parses on one core."""
    seconds = pl.col("t").str.to_datetime(form, strict=False, time_unit="us").dt.epoch("s")
    size = max(MIN_PIECE, -(-text.len() // pl.thread_pool_size()))
    pieces = [text.slice(at, size).to_frame("t").lazy().select(seconds) for at in range(0, max(1, text.len()), size)]
    return pl.concat(pl.collect_all(pieces)).to_series()


def _unix(number: pl.Series) -> pl.Series:
    """Unix seconds; milliseconds, micro- and nanoseconds are told by their size (1e11 s lie in the year 5138)."""
    number = number.cast(pl.Float64) if number.dtype.is_float() else number.cast(pl.Int64, strict=False)
    if number.dtype == pl.Float64:
        number = number.set(~number.is_finite().fill_null(False), None)
    size = float(number.abs().median() or 0)  # type: ignore[arg-type]
    for limit, divisor in ((1e17, 10**9), (1e14, 10**6), (1e11, 10**3)):
        if size >= limit:
            number = number // divisor
            break
    return number.floor().cast(pl.Int64) if number.dtype == pl.Float64 else number
