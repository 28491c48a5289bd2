"""Charts of utility: statistics of the release and, on the private page, of the clean data next to them."""

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
from ghostpoi.reports.charts import BLUE, MUTED, Chart, axis, bars, chart, draw, line, scatter, sides
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import label, plain

OFFSETS = ("timezone", "timezoneoffset", "tzoffset", "utcoffset", "offset")  # columns of minutes east of UTC
FURTHEST, QUARTER = 16 * 60, 15  # minutes; offsets are multiples of a quarter of an hour


class Hours(NamedTuple):
    """Hours of the day, (N,), and what clock they are of."""

    hour: Longs
    clock: str


def hours_of(file: CheckinFile) -> Hours:
    """Return the local hours of all rows if the file names a time zone, otherwise those of UTC."""
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


TOP = 10  # venues shown by name
LONGEST = 26  # characters of such a name
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
    gyration = [] if data.main.rotates_users else [_gyration_chart(profiles)]  # of users, who are not known
    charts = [_popularity_chart(profiles), _top_chart(data), *gyration, _hours_chart(data)]
    return charts + ([_flows_chart(profiles[0][1], profiles[1][1])] if len(profiles) > 1 else [])


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
    traces = []
    for name, side, colour, dash in profiles:
        visits = np.sort(np.bincount(side.poi))[::-1]
        visits = visits[visits > 0]
        at = np.unique(np.geomspace(1, len(visits), CURVE).astype(int))
        style = {"color": colour, "width": 2.5, "dash": dash}
        hover = "rank %{x:,}: %{y:,} visits"
        traces.append(scatter(at.tolist(), visits[at - 1].tolist(), name, hover, mode="lines", line=style))
    x, y = axis("rank of the venue", type="log", dtick=1), axis("visits", type="log", dtick=1)
    return chart("popularity", draw(traces, x, y))


def _top_chart(data: PageData) -> Chart:
    """The most visited venues of the first side; on the private page that is the clean one."""
    shown = sides(data)
    visits = {name: np.bincount(poi, minlength=len(data.venues.name)) for name, poi, _, _ in shown}
    ranked = visits[shown[0][0]]
    most = np.argsort(-ranked, kind="stable")[:TOP]
    most = most[ranked[most] > 0]
    at = list(range(len(most)))  # positions, because names may repeat
    named = (", ".join(filter(None, (data.venues.category[p], data.venues.name[p]))) for p in most)
    texts = [label(name, LONGEST) for name in named]
    traces = [
        bars(visits[name][most].tolist(), at, name, colour, "%{customdata}: %{x:,} visits", orientation="h",
             customdata=texts)
        for name, _, colour, _ in shown
    ]  # fmt: skip
    y = axis("", tickvals=at, ticktext=texts, autorange="reversed", showgrid=False)
    y["tickfont"] = {"size": 11}
    figure = draw(traces, axis("visits", rangemode="tozero"), y, bargap=0.25)
    return chart("top", figure, side="release" if data.clean is None else "clean data")


def _gyration_chart(profiles: Profiles) -> Chart:
    top = max(0.1, float(np.quantile(np.concatenate([side.gyration_km for _, side, _, _ in profiles]), 0.98)))
    edges = np.linspace(0, top, 21)
    middle = ((edges[:-1] + edges[1:]) / 2).round(3).tolist()
    traces = []
    for name, side, colour, _ in profiles:
        counts = np.histogram(np.minimum(side.gyration_km, top), bins=edges)[0].tolist()
        traces.append(bars(middle, counts, name, colour, "%{x:.2f} km: %{y:,} users"))
    return chart("gyration", draw(traces, axis("km"), axis("users", rangemode="tozero"), bargap=0.08))


def _hours_chart(data: PageData) -> Chart:
    found = hours_of(data.main.file)
    counts, clock = np.bincount(found.hour, minlength=24).tolist(), plain(found.clock)
    short = "UTC" if found.clock == "UTC" else "local time"
    trace = bars([f"{h:02d}" for h in range(24)], counts, "released", BLUE, f"%{{x}}:00 {short}: %{{y:,}} check-ins")
    x, y = axis(f"hour, {short}", type="category", dtick=3), axis("check-ins", rangemode="tozero")
    return chart("hours", draw([trace], x, y, bargap=0.12), clock=clock)


def _flows_chart(clean: Profile, released: Profile) -> Chart:
    flows, which = np.unique(np.concatenate([clean.flow, released.flow]), return_inverse=True)
    a = np.bincount(which[: len(clean.flow)], minlength=len(flows))
    b = np.bincount(which[len(clean.flow) :], minlength=len(flows))
    most = np.argsort(-np.maximum(a, b), kind="stable")[:FLOWS]
    end = int(max(a.max(initial=1), b.max(initial=1))) + 1
    marks = scatter(
        (a[most] + 1).tolist(), (b[most] + 1).tolist(), "pair of squares",
        "clean %{customdata[0]:,}, released %{customdata[1]:,} trips", "",
        customdata=np.stack([a[most], b[most]], axis=1).tolist(),
        marker={"color": BLUE, "size": 7, "opacity": 0.6, "line": {"width": 0}},
    )  # fmt: skip
    x, y = (axis(f"{side} trips, plus one", type="log", dtick=1) for side in ("clean", "released"))
    figure = draw([marks], x, y, shapes=[line((1, 1), (end, end), "unchanged", MUTED, "dot")])
    return chart("flows", figure, flows=FLOWS)
