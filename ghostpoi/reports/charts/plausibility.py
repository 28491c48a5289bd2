"""Charts of plausibility: outcomes of rows, displacement, sizes of candidate sets, and speeds."""

from itertools import pairwise

import numpy as np

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.places import SLOTS, Places
from ghostpoi.draw.crowds import by_name
from ghostpoi.draw.methods import FreeDraw
from ghostpoi.draw.publication import Publication
from ghostpoi.release.manifest import settings_of
from ghostpoi.reports import charts
from ghostpoi.reports.charts import Axis, Chart, Figure, Series, chart, columns, numbers, percent, upright
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.release_view import ReleaseView
from ghostpoi.reports.texts import TEXTS

COLOURS = {  # of outcomes
    "substituted": charts.BLUE, "no_candidate": charts.VERMILLION, "kept_by_speed": charts.GREEN,
    "kept_by_method": charts.PURPLE,
}  # fmt: skip
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
    series, base = [], [0.0] * len(groups)
    for key, text in release.outcomes.items():
        counts = [int(group.get(key, 0)) for group in groups.values()]
        if any(counts):
            shares = [100 * n / group["rows"] for n, group in zip(counts, groups.values(), strict=True)]
            each = zip(groups, counts, shares, strict=True)
            texts = [f"{group}: {n:,} rows {text}, {s:.2f}%" for group, n, s in each]
            series.append(charts.strips(text, COLOURS[key], shares, texts, base=base))
            base = [a + b for a, b in zip(base, shares, strict=True)]
    x = Axis("share of the rows", 0, 100, [(k, f"{k}%") for k in range(0, 101, 25)])
    y = charts.rows([f"{name}: {group['rows']:,} rows" for name, group in groups.items()])
    return chart("rows", Figure(series, x, y, 20 + charts.ROW_PX * len(groups)))


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
    p, bars = data.main.plausibility, _histogram(edges, share, "candidates")
    x, y = numbers("km", edges.tolist()), _share_axis(bars)
    marks = [
        upright(f"mean displacement {p['mean_km']:.2f} km", charts.VERMILLION, min(p["mean_km"], x.high), y),
        upright(f"95th percentile {p['p95_km']:.2f} km", charts.INK, min(p["p95_km"], x.high), y, "dash"),
    ] if p else []  # fmt: skip
    return chart("distance", Figure([bars, *marks], x, y))


def _displacement_chart(data: PageData, clean: Ints) -> Chart:
    moved = clean != data.released
    km = data.venues.km(clean[moved], data.released[moved])
    top = max(1.05, float(np.quantile(km, 0.995))) if len(km) else 1.05
    counts, edges = np.histogram(np.minimum(km, top), bins=np.linspace(0, top, 41))
    bars = _histogram(edges, counts / max(1, counts.sum()), "substituted rows")
    y = _share_axis(bars)
    marks = [upright(f"{(km > 1).mean():.0%} beyond 1 km", charts.VERMILLION, 1.0, y, "dash")] if len(km) else []
    return chart("distance_private", Figure([bars, *marks], numbers("km", edges.tolist()), y))


def _sizes_chart(size: Longs, rule: Publication) -> Chart:
    counts = np.bincount(size, minlength=2)
    shares = (counts / max(1, counts.sum())).tolist()
    texts = [f"{n} candidates: {percent(share)} of check-ins" for n, share in enumerate(shares)]
    edges = (np.arange(len(counts) + 1) - 0.5).tolist()
    bars = columns("check-ins", charts.BLUE, shares, texts, edges=edges)
    x, y = numbers("candidates", [*edges[1:]]), _share_axis(bars)
    x, c, method = x._replace(low=-0.5), rule.candidates, rule.method
    if method.own_sets:
        values = ", ".join(f"{key} {value}" for key, value in rule.public().get("method", {}).items())
        text, marks = f"{method.summary} Settings: {values or 'none'}.", []
    else:
        text = TEXTS["charts"]["sizes"]["rule"].format(c, of=" of the same category" if c.category == "exact" else "")
        low = min(c.min_candidates - 0.5, x.high)
        marks = [upright(f"widened below {c.min_candidates}", charts.MUTED, low, y, "dot")]
    return chart("sizes", Figure([bars, *marks], x, y), rule=text)


def _speed_chart(data: PageData) -> Chart:
    order = data.by_user
    same = np.diff(data.user[order]) == 0
    names = [f"{a:g} to {b:g}" if np.isfinite(b) else f"over {a:g}" for a, b in pairwise(SPEEDS)]

    def shares(poi: Ints) -> list[float]:
        counts = np.histogram(data.kmh(poi[order], data.time[order])[same], bins=np.array(SPEEDS))[0]
        return (counts / max(1, counts.sum())).tolist()

    both = [(name, colour, shares(poi)) for name, poi, colour, _ in charts.sides(data)]
    series = charts.grouped(columns, both, lambda k, share, name: f"{name}, {names[k]} km/h: {percent(share)} of steps")
    figure = Figure(series, charts.slots(names, "km/h", tilted=True), _share_axis(*series))
    return chart("speed", figure, speed=data.main.manifest["speed"])


def _histogram(edges: Floats, share: Floats, name: str) -> Series:
    texts = [f"{a:.2f} to {b:.2f} km: {percent(s)}" for (a, b), s in zip(pairwise(edges), share, strict=True)]
    return columns(name, charts.BLUE, share.round(5).tolist(), texts, edges=edges.tolist())


def _share_axis(*series: Series) -> Axis:
    axis = numbers("", [100 * value for value in charts.every(series)], "{:g}%", least=1)
    return axis._replace(low=0, high=axis.high / 100, ticks=[(value / 100, text) for value, text in axis.ticks])
