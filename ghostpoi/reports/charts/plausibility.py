"""Charts of plausibility: outcomes of rows, displacement, sizes of candidate sets, and speeds."""

from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.places import SLOTS, Places
from ghostpoi.draw.crowds import by_name
from ghostpoi.draw.methods import FreeDraw
from ghostpoi.draw.publication import Publication
from ghostpoi.release.manifest import settings_of
from ghostpoi.reports import charts
from ghostpoi.reports.charts import Chart, axis, bars, chart, draw, share_axis, sides, vertical
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.release_view import ReleaseView
from ghostpoi.reports.texts import TEXTS

STYLES = {  # colour and pattern of an outcome
    "substituted": (charts.BLUE, ""),
    "no_candidate": (charts.VERMILLION, "/"),
    "kept_by_speed": (charts.GREEN, "x"),
    "kept_by_method": (charts.PURPLE, "\\"),
}
SPEEDS = (0, 1, 2, 5, 10, 20, 40, 60, 90, 130, np.inf)  # km/h


def plausibility_charts(data: PageData) -> list[Chart]:
    """All charts of this section. Only the private page shows the displacements themselves.

    Of another tool's release, neither the outcomes of rows nor the rule is known.
    """
    if not data.main.ours:
        return [_speed_chart(data)]
    rule = settings_of(data.main.manifest)
    outcomes = [_outcomes_chart(data.main)] if data.main.plausibility else []  # else few rows are new
    displacement = [] if data.clean is None else [_displacement_chart(data, data.clean)]
    if isinstance(rule.method, FreeDraw) or rule.learned:  # no candidates, or none that the release alone shows
        return [*outcomes, *displacement, _speed_chart(data)]
    km, share, size = _candidate_distances(data, rule)
    moved = displacement or [_reach_chart(data, km, share)]
    return [*outcomes, *moved, _sizes_chart(size, rule), _speed_chart(data)]


def _outcomes_chart(release: ReleaseView) -> Chart:
    groups = {name: counts for name, counts in release.row_counts.items() if counts.get("rows")}
    traces = []
    for key, text in release.outcomes.items():
        counts = [int(group.get(key, 0)) for group in groups.values()]
        if any(counts):
            shares = [100 * n / group["rows"] for n, group in zip(counts, groups.values(), strict=True)]
            colour, shape = STYLES[key]
            marker = {"color": colour, "pattern": {"shape": shape, "fillmode": "replace", "solidity": 0.5}}
            hover = "%{y}: %{customdata:,} rows, %{x:.2f}%"
            traces.append(
                bars(shares, list(groups), text, colour, hover, orientation="h", customdata=counts, marker=marker)
            )
    x = axis("share of the rows", range=[0, 101.5], ticksuffix="%", dtick=25)
    y = axis("", categoryorder="array", categoryarray=list(groups)[::-1], showgrid=False)
    return chart("rows", draw(traces, x, y, barmode="stack", bargap=0.5))


def _candidate_distances(data: PageData, rule: Publication) -> tuple[Floats, Floats, Longs]:
    """Distances from released check-ins to the candidates of their venues, and the sizes of these sets.

    Computed from the venues of the release alone, as any reader can. Returns bin edges, shares and (N,) sizes.
    """
    venues = data.venues
    seen = np.unique(data.released)
    visits = np.bincount(np.searchsorted(seen, data.released), minlength=len(seen))
    names, category = np.unique([venues.category[p] for p in seen], return_inverse=True)
    known = np.append(False, visits >= rule.filters.min_poi_checkins)  # an estimate: the filter counts clean rows
    lat, lon = (np.append(np.nan, values[seen]) for values in (venues.lat, venues.lon))
    groups = by_name(list(names), dict(data.main.manifest["disclosure"]["category_groups"]))
    hours = np.zeros((len(names), SLOTS), np.int64)  # they weigh candidates, which does not matter here
    places = Places(lat, lon, np.append(-1, category).astype(np.int32), np.append(0, visits), hours, groups)
    sets = rule.method.candidate_sets(places, rule.candidates, known)
    real = (sets.poi[1:] > 0) & (sets.poi[1:] != np.arange(1, len(seen) + 1)[:, None])
    km = haversine_km(lat[1:, None], lon[1:, None], lat[sets.poi[1:]], lon[sets.poi[1:]])
    weight = np.where(real, (visits / np.maximum(1, real.sum(axis=1)))[:, None], 0.0)
    top = max(0.5, float(km[real].max())) if real.any() else 0.5
    counts, edges = np.histogram(km[real], bins=np.linspace(0, top, 31), weights=weight[real])
    return edges, counts / max(1.0, counts.sum()), np.repeat(sets.size[1:], visits)


def _reach_chart(data: PageData, edges: Floats, share: Floats) -> Chart:
    p = data.main.plausibility
    marks = [
        vertical(p["mean_km"], f"mean displacement {p['mean_km']:.2f} km", charts.VERMILLION, "solid"),
        vertical(p["p95_km"], f"95th percentile {p['p95_km']:.2f} km", charts.INK, "dash"),
    ] if p else []  # fmt: skip
    trace = _histogram(edges, share, "candidates")
    return chart("distance", draw([trace], axis("km"), share_axis(), shapes=marks, bargap=0.04))


def _displacement_chart(data: PageData, clean: Ints) -> Chart:
    moved = clean != data.released
    km = data.venues.km(clean[moved], data.released[moved])
    top = float(np.quantile(km, 0.995)) if len(km) else 1.0
    counts, edges = np.histogram(np.minimum(km, top), bins=np.linspace(0, max(top, 0.1), 41))
    trace = _histogram(edges, counts / max(1, counts.sum()), "substituted rows")
    marks = [vertical(1.0, f"{(km > 1).mean():.0%} beyond 1 km", charts.VERMILLION, "dash")] if len(km) else []
    return chart("distance_private", draw([trace], axis("km"), share_axis(), shapes=marks, bargap=0.04))


def _sizes_chart(size: Longs, rule: Publication) -> Chart:
    counts = np.bincount(size, minlength=2)
    shares = (counts / max(1, counts.sum())).tolist()
    trace = bars(list(range(len(counts))), shares, "check-ins", charts.BLUE, "%{x} candidates: %{y:.1%} of check-ins")
    c, method = rule.candidates, rule.method
    if method.own_sets:
        values = ", ".join(f"{key} {value}" for key, value in rule.public().get("method", {}).items())
        text, marks = f"{method.summary} Settings: {values or 'none'}.", []
    else:
        text = TEXTS["charts"]["sizes"]["rule"].format(c, of=" of the same category" if c.category == "exact" else "")
        marks = [vertical(c.min_candidates - 0.5, f"widened below {c.min_candidates}", charts.MUTED, "dot")]
    return chart("sizes", draw([trace], axis("candidates"), share_axis(), shapes=marks, bargap=0.15), rule=text)


def _speed_chart(data: PageData) -> Chart:
    order = data.by_user
    same = np.diff(data.user[order]) == 0
    names = [f"{a:g} to {b:g}" if np.isfinite(b) else f"over {a:g}" for a, b in pairwise(SPEEDS)]
    traces = []
    for name, poi, colour, _ in sides(data):
        counts = np.histogram(data.kmh(poi[order], data.time[order])[same], bins=np.array(SPEEDS))[0]
        shares = (counts / max(1, counts.sum())).tolist()
        traces.append(bars(names, shares, name, colour, "%{x} km/h: %{y:.1%} of steps"))
    figure = draw(traces, axis("km/h", type="category", tickangle=-45), share_axis(), bargap=0.15)
    return chart("speed", figure, speed=data.main.manifest["speed"])


def _histogram(edges: Floats, share: Floats, name: str) -> go.Bar:
    middle, width = ((edges[:-1] + edges[1:]) / 2).round(3).tolist(), np.diff(edges).round(4).tolist()
    return bars(middle, share.round(5).tolist(), name, charts.BLUE, "%{x:.2f} km: %{y:.1%}", width=width)
