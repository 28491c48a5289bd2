"""Charts of utility: statistics of the release and, on the private page, of the clean data next to them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from ghostpoi.audits.measures.utility import Profile, profile, utility
from ghostpoi.columns.harmless import OFFSET
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.fields import COLUMN_NAMES, plain_name
from ghostpoi.formats.times import TIMEZONE, has_names, local_hours, split_names, states_zones
from ghostpoi.reports import charts
from ghostpoi.reports.charts import Chart, Figure, chart, numbers, sides, slots
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import plain

OFFSETS = ("timezone", "timezoneoffset", "tzoffset", "utcoffset", "offset")  # columns of minutes east of UTC
FURTHEST, QUARTER = 16 * 60, 15  # minutes; offsets are multiples of a quarter of an hour


def hours_of(file: CheckinFile) -> tuple[Longs, str]:
    """Return the hour of each row, (N,), and of what clock: local if the file names a time zone, otherwise UTC."""
    time = file.table.time
    if zone := file.reading.timezone:
        utc = pl.Series(time).cast(pl.Int64) * 1_000_000
        local = utc.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
        return local.dt.hour().cast(pl.Int64).to_numpy(), f"local time of {zone}"
    for name, zones in _zones(file):
        if (hours := local_hours(pl.Series(time), zones)) is not None:
            return hours.to_numpy(), f"local time, from {name}"
    for name, minutes in _offsets(file):
        known = minutes.is_not_null().all() and minutes.is_between(-FURTHEST, FURTHEST).all()
        if known and (minutes != 0).any():
            return (time + 60 * minutes.to_numpy()) // 3600 % 24, f"local time, from {name}"
    return time // 3600 % 24, "UTC"


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

    def minutes_of(offset: pl.Series) -> pl.Series:
        found = (offset if (offset.abs() > FURTHEST / 60).any() else offset * 60).cast(pl.Int64, strict=False)
        return found.set(found % QUARTER != 0, None)

    columns = [c for c in file.rows.columns if plain_name(c) in OFFSETS and c not in file.mapping.values()]
    found = [(f"the column {c}", minutes_of(_text(file, c).cast(pl.Float64, strict=False))) for c in columns]
    written = _text(file, file.mapping["time"]).str.extract(OFFSET).str.replace("Z", "+00")
    hours, minutes = (written.str.extract(r"^[+-](\d\d):?(\d\d)?", group).cast(pl.Int64) for group in (1, 2))
    east = (60 * hours + minutes.fill_null(0)) * written.str.starts_with("-").replace_strict({True: -1, False: 1})
    return [*found, ("the offsets of the times", east)]


def _text(file: CheckinFile, column: str) -> pl.Series:
    return file.rows.get_column(column).cast(pl.String).str.strip_chars(' \t\r"')


TOP = 10  # venues shown by name
LONGEST = 26  # characters of such a name
CONFUSED = 8  # categories
CURVE = 80  # points of the popularity curve
FLOWS = 250  # the largest of either side
Profiles = list[tuple[str, Profile, str, str]]  # name, profile, colour, line style


def utility_measures(data: PageData) -> dict[str, dict[str, float]] | None:
    """The measures of the audit or, on the private page of a release without one, those of all rows."""
    if data.main.audit is not None:
        return data.main.audit.utility
    if data.clean is None:
        return None
    sessions, vocabulary = _one_session_per_user(data, data.clean)
    return utility(sessions, data.released[data.by_user], vocabulary)


def utility_charts(data: PageData) -> list[Chart]:
    """All charts of this section; flows on the private page only."""
    sessions, vocabulary = _one_session_per_user(data, data.released)
    profiles = [
        (name, profile(sessions, poi[data.by_user], vocabulary), colour, dash)
        for name, poi, colour, dash in sides(data)
    ]
    places, (number, categories) = data.venues, _category_of(data)
    # On the private page, the clean data decides which venues and categories are the most visited.
    side, every = "release" if data.clean is None else "clean data", np.arange(len(places.name))
    found = [
        _popularity_chart(profiles),
        _most_visited(data, "top", every, lambda v: ", ".join(filter(None, (places.category[v], places.name[v]))),
                      side=side),
    ]  # fmt: skip
    if data.main.table.category_field:
        found.append(_most_visited(data, "categories", number, categories.__getitem__))
    if not data.main.rotates_users:  # else users are not known
        found.append(_gyration_chart(profiles))
    found.append(_hours_chart(data))
    return found + ([_flows_chart(profiles[0][1], profiles[1][1])] if len(profiles) > 1 else [])


def _one_session_per_user(data: PageData, side: Ints) -> tuple[Sessions, Vocabulary]:
    """All rows of one side, one session per user, over all venues of the page."""
    order, venues = data.by_user, data.venues
    user = data.user[order]
    start = np.flatnonzero(np.append(True, np.diff(user) != 0))
    category = np.unique(venues.category, return_inverse=True)[1].astype(np.int32)
    lon = venues.centre[1] + venues.east  # without a jump at the antimeridian, so that squares there are neighbours
    vocabulary = Vocabulary(venues.lat, lon, category, np.arange(len(category), dtype=np.int32))
    ends = np.append(start, len(order))
    return Sessions(user[start].astype(np.int32), ends, side[order], data.time[order], order), vocabulary


def _popularity_chart(profiles: Profiles) -> Chart:
    series = []
    for name, side, colour, dash in profiles:
        visits = np.sort(np.bincount(side.poi))[::-1]
        visits = visits[visits > 0]
        at = np.unique(np.geomspace(1, len(visits), CURVE).astype(int))
        series.append(charts.curve(name, colour, at.tolist(), visits[at - 1].tolist(), dash))
    ranks = [mark.x0 for one in series for mark in one.marks]
    x, y = numbers("rank of the venue", ranks, log=True), numbers("visits", charts.every(series), log=True)
    return chart("popularity", Figure(series, x, y))


def _most_visited(data: PageData, title: str, kind: Longs, name_of: Callable[[int], str], **texts: str) -> Chart:
    """The kinds of venues, (V+1,), with the most visits on the first side, and their visits on each."""
    shown = sides(data)
    visits = [np.bincount(kind[poi[poi > 0]], minlength=int(kind.max()) + 1) for _, poi, _, _ in shown]
    most = np.argsort(-visits[0], kind="stable")[:TOP]
    most = most[visits[0][most] > 0]
    labels = [plain(name_of(k), LONGEST) for k in most]
    both = [(name, colour, n[most].tolist()) for (name, _, colour, _), n in zip(shown, visits, strict=True)]
    series = charts.grouped(charts.strips, both, lambda k, n, name: f"{labels[k]}: {n:,} visits, {name}")
    x = numbers("visits", charts.every(series), "{:,.0f}")
    return chart(title, Figure(series, x, charts.rows(labels), 20 + charts.ROW_PX * len(most)), **texts)


def _category_of(data: PageData) -> tuple[Longs, list[str]]:
    """The number of each venue's category, (V+1,), and the names of categories."""
    names, number = np.unique(data.venues.category, return_inverse=True)
    return number, names.tolist()


class Confusion(NamedTuple):
    """Where visits of a category went: shares of the most frequent categories, and those of all released visits."""

    names: list[str]
    shares: list[list[float]]  # of each clean category, by released category
    all: list[float]


def confusion(data: PageData) -> Confusion | None:
    """Compare categories before and after; None on the public page and for files without categories."""
    if data.clean is None or not data.main.table.category_field:
        return None
    number, names = _category_of(data)
    before, after = number[data.clean], number[data.released]
    most = np.argsort(-np.bincount(before, minlength=len(names)), kind="stable")[:CONFUSED]
    shares = [[float((after[before == a] == b).mean()) for b in most] for a in most if (before == a).any()]
    return Confusion([plain(names[k], LONGEST) for k in most], shares, [float((after == b).mean()) for b in most])


def _gyration_chart(profiles: Profiles) -> Chart:
    top = max(0.1, float(np.quantile(np.concatenate([side.gyration_km for _, side, _, _ in profiles]), 0.98)))
    edges = np.linspace(0, top, 21)
    both = [
        (name, colour, np.histogram(np.minimum(side.gyration_km, top), bins=edges)[0].tolist())
        for name, side, colour, _ in profiles
    ]
    series = charts.grouped(
        charts.columns, both, lambda k, n, name: f"{edges[k]:.1f} to {edges[k + 1]:.1f} km: {n:,} users, {name}"
    )
    marks = [(k, f"{edges[k]:.1f}") for k in range(0, 21, 4)]
    y = numbers("users", charts.every(series), "{:,.0f}")
    return chart("gyration", Figure(series, slots([""] * 20, "km")._replace(ticks=marks), y))


def _hours_chart(data: PageData) -> Chart:
    hour, clock = hours_of(data.main.file)
    counts, short = np.bincount(hour, minlength=24).tolist(), "UTC" if clock == "UTC" else "local time"
    texts = [f"{hour:02d}:00 {short}: {n:,} check-ins" for hour, n in enumerate(counts)]
    bars = charts.columns("released", charts.BLUE, counts, texts)
    same = "Times do not change, so the clean data has the same distribution."
    times = same if data.main.keeps_times else data.main.times
    x = slots([f"{hour:02d}" for hour in range(24)], f"hour, {short}", every=3)
    return chart("hours", Figure([bars], x, numbers("check-ins", counts, "{:,.0f}")), clock=plain(clock), times=times)


def _flows_chart(clean: Profile, released: Profile) -> Chart:
    flows, which = np.unique(np.concatenate([clean.flow, released.flow]), return_inverse=True)
    a, b = (np.bincount(side, minlength=len(flows)) for side in np.split(which, [len(clean.flow)]))
    most = np.argsort(-np.maximum(a, b), kind="stable")[:FLOWS]
    end = int(max(a.max(initial=1), b.max(initial=1))) + 1
    before, after = (a[most] + 1).tolist(), (b[most] + 1).tolist()
    texts = [f"clean {m - 1:,}, released {n - 1:,} trips" for m, n in zip(before, after, strict=True)]
    marks = charts.points("pair of squares", charts.BLUE, before, after, texts, "dot")
    x, y = (numbers(f"{side} trips, plus one", [*before, *after], log=True) for side in ("clean", "released"))
    same = charts.rule("unchanged", charts.MUTED, (x.low, y.low), (end, end), "dot")
    return chart("flows", Figure([same, marks], x, y), flows=FLOWS)
