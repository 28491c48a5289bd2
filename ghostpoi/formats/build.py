"""From the columns of a file to what reading it returns: the last step of every format.

Files of raw points get venues (--cluster-points): the places where people stay, found by clustering. A stay is a run of
a user's points near the first of them, without a pause of STAY_S seconds, that lasts for STAY_S seconds until the
user's next point. DBSCAN clusters the stays of all users. A venue is a cluster or, of a wide cluster, a square with
enough stays. Its position is rounded, and no point of the file has it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count, product

import numpy as np
import polars as pl

from ghostpoi.data.checkins import DATE, Checkins, Floats, Longs, by_user_and_time
from ghostpoi.data.geo import EARTH_RADIUS_KM
from ghostpoi.errors import InputError
from ghostpoi.formats.fields import (
    COLUMN_NAMES,
    Where,
    complete_rows,
    names_column,
    none_complete,
    places,
    plain_name,
    to_checkins,
)
from ghostpoi.formats.rows import NUMBER, Rows
from ghostpoi.formats.source import POINT, POSITIONS, CheckinFile, Source
from ghostpoi.formats.times import TIMEZONE, needs_zone, parse_times, states_zones
from ghostpoi.options import option
from ghostpoi.plugins import installing

STAY_S = 20 * 60
MIN_STAYS = 5  # of a cluster, and of a square
MIN_PEOPLE = 3  # whose stays make a venue: where fewer stay, it may be a home
DIGITS = 4  # of a position: about 11 metres
NOWHERE = -1


def venue_positions(table: Checkins, radius_m: float) -> tuple[Floats, Floats]:
    """Return the position of the venue of every row, (N,) each, NaN where a row belongs to none."""
    stay, lat, lon = _stays(table, radius_m)
    cluster, user = _clusters(lat, lon, radius_m), np.zeros(len(lat), np.int64)
    user[stay[stay >= 0]] = table.user[stay >= 0]
    inside = cluster >= 0
    people = np.bincount(np.unique(np.stack([cluster[inside], user[inside]]), axis=1)[0], minlength=1)
    kept = people >= MIN_PEOPLE
    number = np.where(kept, np.cumsum(kept) - 1, NOWHERE)
    venue = np.where(inside, number[np.where(inside, cluster, 0)], NOWHERE)  # of every stay
    taken = set(zip(table.lat.tolist(), table.lon.tolist(), strict=True))
    means = zip(_means(venue, lat).tolist(), _means(venue, lon).tolist(), strict=True)
    places = [_position(y, x, taken) for y, x in means]
    of_row = np.where(stay >= 0, venue[stay], NOWHERE) if len(venue) else stay
    at = np.array([*places, (np.nan, np.nan)])[of_row]  # the last one stands for NOWHERE
    return at[:, 0], at[:, 1]


def _stays(table: Checkins, radius_m: float) -> tuple[Longs, Floats, Floats]:
    """Return the stay of every row, NOWHERE for a row on the way, and the mean position of each stay."""
    order = by_user_and_time(table.user, table.time)
    user, time = table.user[order].tolist(), table.time[order].tolist()
    lat, lon = np.radians(table.lat[order]).tolist(), np.radians(table.lon[order]).tolist()

    def metres(a: int, b: int) -> float:  # as if the ground between them was flat
        return 1000 * EARTH_RADIUS_KM * math.hypot(lat[b] - lat[a], (lon[b] - lon[a]) * math.cos((lat[a] + lat[b]) / 2))

    stay, number, start = np.full(len(order), NOWHERE), 0, 0
    for at in range(1, len(order) + 1):
        same = at < len(order) and user[at] == user[start]
        if same and metres(start, at) <= radius_m and time[at] - time[at - 1] < STAY_S:
            continue
        if not same or time[at] - time[start] >= STAY_S:
            stay[start:at], number = number, number + 1
        start = at
    of_row = np.empty(len(order), np.int64)
    of_row[order] = stay
    return of_row, _means(of_row, table.lat), _means(of_row, table.lon)


def _means(group: Longs, values: Floats) -> Floats:
    """Return the mean of each group; those of NOWHERE do not count."""
    inside = group >= 0
    return np.bincount(group[inside], values[inside]) / np.bincount(group[inside])


def _clusters(lat: Floats, lon: Floats, radius_m: float) -> Longs:
    """Return the venue of every stay, NOWHERE for a stay in no cluster."""
    try:
        from sklearn.cluster import DBSCAN
    except ImportError:
        raise InputError(
            f"{option('cluster_points')} needs scikit-learn; install it with {installing('cluster')}"
        ) from None
    reach = radius_m / (1000 * EARTH_RADIUS_KM)
    found = DBSCAN(eps=reach, min_samples=MIN_STAYS, metric="haversine", algorithm="ball_tree")
    cluster = found.fit(np.radians(np.stack([lat, lon], axis=1))).labels_.astype(np.int64)
    venue, venues = np.full(len(lat), NOWHERE), 0
    order = np.argsort(cluster, kind="stable")
    for stay in np.split(order, np.searchsorted(cluster[order], np.arange(cluster.max(initial=NOWHERE) + 1)))[1:]:
        square = _squares(lat[stay], lon[stay], radius_m)
        venue[stay], venues = venues + square, venues + int(square.max()) + 1
    return venue


def _squares(lat: Floats, lon: Floats, radius_m: float) -> Longs:
    """Cut a cluster wider than twice the radius into squares, numbered from 0; sparse ones join the nearest other."""
    flat = np.stack([lat, lon * math.cos(math.radians(lat.mean()))], axis=1)
    at = 1000 * EARTH_RADIUS_KM * np.radians(flat)  # metres
    if (np.ptp(at, axis=0) <= 2 * radius_m).all():
        return np.zeros(len(lat), np.int64)
    _, square, size = np.unique(np.floor(at / (2 * radius_m)), axis=0, return_inverse=True, return_counts=True)
    square, full = square.reshape(-1), np.flatnonzero(size >= MIN_STAYS)
    if not len(full):
        return np.zeros(len(lat), np.int64)
    centre = np.stack([_means(square, axis)[full] for axis in at.T], axis=1)
    lost = np.flatnonzero(size[square] < MIN_STAYS)
    found = np.searchsorted(full, square)  # right for all but the lost ones
    found[lost] = ((at[lost, None] - centre) ** 2).sum(axis=2).argmin(axis=1)
    return found


def _position(lat: float, lon: float, taken: set[tuple[float, float]]) -> tuple[float, float]:
    """Return the rounded mean position, or the nearest rounded one that is no point of the file."""
    middle = round(lat * 10**DIGITS), round(lon * 10**DIGITS)
    for width in count():
        steps = sorted(product(range(-width, width + 1), repeat=2), key=lambda step: step[0] ** 2 + step[1] ** 2)
        for y, x in steps:
            place = round((middle[0] + y) / 10**DIGITS, DIGITS), round((middle[1] + x) / 10**DIGITS, DIGITS)
            if place not in taken:
                return place
    raise AssertionError  # there are more places than points


DATE_LIKE = r'^[ "]*(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})\b'


def own_columns(source: Source, mapping: dict[str, str], columns: Sequence[str]) -> dict[str, str]:
    """Return the column of each field that the file itself gives, not its table of venues, and of category names."""
    own = {field: column for field, column in mapping.items() if field not in source.elsewhere}
    return own | names_column(own, columns)


def file_of_rows(
    source: Source, rows: Rows, format: str, mapping: dict[str, str], digest: bytes = b"", where: Where | None = None
) -> CheckinFile:
    """Find the check-ins in rows; `mapping` names their columns. `where` names the place of a row in messages."""
    reading, where = source.reading, where or partial(rows.place, source)
    if names := [name.strip() for name in reading.normalise.split(",") if name.strip()]:
        rows = in_one_form(source, rows, mapping, names)
    if reading.order:
        plain = replace(source, reading=replace(reading, order="", normalise=""))
        file, found = file_of_rows(plain, rows, format, mapping, digest, where), where
        rank = np.unique(file.table.user_ids.astype(str), return_inverse=True)[1][file.table.user]
        by_time = file.present[np.lexsort((rank, file.table.time))]
        order = np.concatenate([by_time, file.missing]).astype(np.int64)  # rows that lack a value come last
        rows, where = rows.take(order), lambda row: found(int(order[row]))
    own = own_columns(source, mapping, rows.columns)
    fields = pl.DataFrame({field: rows.values(source, field, column) for field, column in own.items()})
    fields = _with_venue_fields(source, fields, where)
    mapping, fields = _with_used_zones(source, mapping, fields)
    if reading.cluster_points:
        fields = fields.with_columns(poi=pl.lit("somewhere"))
    complete, place, missing = complete_rows(source, fields, where)

    def dates() -> list[str]:
        first = {c: rows.get_column(c).cast(pl.String, strict=False).drop_nulls().head(1) for c in rows.columns}
        return [name for name, value in first.items() if value.str.contains(DATE_LIKE).any()]

    table = to_checkins(source, complete, mapping.get("category", ""), place, dates)
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
        present = np.delete(np.arange(len(rows)), missing)
        every = np.zeros((2, len(rows)))
        every[:, present] = np.nan_to_num([lat, lon])
        stays = np.delete(np.arange(len(table)), lost)
        table = _at_places(source, complete[stays], mapping, lambda row: place(int(stays[row])), lat[stays], lon[stays])
        missing, rows = np.union1d(missing, present[lost]), _moved(rows, mapping, every, reading.decimal)
    at = places(missing, where) if len(missing) else ""
    return CheckinFile(source, format, mapping, table, digest, rows, missing=missing, missing_at=at)


def _moved(rows: Rows, mapping: dict[str, str], at: Floats, decimal: str) -> Rows:
    """Return rows at other positions: latitude and longitude, (2, N)."""
    if POINT in mapping:
        return rows.with_positions(mapping[POINT], *at)
    for field, values in zip(("lat", "lon"), at, strict=True):
        texts = [str(value).replace(".", decimal or ".") for value in values.tolist()]
        rows = rows.replace_ids(mapping[field], np.array(texts, object))
    return rows


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


def _at_places(
    source: Source, fields: pl.DataFrame, mapping: dict[str, str], where: Where, lat: Floats, lon: Floats
) -> Checkins:
    """Return the check-ins with these positions, by which venues are known."""
    ids = [f"{y:.{DIGITS}f} {x:.{DIGITS}f}" for y, x in zip(lat.tolist(), lon.tolist(), strict=True)]
    known = fields.drop(POINT, strict=False).with_columns(lat=pl.Series(lat), lon=pl.Series(lon), poi=pl.Series(ids))
    return to_checkins(source, known, mapping.get("category", ""), where)


def in_one_form(source: Source, rows: Rows, mapping: dict[str, str], names: Sequence[str]) -> Rows:
    """Return rows with the texts of these columns in one form: times with a date in UTC, to the second."""
    if strange := [name for name in names if name not in rows.columns]:
        listed = ", ".join(rows.columns)
        raise InputError(f"{option('normalise', strange[0])}: {source} has no column {strange[0]!r}; it has {listed}")
    rows, time, reading = rows.in_one_form(names), mapping["time"], source.reading
    texts = rows.values(source, "time", time)
    is_text = texts.dtype == pl.String and not texts.null_count()
    if time not in names or {DATE, TIMEZONE} & mapping.keys() or reading.time_format or not is_text:
        return rows
    clock = parse_times(texts, "", reading.timezone or "UTC")
    moment = pl.from_epoch(clock, "s").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    keep = clock.is_null() | texts.str.contains(NUMBER).fill_null(True)
    return rows.with_ids(time, texts.zip_with(keep, moment).to_numpy().astype(object))
