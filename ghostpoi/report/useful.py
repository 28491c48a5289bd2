"""What is the release still good for? The released side alone or, for the publisher, before beside after."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.sessions import Sessions, Vocabulary, by_user_and_time
from ghostpoi.evaluate.measures.utility import Profile, profile, utility
from ghostpoi.report.charts import Chart, axis, figure
from ghostpoi.report.collect import Collected
from ghostpoi.report.safe import label
from ghostpoi.report.theme import BLUE, MUTED, VERMILLION

HEIGHT = 340
TOP = 10  # venues or categories by name
CURVE = 80  # points of the popularity curve
FLOWS = 250  # drawn, the largest of either side
Sides = list[tuple[str, Profile, str, str]]  # name, figures, colour, line


def utility_figures(found: Collected) -> dict[str, dict[str, float]] | None:
    """As the audit measured them; on the private page over all rows, where there was no audit."""
    if found.main.audit is not None:
        return found.main.audit.utility
    if found.clean is None:
        return None
    sessions, words = _sessions(found)
    order = sessions.row
    clean = Sessions(sessions.user, sessions.start, _codes(found.clean[order]), sessions.time, order)
    return utility(clean, _codes(found.released[order]), words)


def utility_charts(found: Collected) -> list[Chart]:
    """Popularity, hours, radius of gyration and, on the private page, flows."""
    sessions, words = _sessions(found)
    order = sessions.row
    after = profile(sessions, _codes(found.released[order]), words)
    sides: Sides = [("released", after, BLUE, "solid")]
    if found.clean is not None:
        sides.insert(0, ("clean", profile(sessions, _codes(found.clean[order]), words), VERMILLION, "dash"))
    charts = [popularity_chart(sides), top_chart(found), gyration_chart(sides), hours_chart(found)]
    return charts + ([flows_chart(sides[0][1], after)] if found.clean is not None else [])


def _codes(poi: Longs) -> Ints:
    return (poi + 1).astype(np.int32)


def _sessions(found: Collected) -> tuple[Sessions, Vocabulary]:
    """All rows, one session a user, over all venues of the page."""
    order = by_user_and_time(found.user, found.time)  # type: ignore[arg-type]
    user = found.user[order]
    start = np.flatnonzero(np.append(True, np.diff(user) != 0))
    kinds = np.unique(found.venues.category, return_inverse=True)[1].astype(np.int32)
    words = Vocabulary(
        np.append(np.nan, found.venues.lat), np.append(np.nan, _unwrapped(found)), np.append(np.int32(-1), kinds),
        np.arange(-1, len(kinds), dtype=np.int32),
    )  # fmt: skip
    sessions = Sessions(
        user[start].astype(np.int32), np.append(start, len(order)), _codes(found.released[order]), found.time[order],
        order,
    )  # fmt: skip
    return sessions, words


def _unwrapped(found: Collected) -> Floats:
    """Longitudes without a jump at the antimeridian, so that neighbouring cells there are neighbours."""
    middle = found.venues.middle[1]
    return middle + (found.venues.lon - middle + 180) % 360 - 180


def popularity_chart(sides: Sides) -> Chart:
    """How unevenly visits are spread over venues."""
    traces = []
    for name, side, colour, dash in sides:
        visits = np.sort(np.bincount(side.poi))[::-1]
        visits = visits[visits > 0]
        at = np.unique(np.geomspace(1, len(visits), CURVE).astype(int))
        traces.append(
            go.Scatter(
                x=at.tolist(), y=visits[at - 1].tolist(), mode="lines", name=name, line=_line(colour, dash),
                hovertemplate=f"venue no. %{{x:,}}: %{{y:,}} visits<extra>{name}</extra>",
            )
        )  # fmt: skip
    return Chart(
        "popularity", "Popularity of venues, from the first to the last",
        "Visits of every venue, the most visited first; both axes grow by factors of ten.",
        figure(
            traces, HEIGHT, axis("rank of the venue", type="log", dtick=1), axis("visits", type="log", dtick=1)
        ),
    )  # fmt: skip


def top_chart(found: Collected) -> Chart:
    """The most visited venues by name, as the release has them; on the private page as they were, and became."""
    by = found.released if found.clean is None else found.clean
    n = len(found.venues.name)
    most = np.argsort(-np.bincount(by, minlength=n), kind="stable")[:TOP]
    most = most[np.bincount(by, minlength=n)[most] > 0]
    # Names may repeat; positions on the axis may not.
    texts = [_shortened(f"{found.venues.category[p]}, {found.venues.name[p]}") for p in most]
    sides = [("released", found.released, BLUE)]
    if found.clean is not None:
        sides.insert(0, ("clean", found.clean, VERMILLION))
    traces = [
        go.Bar(
            x=np.bincount(poi, minlength=n)[most].tolist(), y=list(range(len(most))), orientation="h", name=name,
            marker={"color": colour}, customdata=texts,
            hovertemplate=f"%{{customdata}}: %{{x:,}} visits<extra>{name}</extra>",
        )
        for name, poi, colour in sides
    ]  # fmt: skip
    y = axis("", tickvals=list(range(len(most))), ticktext=texts, autorange="reversed", showgrid=False)
    y["tickfont"] = {"size": 11}
    when = "before" if found.clean is not None else "in the release"
    return Chart(
        "top", f"The most visited venues {when}",
        "A venue's visits in the release need not be its own: they are what others were moved to.",
        figure(traces, HEIGHT, axis("visits", rangemode="tozero"), y, bargap=0.25),
    )  # fmt: skip


def _shortened(text: str, most: int = 26) -> str:
    return label(text if len(text) <= most else text[: most - 1] + "…")


def gyration_chart(sides: Sides) -> Chart:
    """How far people range."""
    top = max(0.1, float(np.quantile(np.concatenate([s.gyration_km for _, s, _, _ in sides]), 0.98)))
    edges = np.linspace(0, top, 21)
    traces = []
    for name, side, colour, _ in sides:
        counts = np.histogram(np.minimum(side.gyration_km, top), bins=edges)[0]
        traces.append(
            go.Bar(
                x=((edges[:-1] + edges[1:]) / 2).round(3).tolist(), y=counts.tolist(), name=name,
                marker={"color": colour}, hovertemplate=f"%{{x:.2f}} km: %{{y:,}} people<extra>{name}</extra>",
            )
        )  # fmt: skip
    return Chart(
        "gyration", "How far people range",
        "Radius of gyration of every user over all of their check-ins; the last bar holds all beyond it.",
        figure(traces, HEIGHT, axis("km"), axis("people", rangemode="tozero"), bargap=0.08),
    )  # fmt: skip


def hours_chart(found: Collected) -> Chart:
    """When people check in."""
    counts = np.bincount(found.time // 3600 % 24, minlength=24)
    trace = go.Bar(
        x=[f"{h:02d}" for h in range(24)], y=counts.tolist(), marker={"color": BLUE}, name="released",
        hovertemplate="%{x}:00 UTC: %{y:,} check-ins<extra></extra>",
    )  # fmt: skip
    return Chart(
        "hours", "When people check in",
        "By hour of the day, in UTC. Times are untouched, so this is the same before and after.",
        figure([trace], HEIGHT, axis("hour, UTC", type="category", dtick=3), axis("check-ins", rangemode="tozero"),
               bargap=0.12),
    )  # fmt: skip


def flows_chart(before: Profile, after: Profile) -> Chart:
    """Trips between 1 km cells, before against after."""
    things, which = np.unique(np.concatenate([before.flow, after.flow]), return_inverse=True)
    a = np.bincount(which[: len(before.flow)], minlength=len(things))
    b = np.bincount(which[len(before.flow) :], minlength=len(things))
    most = np.argsort(-np.maximum(a, b), kind="stable")[:FLOWS]
    top = int(max(a.max(initial=1), b.max(initial=1)))
    marks = go.Scatter(
        x=(a[most] + 1).tolist(), y=(b[most] + 1).tolist(), mode="markers", name="a pair of cells",
        marker={"color": BLUE, "size": 7, "opacity": 0.6, "line": {"width": 0}},
        customdata=np.stack([a[most], b[most]], axis=1).tolist(),
        hovertemplate="clean %{customdata[0]:,}, released %{customdata[1]:,} trips<extra></extra>",
    )  # fmt: skip
    line: dict[str, Any] = {
        "type": "line", "x0": 1, "y0": 1, "x1": top + 1, "y1": top + 1, "showlegend": True, "name": "unchanged",
        "line": {"color": MUTED, "width": 1.5, "dash": "dot"},
    }  # fmt: skip
    return Chart(
        "flows", "Flows between 1 km cells, before and after",
        f"Trips from cell to cell, plus one; the {FLOWS} largest flows of either side. Flows that survive lie on the "
        "line.",
        figure([marks], HEIGHT, axis("clean trips", type="log", dtick=1),
               axis("released trips", type="log", dtick=1), shapes=[line]),
    )  # fmt: skip


def _line(colour: str, dash: str) -> dict[str, Any]:
    return {"color": colour, "width": 2.5, "dash": dash}
