"""Would a reader of the release notice? Charts of what was substituted, how far the rule reaches, and speeds."""

from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.geo import haversine_km, speed_kmh
from ghostpoi.data.sessions import by_user_and_time
from ghostpoi.publish.manifest import settings_of
from ghostpoi.publish.methods.crowd import Crowd
from ghostpoi.publish.protocols import Publication
from ghostpoi.report.charts import Chart, axis, figure
from ghostpoi.report.collect import Collected
from ghostpoi.report.theme import BLUE, GREEN, INK, MUTED, PURPLE, VERMILLION

OUTCOMES = (  # of a row, in the manifest's words and in plain ones
    ("substituted", "substituted", BLUE, ""),
    ("no_candidate", "no candidate nearby", VERMILLION, "/"),
    ("kept_by_speed", "kept: all candidates too fast", GREEN, "x"),
    ("kept_by_method", "kept by the method", PURPLE, "\\"),
)
GROUPS = (("covered", "in sessions"), ("outside", "outside"))
SPEEDS = (0, 1, 2, 5, 10, 20, 40, 60, 90, 130, np.inf)  # km/h
HEIGHT = 340


def plausibility_charts(found: Collected) -> list[Chart]:
    """All of them; the displacements themselves are for the publisher alone."""
    rule = settings_of(found.main.manifest)
    km, size = _reach(found, rule)
    moved = displacement_chart(found) if found.clean is not None else reach_chart(found, km)
    return [rows_chart(found.main.manifest["rows"]), moved, sizes_chart(size, rule), speed_chart(found)]


def rows_chart(rows: dict[str, Any]) -> Chart:
    """What became of every row, and why some could not be substituted."""
    groups = [(name, text) for name, text in GROUPS if rows[name].get("rows")]
    labels = [text for _, text in groups]
    traces = []
    for key, text, colour, pattern in OUTCOMES:
        counts = [int(rows[name].get(key, 0)) for name, _ in groups]
        if key == "no_candidate" and rows["withheld"]:
            text = "withheld: no candidate nearby"
        if not any(counts):
            continue
        shares = [100 * c / max(1, rows[name]["rows"]) for c, (name, _) in zip(counts, groups, strict=True)]
        traces.append(
            go.Bar(
                x=shares, y=labels, orientation="h", name=text, customdata=counts,
                marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "replace", "solidity": 0.5}},
                hovertemplate=f"%{{y}}: %{{customdata:,}} rows, %{{x:.2f}}%<extra>{text}</extra>",
            )
        )  # fmt: skip
    x = axis("share of the rows", range=[0, 101.5], ticksuffix="%", dtick=25)
    y = axis("", categoryorder="array", categoryarray=labels[::-1], showgrid=False)
    return Chart(
        "rows", "What became of every row",
        "Rows in sessions are chosen by the method; rows outside (rare venues, short sessions) draw from the same "
        "candidates without scores. Every group is counted in the manifest.",
        figure(traces, HEIGHT, x, y, barmode="stack", bargap=0.5),
    )  # fmt: skip


def _reach(found: Collected, rule: Publication) -> tuple[Floats, Longs]:
    """The distances from released check-ins to the candidates of their venues, and how many those are.

    Over the venues of the release alone: what any reader can compute.
    """
    venues = found.venues
    seen = np.unique(found.released)
    visits = np.bincount(np.searchsorted(seen, found.released), minlength=len(seen))
    category = np.unique([venues.category[p] for p in seen], return_inverse=True)[1].astype(np.int32)
    known = np.append(False, visits >= rule.filters.min_poi_checkins)  # nearly: by what the release shows
    lat, lon = (np.append(np.nan, values[seen]) for values in (venues.lat, venues.lon))
    sets = rule.method.candidate_sets(lat, lon, np.append(-1, category).astype(np.int32), rule.candidates, known)
    real = (sets.poi[1:] > 0) & (sets.poi[1:] != np.arange(1, len(seen) + 1)[:, None])
    km = haversine_km(lat[1:, None], lon[1:, None], lat[sets.poi[1:]], lon[sets.poi[1:]])
    weight = np.where(real, (visits / np.maximum(1, real.sum(axis=1)))[:, None], 0.0)
    top = max(0.5, float(km[real].max())) if real.any() else 0.5
    counts, edges = np.histogram(km[real], bins=np.linspace(0, top, 31), weights=weight[real])
    return np.stack([edges[:-1], edges[1:], counts / max(1.0, counts.sum())]), np.repeat(sets.size[1:], visits)


def reach_chart(found: Collected, bins: Floats) -> Chart:
    """How far the rule lets a check-in move, with what was measured as single figures."""
    p = found.main.manifest["plausibility"]
    marks = [
        _mark(p[key], f"{text} {p[key]:.2f} km", colour, dash)
        for key, text, colour, dash in (
            ("mean_km", "mean displacement", VERMILLION, "solid"), ("p95_km", "95% within", INK, "dash")
        )
        if key in p
    ]  # fmt: skip
    return Chart(
        "distance", "How far a check-in may move",
        "Bars: distances from released venues to their candidates, which anyone can compute from the release. Lines: "
        "the displacement that was measured, as single figures; its distribution is on the publisher's private page.",
        figure([_histogram(bins, BLUE, "candidates")], HEIGHT, axis("km"), _shares(), shapes=marks, bargap=0.04),
    )  # fmt: skip


def displacement_chart(found: Collected) -> Chart:
    """How far check-ins did move."""
    assert found.clean is not None
    moved = found.clean != found.released
    km = found.venues.km(found.clean[moved], found.released[moved])
    top = float(np.quantile(km, 0.995)) if len(km) else 1.0
    counts, edges = np.histogram(np.minimum(km, top), bins=np.linspace(0, max(top, 0.1), 41))
    bins = np.stack([edges[:-1], edges[1:], counts / max(1, counts.sum())])
    marks = [_mark(1.0, f"{(km > 1).mean():.0%} beyond 1 km", VERMILLION, "dash")] if len(km) else []
    return Chart(
        "distance", "How far check-ins moved",
        "Distance from the clean to the released venue of every substituted row; the last bar holds all beyond it.",
        figure([_histogram(bins, BLUE, "substituted rows")], HEIGHT, axis("km"), _shares(), shapes=marks, bargap=0.04),
    )  # fmt: skip


def sizes_chart(size: Longs, rule: Publication) -> Chart:
    """How many candidates stand behind a released check-in."""
    counts = np.bincount(size, minlength=2)
    trace = go.Bar(
        x=list(range(len(counts))), y=(counts / max(1, counts.sum())).tolist(), marker={"color": BLUE},
        name="check-ins", hovertemplate="%{x} candidates: %{y:.1%} of check-ins<extra></extra>",
    )  # fmt: skip
    c = rule.candidates
    if isinstance(rule.method, Crowd):
        words = (
            f"The crowd of a venue, itself among it: {rule.method.size} or more venues of the same category, no two "
            f"more than {rule.method.reach_km:g} km apart; fewer where there are no more. "
        )
        shown = []
    else:
        words = (
            f"Venues of the same category within {c.radius_km:g} km, or further where there are fewer than "
            f"{c.min_candidates}; at most {c.max_candidates}. "
        )
        shown = [_mark(c.min_candidates - 0.5, f"widened below {c.min_candidates}", MUTED, "dot")]
    return Chart(
        "sizes", "How many candidates a venue has", f"{words}By released check-in, from the release alone.",
        figure([trace], HEIGHT, axis("candidates"), _shares(), shapes=shown, bargap=0.15),
    )  # fmt: skip


def speeds(found: Collected, poi: Longs) -> Floats:
    """km/h of every step of one user from check-in to check-in."""
    order = by_user_and_time(found.user, found.time)  # type: ignore[arg-type]
    same = np.diff(found.user[order]) == 0
    km = found.venues.km(poi[order[:-1]], poi[order[1:]])[same]
    return speed_kmh(km, np.diff(found.time[order])[same], float(found.main.manifest["speed"]["min_gap_s"]))


def speed_chart(found: Collected) -> Chart:
    """How fast people would have had to travel."""
    sides = [("released", found.released, BLUE)]
    if found.clean is not None:
        sides.insert(0, ("clean", found.clean, VERMILLION))
    names = [f"{a:g} to {b:g}" if np.isfinite(b) else f"over {a:g}" for a, b in pairwise(SPEEDS)]
    traces = []
    for name, poi, colour in sides:
        counts = np.histogram(speeds(found, poi), bins=np.array(SPEEDS))[0]
        traces.append(
            go.Bar(
                x=names, y=(counts / max(1, counts.sum())).tolist(), name=name, marker={"color": colour},
                hovertemplate=f"%{{x}} km/h: %{{y:.1%}} of steps<extra>{name}</extra>",
            )
        )  # fmt: skip
    counted = found.main.manifest["speed"]
    over, steps = int(counted.get("steps_over_limit", 0)), int(counted.get("steps", 0))
    return Chart(
        "speed", "How fast people seem to travel",
        f"Speed that each step from check-in to check-in implies. {over:,} of {steps:,} steps are over "
        f"{counted['limit_kmh']:g} km/h, all counted in the manifest.",
        figure(traces, HEIGHT, axis("km/h", type="category", tickangle=-45), _shares(), bargap=0.15),
    )  # fmt: skip


def _shares() -> dict[str, Any]:
    return axis("", tickformat=".0%", rangemode="tozero")


def _histogram(bins: Floats, colour: str, name: str) -> go.Bar:
    low, high, share = bins
    return go.Bar(
        x=((low + high) / 2).round(3).tolist(), y=share.round(5).tolist(), width=(high - low).round(4).tolist(),
        marker={"color": colour}, name=name, hovertemplate=f"%{{x:.2f}} km: %{{y:.1%}}<extra>{name}</extra>",
    )  # fmt: skip


def _mark(x: float, text: str, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line", "x0": x, "x1": x, "xref": "x", "y0": 0, "y1": 1, "yref": "paper", "showlegend": True,
        "name": text, "line": {"color": colour, "width": 2, "dash": dash},
    }  # fmt: skip
