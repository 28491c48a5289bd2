"""The chart of the settings that `choose` tried."""

from collections.abc import Mapping
from typing import Any

from ghostpoi.audits.controls import CLEAN
from ghostpoi.reports import charts
from ghostpoi.reports.charts import Chart, Figure, chart, numbers, percent, points, rule
from ghostpoi.reports.choice_view import controls, protected, without
from ghostpoi.reports.choice_view import points as points_of

CATEGORIES = {
    "any": (charts.BLUE, "any category"), "group": (charts.GREEN, "group of categories"),
    "exact": (charts.VERMILLION, "same category"),
}  # fmt: skip


def choice_chart(found: Mapping[str, Any]) -> Chart:
    """What is given away against trips that survive, both in percent."""
    name, floor = without(found)
    clean = controls(found)[CLEAN] - floor
    lines = ((name, 0.0, charts.PURPLE, "dash"), ("clean data", clean, charts.INK, ""))
    x = numbers("trips between 1 km squares that survive", [100 * t["flows"] for t in found["tried"]], "{:g}%")
    y = numbers("given away, points", [100 * v for v in (*map(protected, found["tried"]), clean)])
    series = [rule(text, colour, (x.low, 100 * v), (x.high, 100 * v), dash) for text, v, colour, dash in lines]
    for category, (colour, text) in CATEGORIES.items():
        mine = [t for t in found["tried"] if f"method.category={category}" in t["settings"]]
        if not mine:
            continue
        said = [f"{t['name']}: {points_of(protected(t))} given away, {percent(t['flows'], 0)} of trips" for t in mine]
        at = [100 * t["flows"] for t in mine], [100 * protected(t) for t in mine]
        series.append(points(text, colour, *at, said))
    if best := found["recommended"]:
        at = [100 * best["flows"]], [100 * protected(best)]
        series.append(points("recommended", charts.INK, *at, [f"recommended: {best['name']}"], "ring-open"))
    return chart("choice", Figure(series, x, y, 360))
