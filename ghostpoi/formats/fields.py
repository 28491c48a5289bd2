"""Fields: find the column of each, and convert columns of any type to a validated check-in table.

Rows that lack a value are refused, dropped, or kept as they are, as --missing says. A kept row is genuine: nothing in
it changes. It is not in the check-in table, so only the row counts include it.
"""

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import DATE, FIELDS, GROUP, NAME, Checkins, Longs, renumber
from ghostpoi.errors import InputError
from ghostpoi.formats import geometry
from ghostpoi.formats.source import POINT, VENUE, CheckinFile, Source
from ghostpoi.formats.times import TIMEZONE, has_names, is_short, parse_times, split_names, stripped, zone_of
from ghostpoi.options import option

NONE: Longs = np.empty(0, np.int64)
# What R, Excel, pandas and databases write for no value, in lower case. A category may be called so.
NO_VALUE = ("", "na", "n/a", "#n/a", "<na>", "nan", "nat", "none", "null", "\\n")
BLANK = ("", "\\n")
SHORT = 16  # bytes that such a word has at most, with spaces around it
LISTED = 5  # places of rows that messages name

Where = Callable[[int], str]


def lacks_value(frame: pl.DataFrame) -> pl.DataFrame:
    """Mark the rows (N,) that lack the value of a field, for each field that the file has."""
    known = [field for field in (*FIELDS, DATE, POINT, TIMEZONE) if field in frame.columns]
    return frame.select(lacking(frame[field], field).alias(field) for field in known)


def lacking(column: pl.Series, field: str) -> pl.Series:
    """Mark the rows (N,) of a field's column that hold no value: null, NaN, a word for it or an empty point."""
    lacks = column.is_null()
    if column.dtype.is_float():
        return lacks | column.is_nan().fill_null(True)
    words = BLANK if field == "category" else NO_VALUE
    if column.dtype in (pl.Categorical, pl.Enum):
        if not _is_word(column.unique().cast(pl.String), words).any():
            return lacks
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        lacks |= _is_word(column, words)
    return lacks | geometry.is_empty(column) if field == POINT else lacks


def _is_word(texts: pl.Series, words: tuple[str, ...]) -> pl.Series:
    """Mark the texts (N,) that are one of these words. Long texts are not looked at, because there are many."""
    marked = pl.repeat(False, len(texts), eager=True)
    short = (texts.str.len_bytes() <= SHORT).arg_true()
    found = texts.gather(short).str.strip_chars().str.to_lowercase().is_in(words)
    return marked.scatter(short.filter(found), True)


def complete_rows(source: Source, frame: pl.DataFrame, where: Where) -> tuple[pl.DataFrame, Where, Longs]:
    """Return the rows that lack nothing, their places, and the numbers of the other rows, which --missing may refuse.

    A time without a zone is refused later, if it needs one.
    """
    lacks = lacks_value(frame)
    every = lacks.select(pl.any_horizontal(pl.all())).to_series()
    if source.reading.missing in ("keep", "drop"):
        present, missing = ((every == lack).arg_true().to_numpy().astype(np.int64) for lack in (False, True))
        return frame.filter(~every), lambda row: where(int(present[row])), missing
    for field in (field for field in lacks.columns if field != TIMEZONE and lacks[field].any()):
        row, rows = int(lacks[field].arg_true()[0]), every.arg_true().to_numpy()
        value, elsewhere = frame[field][row], source.venues and source.venues.place_of(field, frame["poi"][row])
        word = value.strip() if isinstance(value, str) else ""
        more = f" ({len(rows):,} rows lack a value: {places(rows, where)})" if len(rows) > 1 else ""
        rename = "rename it if it is an id, " if field in ("user", "poi") and word else ""
        remedy = f"fill it in, {rename}or use {option('missing', 'drop')} or {option('missing', 'keep')}"
        stands = f"'{word}' stands for no value" if word else "is missing"
        raise InputError(
            f"{elsewhere or where(row)}: the {called(field)} {stands}{'' if elsewhere else more}; {remedy}"
        )
    return frame, where, NONE


def none_complete(source: Source | Path) -> InputError:
    """Say that a dataset has no row that lacks nothing."""
    mapping = option("map", "FIELD=COLUMN")
    return InputError(f"{source}: no row has a value in every mapped column; map other columns with {mapping}")


def places(rows: Longs, where: Where) -> str:
    """Name the first of these rows: lines 3, 7, 9."""
    named = [where(int(row)).rsplit(" ", 2)[-2:] for row in rows[:LISTED]]
    more = ", …" if len(rows) > LISTED else ""
    return f"{named[0][0]}{'s' * (len(rows) > 1)} {', '.join(number for _, number in named)}{more}"


NAME_ZONE = f"state the zone of all such times with {option('timezone')}, e.g. America/New_York"
MIDNIGHT = r"[ T]00:00(:00(\.0+)?)?$"
TIME_OF_DAY = r"^\s*\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm])?\s*$"
NO_CATEGORY = ""  # the category of all venues of a file that names none
COLUMN_NAMES = tomllib.loads(Path(__file__).with_name("column_names.toml").read_text("utf-8"))


def find_columns(
    source: Source, columns: Sequence[str], given: dict[str, str], header: bool = False, point: str = ""
) -> dict[str, str]:
    """Return the column of each field: the user's choice in `given`, otherwise by name. There may be no category.

    `header`: the names come from the first line of a text, which may be a row instead. `point`: the column that the
    file says is its geometry; it counts where no columns are named like a latitude and a longitude.
    """
    place = f"{source}, line 1" if header else str(source)
    elsewhere, zone = source.elsewhere, source.reading.timezone
    for field, column in given.items():
        if field not in (known := (*FIELDS, GROUP, DATE, POINT, TIMEZONE, *[VENUE] * bool(elsewhere))):
            listed = ", ".join(known)
            raise InputError(f"{option('map', f'{field}={column}')}: there is no field {field!r}; fields are {listed}")
        if elsewhere.get(field) != column and column not in columns:
            near = difflib.get_close_matches(column, columns, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"its columns are {_listed(columns)}"
            raise InputError(f"{option('map', f'{field}={column}')}: {place} has no column {column!r}; {hint}")
    if zone and TIMEZONE in given:
        raise InputError(
            f"{option('map', f'timezone={given[TIMEZONE]}')} and {option('timezone', zone)} contradict each other; "
            "give one"
        )
    found = {field: column for field, column in given.items() if field not in elsewhere}
    plain = {c: plain_name(c) for c in columns if c not in found.values()}
    unfound: list[str] = []
    for field, tiers in COLUMN_NAMES.items():
        if field in found or field in elsewhere or (field in ("lat", "lon") and POINT in found | elsewhere):
            continue
        if field == TIMEZONE and (zone or plain_name(found.get("time", "")) in COLUMN_NAMES["time"][0]):
            continue  # no time needs it
        match = _best(plain, tiers, field, place)
        if match is not None:
            found[field] = match
        elif field in ("lat", "lon") and point:
            found = {name: column for name, column in found.items() if name != "lat"} | {POINT: point}
        elif not (field in ("category", TIMEZONE) or (field == "poi" and source.reading.cluster_points)):
            unfound.append(field)  # many files have none of the others
    if unfound:
        raise _unfound(unfound, place, columns, header)
    if "poi" in found and source.reading.cluster_points:
        raise InputError(f"{place}: the column {found['poi']!r} holds venue ids; leave {option('cluster_points')} out")
    return found | elsewhere


POSITION = (
    f"name a column of WKT or WKB points with {option('map', 'point=COLUMN')}",
    f"give a table of venues with {option('venues')}",
)
ELSEWHERE = {  # what else a file may need that lacks a field
    "poi": (f"make venues of raw points with {option('cluster_points', '100m')}",),
    "lat": POSITION,
    "lon": POSITION,
}


def _unfound(fields: Sequence[str], place: str, columns: Sequence[str], header: bool) -> InputError:
    """Name all fields that have no column, and what to do about the first."""
    first, *others = fields
    remedies = [f"name it with {option('map', f'{first}=COLUMN')}", *ELSEWHERE.get(first, ())]
    remedies += [f"if the file has no header line, name all columns with {option('columns')}"] * header
    listed = ", or ".join(filter(None, (", ".join(remedies[:-1]), remedies[-1])))
    if others:
        further = " ".join(option("map", f"{field}=COLUMN") for field in others)
        listed += f"; no column looks like the {' or the '.join(map(called, others))} either: {further}"
    return InputError(f"{place}: no column looks like the {called(first)} among {_listed(columns)}; {listed}")


def names_column(mapping: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    """Return the column that looks like the names of categories next to that of their ids, if there is one."""
    others = {c: plain_name(c) for c in columns if c not in mapping.values()}
    found = [c for tier in reversed(COLUMN_NAMES["category"][1:]) for c, name in others.items() if name in tier]
    return {NAME: found[0]} if "category" in mapping and found else {}


def find_venue_columns(source: Source, columns: Sequence[str], given: dict[str, str]) -> dict[str, str]:
    """Return the columns of a table of venues: the id, the position and, if it has one, the category."""
    plain = {c: plain_name(c) for c in columns if c not in given.values()}
    libcity = [["geoid"]] * ({"geoid", "coordinates"} <= {*plain.values()})  # its id, whatever other ids are there
    found, tiers = dict(given), COLUMN_NAMES | {VENUE: libcity + COLUMN_NAMES["poi"], POINT: [["coordinates"]]}
    for field in (VENUE, "lat", "lon", "category"):
        if field in found or (field in ("lat", "lon") and POINT in found):
            continue
        if match := _best(plain, tiers[field], field, str(source)):
            found[field] = match
        elif field == "lat" and (match := _best(plain, tiers[POINT], POINT, str(source))):
            found[POINT] = match
        elif field != "category":
            raise InputError(
                f"{option('venues', source)}: no column looks like the {called(field)} of a venue among "
                f"{_listed(columns)}; name it with {option('map', f'{field}=COLUMN')}"
            )
    return found


def _best(plain: dict[str, str], tiers: Sequence[Sequence[str]], field: str, place: str) -> str | None:
    """Return the column whose plain name fits best, or None; refuse two that fit equally well."""
    matches = next(filter(None, ([c for c, name in plain.items() if name in tier] for tier in tiers)), [])
    if len(matches) > 1:
        both = " and ".join(repr(c) for c in matches)
        raise InputError(
            f"{place}: columns {both} could both be the {called(field)}; choose one with "
            f"{option('map', f'{field}={matches[0]}')}"
        )
    return matches[0] if matches else None


def called(field: str) -> str:
    """Return the word for a field in a message."""
    return {"poi": "venue", VENUE: "id", "lat": "latitude", "lon": "longitude"}.get(field, field)


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
    source: Source, frame: pl.DataFrame, category_field: str, where: Where,
    dates: Callable[[], Sequence[str]] = tuple,
) -> Checkins:  # fmt: skip
    """Convert a frame with the columns of FIELDS and perhaps GROUP, DATE and TIMEZONE.

    Without a category, all venues have the same. For messages, `where` gives the place of a row and `dates` the
    columns of the file that look like dates.
    """

    def refuse(bad: pl.Series, field: str, complaint: str, remedy: str) -> None:
        if bad.any():
            row = int(bad.arg_true()[0])
            column = frame[field].cast(pl.String) if frame[field].dtype == pl.Time else frame[field]
            # Python cannot represent all times of polars.
            shown = repr((column.to_physical() if column.dtype.is_temporal() else column)[row])
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            place = (source.venues and source.venues.place_of(field, frame["poi"][row])) or where(row)
            raise InputError(f"{place}: {complaint.format(shown)}; {remedy}")

    if not category_field:
        frame = frame.with_columns(category=pl.lit(NO_CATEGORY))
    groups, called_so = (_of_categories(frame, column) if category_field else {} for column in (GROUP, NAME))
    reading = source.reading
    if POINT in frame.columns:
        point, is_binary = frame[POINT], frame[POINT].dtype == pl.Binary
        frame = frame.with_columns(*geometry.positions(point))
        if (wrong := frame["lat"].is_null()).any():
            frame = frame.with_columns(geometry.named(point).alias(POINT))
            form = "the point {} is not of the form POINT (longitude latitude) or [longitude, latitude]"
            shape, points = "the geometry {} is not a point in degrees of WGS 84", "give points, not other shapes"
            refuse(wrong, POINT, shape if is_binary else form, points if is_binary else "correct it")
    zones = frame[TIMEZONE].cast(pl.String) if TIMEZONE in frame.columns else None
    if zones is not None:
        known = {name: zone_of((name or "").strip()) is not None for name in zones.unique()}
        unknown = ~zones.replace_strict(known, return_dtype=pl.Boolean)
        refuse(unknown, TIMEZONE, "the time zone {} is missing, unknown or may be several", NAME_ZONE)
    separate = DATE in frame.columns
    if separate:
        date, of_day = (pl.col(name).cast(pl.String).str.strip_chars() for name in (DATE, "time"))
        date = date.str.replace(MIDNIGHT, "")  # workbooks have no dates but times at midnight
        frame = frame.with_columns(time=date + pl.lit(" ") + of_day)
    frame = frame.select(FIELDS)
    degrees = {}
    remedy = "give decimal degrees or remove the row"
    for field, limit in (("lat", 90), ("lon", 180)):
        label = called(field)
        column = frame[field]
        number = column if column.dtype.is_float() else _number(column, reading.decimal)
        if column.dtype == pl.String:
            comma, point = (stripped(column).str.contains(rf"^-?\d+{sign}\d+$") for sign in (",", r"\."))
            if not reading.decimal:
                refuse(comma, field, f"the {label} {{}} has a decimal comma", f"state it with {option('decimal', ',')}")
            elif not comma.any():
                refuse(point, field, f"the {label} {{}} has a decimal point", f"leave {option('decimal')} out")
        refuse(number.is_null(), field, f"the {label} {{}} is not a number", remedy)
        outside = f"the {label} {{}} is outside the range -{limit} to {limit}"
        refuse(number.abs() > limit, field, outside, "correct it or remove the row")
        degrees[field] = number.cast(pl.Float64).to_numpy()
    if (reading.time_format or reading.timezone) and frame["time"].dtype != pl.String:
        raise InputError(
            f"{source}: its times are not text, so leave {option('time_format')} and {option('timezone')} out"
        )
    time = parse_times(frame["time"], reading.time_format, reading.timezone or "UTC", zones)
    if not (reading.timezone or reading.time_format) and time.null_count() and frame["time"].dtype == pl.String:
        names = split_names(frame["time"].str.strip_chars())[1]
        short = [name for name in names.drop_nulls().unique() if is_short(name)]
        of_several = time.is_null() & names.is_in(short).fill_null(False)
        refuse(of_several, "time", "the time {} has an abbreviation, which may be of several zones", NAME_ZONE)
    dated = "" if separate else f"; name a separate date with {option('map', 'date=COLUMN')}"
    forms = (
        "use ISO 8601 (2012-04-03T18:00:09Z), Unix seconds or the form Tue Apr 03 18:00:09 +0000 2012, or state "
        f"another form with {option('time_format')}{dated}"
    )
    if reading.time_format:
        forms = f"it must have the form {reading.time_format!r}"
    if not separate and time.null_count():
        without = time.is_null() & frame["time"].cast(pl.String).str.contains(TIME_OF_DAY)
        if without.any():
            dated = option("map", f"date={next(iter(dates()), 'COLUMN')}")
            named = f"name the column of its dates with {dated}"
            refuse(without, "time", "the time {} has no date", named)
    zone = reading.timezone or ("its zone" if zones is not None else "")
    unreadable = "cannot be read" + (f" or does not exist in {zone}" if zone else "")
    refuse(time.is_null(), "time", f"the time {{}} {unreadable}", forms)
    user, users = _numbered(frame["user"])
    venue, venues = _numbered(frame["poi"])
    category, categories = _numbered(frame["category"])
    return Checkins(
        user, venue + np.int32(1), category, degrees["lat"], degrees["lon"], time.to_numpy(),
        users, np.concatenate([[""], venues]), categories, category_field, str(source), groups, called_so,
    )  # fmt: skip


def _number(column: pl.Series, decimal: str) -> pl.Series:
    """Convert to numbers, null where that is impossible. With a decimal comma, a point has no meaning."""
    text = stripped(column)
    if decimal and text.dtype == pl.String:
        text = text.str.replace_all(".", "?", literal=True).str.replace(decimal, ".", literal=True)
    return text.cast(pl.Float64, strict=False)


def _of_categories(frame: pl.DataFrame, column: str) -> dict[str, str]:
    """Return what a column says of every category: the most frequent in its rows, the first by name in a tie."""
    if column not in frame.columns:
        return {}
    pairs = frame.select(pl.col("category", column).cast(pl.String)).drop_nulls()
    counts = pairs.group_by("category", column).len().sort("category", "len", column, descending=[False, True, False])
    return dict(counts.unique("category", keep="first", maintain_order=True).select("category", column).iter_rows())


def _numbered(ids: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each id, from 0 by first appearance, and the id of each number as text."""
    ids = ids if ids.dtype == pl.Categorical else ids.cast(pl.String).cast(pl.Categorical)
    distinct = ids.unique()
    names = np.array(distinct.cast(pl.String).to_list(), object)
    return renumber(ids.to_physical().to_numpy(), distinct.to_physical().to_numpy(), names)


WITHOUT_NAMES = ("tsmc2014", "snap")  # formats with fixed columns


def chosen_columns(file: CheckinFile, given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the column of each field and the reason; `given` is the user's choice, field by field."""
    found = {f: {"column": column, "chosen_by": _reason(file, f, given)} for f, column in file.mapping.items()}
    if has_names(file.rows.get_column(file.mapping["time"])):
        found["time"]["chosen_by"] += "; it names time zones"
    return found


def _reason(file: CheckinFile, field: str, given: Mapping[str, str]) -> str:
    if field in given:
        return option("map")
    if field == POINT and not file.reading.venues:
        return "the file's geometry"
    if file.venues and field in file.venues.mapping:
        return f"its name in {file.venues.path.name}"
    if file.reading.columns:
        return option("columns")
    names = [name for tier in COLUMN_NAMES.get(field, ()) for name in tier]
    if file.format in WITHOUT_NAMES or plain_name(file.mapping[field]) not in names:
        return f"its place ({file.format})"
    taken = set(file.mapping.values())
    others = [repr(c) for c in file.rows.columns if c not in taken and plain_name(c) in names]
    return "its name" + (f", before {' and '.join(others)}" if others else "")
