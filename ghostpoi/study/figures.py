"""Figures of a study, as files named after what they show and the protocol, and the map of one day.

They stay readable in grey, since every series has its own marker, line and hatch.
"""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import CLEAN, LEAK_ONLY, RANDOM
from ghostpoi.audits.measures.gaps import Spread, spread
from ghostpoi.data import prepared
from ghostpoi.data.checkins import Floats, Ints
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.study import labels, paper
from ghostpoi.study.plan import Variant
from ghostpoi.study.results import BEST_FLOOR, NO_LEAK, Results, city_of

FORMATS = ("png", "svg")
INK, GREY = "#222222", "#777777"
DOTTED = (0, (1, 1))
DARK = b"@media (prefers-color-scheme: dark) {svg {filter: invert(1) hue-rotate(180deg)}}"  # hues stay what they are
STYLE = paper.contents("style")
METHODS: dict[str, tuple[str, str, str]] = STYLE["methods"]  # colour, marker, line
FLOOR_LINE: dict[str, Any] = {"color": "#009E73", "linestyle": "-.", "linewidth": 1.2, "zorder": 3}
MOST = 10  # releases in one chart of the frontier
DEFAULT, CROWDS = "crowd", ("crowd", "crowd-halves")  # the method whose points are largest; those drawn alike
HARDLY = 0.25  # of the largest Δprot of a figure: what protects less is drawn outside its scale
REACHES = (9.0, 15.0, 22.0)  # from a point to the middle of its label, in the unit of the points
DIRECTIONS = np.deg2rad(np.arange(22.5, 360, 22.5))


def draw(results: Results, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw the figure of a study."""
    study = results.study.name
    if study not in FIGURES:
        raise InputError(f"there are no figures for the study {study!r}; there are for {', '.join(FIGURES)}, map")
    name, make = FIGURES[study]
    with plt.rc_context(STYLE["rc"]):
        return save(make(results), folder, file_name(name, results.protocol, results.data), formats)


def file_name(name: str, protocol: str, data: str) -> str:
    """Return the name of a figure without its ending; NYC is not named."""
    return f"{name}-{protocol}" + ("" if city_of(data) == "nyc" else f"-{data}")


def pareto(results: Results) -> Figure:
    """Draw what a naive learner is denied against the most that A1 to A3 restore: ours filled, the paper's hollow.

    A method that denies next to nothing would squeeze all others together: it stands in the corner with its values.
    """
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    printed = paper.section(results.city, "main") if results.city else {}
    found = {method: gaps for method in METHODS if (gaps := _denied_and_restored(results, method))}
    least = HARDLY * max((denied["mean"] for denied, _ in found.values()), default=0)
    corner = 0.95
    for method, (colour, marker, _) in METHODS.items():
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 8, "linestyle": "none"}
        if method in found:
            denied, restored = found[method]
            outside = denied["mean"] < least
            name, at = labels.method(method), ([], []) if outside else ([denied["mean"]], [restored])
            points(axes, *at, xerr=[] if outside else denied["std"], elinewidth=0.8, label=name, **style)
            if outside:
                values = f"Δprot {labels.show(denied)}, most restored {labels.show(restored)}"
                _in_corner(axes, corner, f"{name} is far outside: {values}", style)
                corner -= 0.08
        if method in printed:
            most = max(printed[method][a][0] for a in ("none", "bridge", "frequency"))
            axes.plot(printed[method]["prot"][0], most, markerfacecolor="none", **style)
    if corner < 0.95:
        axes.margins(y=0.15)
    if alone := results.value(CLEAN, LEAK_ONLY):
        axes.axhline(alone["mean"], color=GREY, linestyle=DOTTED, label=f"leak-only at {results.leak:.0%}")
        low, high = alone["mean"] - alone["std"], alone["mean"] + alone["std"]
        axes.axhspan(low, high, facecolor="none", edgecolor=GREY, hatch="///", alpha=0.3, linewidth=0)
    floor_line(axes.axhline, results)
    if printed:
        axes.plot([], [], "o", color=INK, markerfacecolor="none", label="hollow: printed in the paper")
    text = "protection gap Δprot (right is better)", "most restored acc@1 over A1 to A3 (lower is better)"
    return finish(figure, axes, *text, f"Protection against recovery, {labels.place(results)}")


def _in_corner(axes: Axes, height: float, text: str, style: dict[str, Any]) -> None:
    """Draw a point whose place is far up and to the left, with an arrow that points there."""
    axes.plot(0.04, height, transform=axes.transAxes, **style)
    arrow = {"arrowstyle": "->", "color": style["color"]}
    axes.annotate("", (-0.01, height + 0.06), (0.04, height), "axes fraction", arrowprops=arrow)
    axes.text(0.07, height, text, transform=axes.transAxes, fontsize=8, va="center")


def _denied_and_restored(results: Results, method: str) -> tuple[Spread, Spread] | None:
    """Δprot, and the highest accuracy under A1 to A3; None if either was not measured."""
    denied, worst, clean = results.value(method, "prot"), results.series(method, "worst"), results.series(CLEAN, CLEAN)
    if not (denied and worst and clean):
        return None
    return denied, spread([c - w for c, w in zip(clean, worst, strict=True)])


def convergence(results: Results) -> Figure:
    """Draw the aggregated gaps over the number of outer rounds, with the random control as bands."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    rounds = {m: Variant(m).settings(results.protocol).rounds.outer for m in results.methods if m != RANDOM}
    clean, floor = (results.value(CLEAN, key) for key in (CLEAN, BEST_FLOOR))
    for key, (colour, marker, line, hatch) in STYLE["gaps"].items():
        found = sorted((rounds[m], m) for m in rounds if results.value(m, key))
        values = [value for _, m in found if (value := results.value(m, key))]
        style = {"color": colour, "marker": marker, "linestyle": line, "capsize": 3}
        points(axes, [t for t, _ in found], values, label=labels.heading(key), **style)
        if control := results.value(RANDOM, key):
            low, high = control["mean"] - control["std"], control["mean"] + control["std"]
            axes.axhspan(low, high, facecolor="none", edgecolor=colour, hatch=hatch, alpha=0.35, linewidth=0.5)
    if floor and clean:
        axes.axhline(clean["mean"] - floor["mean"], label=BEST_FLOOR, **FLOOR_LINE)
    default = Variant("ghost").settings(results.protocol).rounds.outer
    axes.axvline(default, color=INK, linewidth=0.8, linestyle="--")
    axes.text(default + 0.1, 0.01, "default", transform=axes.get_xaxis_transform(), fontsize=8)
    axes.set_xticks(sorted(rounds.values()))
    title = f"GHOST over outer rounds, {labels.place(results)}\n(bars: spread over seeds; hatched: random ± spread)"
    return finish(figure, axes, "outer rounds", "gap in acc@1", title)


def leakage(results: Results) -> Figure:
    """Draw what A2 and A3 reach as more leaks, and what the leaked sessions give on their own."""
    figure, panels = plt.subplots(2, 2, figsize=(8.6, 6.0), sharex=True)
    ratios, printed = sorted(results.study.leak), paper.leak_section(results.city) if results.city else {}

    def curve(axes: Axes, method: str, key: str, **style: Any) -> None:
        found = [(r, value) for r in ratios if (value := results.value(method, key, r))]
        points(axes, [r for r, _ in found], [value for _, value in found], **style)

    for (top, below), adversary in zip(panels.T, ("bridge", "frequency"), strict=True):
        for method in ("ghost", "pgd", RANDOM):
            colour, marker, line = METHODS[method]
            style, name = {"color": colour, "marker": marker}, labels.method(method)
            for axes, key in ((top, adversary), (below, f"surv_{adversary}")):
                curve(axes, method, key, linestyle=line, label=name, **style)
                stated = {float(r): rows[method][key][0] for r, rows in printed.items() if key in rows.get(method, {})}
                if stated:
                    hollow = {"linestyle": "none", "markersize": 9, "markerfacecolor": "none"}
                    axes.plot(list(stated), list(stated.values()), label=f"{name}, the paper's text", **style, **hollow)
        curve(top, CLEAN, LEAK_ONLY, color=GREY, linestyle=DOTTED, marker="*", markersize=8, capsize=0, label=LEAK_ONLY)
        floor_line(top.axhline, results)
        top.set_title(labels.heading(adversary))
        below.axhline(0, color=INK, linewidth=0.8)
        below.set_xlabel("leak ratio")
    for axes, text in zip(panels[:, 0], ("restored acc@1", "survival gap"), strict=True):
        axes.set_ylabel(text)
    for axes in panels.flat:
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xticks(ratios, [f"{r:.0%}" for r in ratios])
    legend(figure, list(panels.flat), 0.92)
    figure.suptitle(f"Accuracy and survival gap by leak ratio, {labels.place(results)}")
    return figure


def frontier(results: Results) -> Figure:
    """Draw the worst case against flows, without a leak and with one: one number per release with kept users.

    No point lies below what an adversary has without the release. A release that has not faced all its adversaries yet
    is left out, and so are all but the MOST with the fewest settings.
    """
    results = results.measured
    figure, panels = plt.subplots(1, 2, figsize=(8.0, 4.4), sharey=True)
    figure.subplots_adjust(wspace=0.06, right=0.72)
    kept = [m for m in results.methods if not Variant(m).rotated]
    few = sorted(kept, key=lambda m: len(Variant(m).changes))[:MOST]
    shown = [m for m in kept if m in few]
    numbered: list[list[tuple[float, float, str]]] = [[], []]
    for axes, leak, found in zip(panels, (NO_LEAK, results.leak), numbered, strict=True):
        for number, method in enumerate(shown, 1):
            worst, flows = results.worst_case(method, leak), results.value(method, "flows")
            if not (worst and flows):
                continue
            colour, marker = STYLE["families"][_family(method)]
            points(
                axes, [flows["mean"]], [worst.accuracy], xerr=flows["std"], color=colour, marker=marker,
                markersize=9 if method == DEFAULT else 6, linestyle="none", elinewidth=0.8, ecolor=(colour, 0.4),
                capsize=0, zorder=3 if method == DEFAULT else 2.5, label=f"{number}  {labels.method(method)}",
            )  # fmt: skip
            found.append((flows["mean"], worst.accuracy["mean"], str(number)))
        if clean := results.value(CLEAN, CLEAN):
            axes.axhline(clean["mean"], color=GREY, linestyle="-", linewidth=1.2, zorder=1, label=CLEAN)
        if control := results.control(leak):
            axes.axhline(control.accuracy["mean"], label="best control", **FLOOR_LINE)
        axes.set_title(f"{leak:.0%} leak" if leak else "no leak")
        axes.margins(0.12)
    for axes, found in zip(panels, numbered, strict=True):  # once the panels have their common scale
        axes.autoscale_view()
        _label(axes, found)
    panels[0].set_ylabel("worst case, acc@1 (lower is better)")
    figure.supxlabel("common part of flows (right is better)", x=0.42, fontsize="medium")
    legend(figure, list(panels), 0.73)
    figure.suptitle(f"Protection against usefulness, {labels.place(results)}")
    return figure


def _label(axes: Axes, found: Sequence[tuple[float, float, str]]) -> None:
    """Write a text next to each point (x, y, text) of a finished panel; a line joins those further apart."""
    points_per_pixel = 72 / axes.figure.dpi
    at = points_per_pixel * axes.transData.transform(np.array([one[:2] for one in found]).reshape(-1, 2))
    low, high = points_per_pixel * axes.bbox.get_points()
    for (x, y, text), offset in zip(found, places(at, low, high) - at, strict=True):
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
        axes.annotate(
            text, (x, y), tuple(offset), textcoords="offset points", fontsize=8, color=INK, ha="center", va="center",
            arrowprops=line if np.hypot(*offset) > 1.2 * REACHES[0] else None,
        )  # fmt: skip


def places(points: Floats, low: Floats, high: Floats, size: Sequence[float] = (11.0, 9.0)) -> Floats:
    """Return the middle of a label next to each of the points, (N, 2), inside a box.

    Labels are placed one after the other, each where it covers the fewest points and labels, as near as possible.
    """
    directions = np.column_stack([np.cos(DIRECTIONS), np.sin(DIRECTIONS)])
    around = np.concatenate([reach * directions for reach in REACHES])
    room, margin = np.asarray(size), np.asarray(size) / 2
    chosen = np.empty((0, 2))
    for point in points:
        at = point + around
        outside = ((at < low + margin) | (at > high - margin)).any(1)
        labels = (np.abs(at[:, None] - chosen) < room).all(2).sum(1)
        covered = (np.abs(at[:, None] - points) < 0.8 * room).all(2).sum(1)
        cost = 10.0 * outside + 4.0 * labels + 2.0 * covered + np.repeat(np.arange(len(REACHES)), len(directions))
        chosen = np.vstack([chosen, at[cost.argmin()]])
    return chosen


def _family(method: str) -> str:
    if method.split()[0] in CROWDS:
        return Variant(method).settings("strong").method.keeps_category
    return RANDOM if method == RANDOM else "paper" if method.split()[0] in METHODS else "other"


def floor_line(draw: Callable[..., Any], results: Results) -> None:
    """Draw the accuracy of the best floor across a panel, if it was measured."""
    if floor := results.value(CLEAN, BEST_FLOOR):
        draw(floor["mean"], label=BEST_FLOOR, **FLOOR_LINE)


def save(figure: Figure, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure without date or version: the same figure gives the same bytes. An SVG suits dark pages too."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in formats]
    for path in paths:
        vector = path.suffix == ".svg"
        metadata: dict[str, Any] = {"Date": None} if vector else {"Software": None}
        figure.savefig(made := BytesIO(), format=path.suffix[1:], bbox_inches="tight", metadata=metadata,
                       transparent=vector)  # fmt: skip
        with replacing(path) as out:
            out.write(made.getvalue().replace(b"</style>", DARK + b"</style>", 1) if vector else made.getvalue())
    plt.close(figure)
    return paths


def points(axes: Axes, x: Sequence[float], values: Sequence[Spread], **style: Any) -> None:
    """Draw values over x with bars for their spread over seeds."""
    y, e = ([value[part] for value in values] for part in ("mean", "std"))
    axes.errorbar(x, y, yerr=e, **({"capsize": 2} | style))


def finish(figure: Figure, axes: Axes, x: str, y: str, title: str) -> Figure:
    """Name the axes of a single panel and put its legend next to it."""
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def legend(figure: Figure, panels: Sequence[Axes], left: float) -> None:
    """Draw one legend for several panels, each entry once."""
    entries = {text: h for axes in panels for h, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="center left", bbox_to_anchor=(left, 0.5))


FIGURES: dict[str, tuple[str, Callable[..., Figure]]] = {
    "main": ("pareto", pareto),
    "rounds": ("convergence", convergence),
    "leak": ("leak", leakage),
    "rivals": ("frontier", frontier),
}


DAY_S = 86_400
STOPS = (5, 7)  # of the day that is drawn: at least so many venues, at most so many check-ins
MARGIN = 0.012  # degrees around the day
SHAPES = "osD^vP*Xhp"
SHOWN = ("random", "pgd", "em", "ts-ue-calibrated", "ghost", "ghost-ef", "crowd")
ACROSS = 4  # panels in a row
CITY = (120, 350, 60, 0)  # users, venues, days and seed of the synthetic city


def draw_map(
    folder: Path, say: Callable[[str], None], data: Path | None = None, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Release a city once per method and draw one day: prepared data, or a synthetic city, the one fit to publish."""
    import torch

    from ghostpoi.study import prepare_city  # needs polars
    from ghostpoi.study.run import Releases

    city = prepared.load(data) if data else prepare_city(*CITY)
    train, v = city.train, city.vocabulary
    with TemporaryDirectory() as place:
        releases = Releases(city, "strong", torch.device("cpu"), Cache(Path(place)), say)
        released = {method: releases.published(method, 0).poi for method in SHOWN}
    with plt.rc_context(STYLE["rc"]):
        return save(day_map(train.poi, v, released, typical_day(train, v)), folder, "map", formats)


def day_map(clean_poi: Ints, vocabulary: Vocabulary, released: Mapping[str, Ints], at: slice) -> Figure:
    """Draw one panel for the clean day and one per release."""
    sides, clean, lat, lon = {CLEAN: clean_poi} | dict(released), clean_poi[at], vocabulary.lat, vocabulary.lon
    shown = np.unique(np.concatenate([poi[at] for poi in sides.values()]))
    near = np.ones(len(lat), bool)
    for axis in (lat, lon):
        near &= np.abs(axis - axis[shown].mean()) < np.ptp(axis[shown]) / 2 + MARGIN
    categories = {int(c): n for n, c in enumerate(dict.fromkeys(vocabulary.category[clean]))}
    across = min(len(sides), ACROSS)
    down = -(-len(sides) // across)
    figure, grid = plt.subplots(down, across, figsize=(2.9 * across, 3.5 * down), sharex=True, sharey=True)
    panels = grid.ravel()
    for axes in panels[len(sides) :]:
        axes.remove()
    ring = {"s": 90, "facecolors": "none", "edgecolors": "#888888", "linewidths": 0.9}
    for axes, (method, poi) in zip(panels, sides.items(), strict=False):
        path = poi[at]
        axes.scatter(lon[near], lat[near], s=3, color="#BBBBBB", linewidths=0, rasterized=True)
        axes.plot(lon[path], lat[path], color=METHODS.get(method, (INK,))[0], linewidth=1.2, zorder=2)
        axes.scatter(lon[clean], lat[clean], zorder=3, **ring)
        for n, (p, q) in enumerate(zip(path, clean, strict=True), 1):
            kind = categories[int(vocabulary.category[q])]
            style = {"marker": SHAPES[kind % len(SHAPES)], "color": f"C{kind}", "edgecolors": INK}
            axes.scatter(lon[p], lat[p], s=34, linewidths=0.5, zorder=4, **style)
            axes.annotate(str(n), (lon[p], lat[p]), xytext=(4, 4), textcoords="offset points", fontsize=7, zorder=5)
        moved, rate = int((path != clean).sum()), float((poi != clean_poi).mean())
        text = f"{labels.method(method)}\n{moved} of {len(path)} moved here,\n{rate:.0%} in the whole city"
        axes.set_title(CLEAN if method == CLEAN else text, fontsize=9)
        axes.set(xticks=[], yticks=[], aspect=1 / np.cos(np.radians(np.nanmean(lat[shown]))))
        axes.grid(False)
    caption = "Rings: clean venues. Marker and colour: category. Numbers: order of the visits."
    figure.text(0.5, 0.04, caption, ha="center")
    return figure


def typical_day(sessions: Sessions, vocabulary: Vocabulary) -> slice:
    """Find a day with about six stops, as in the paper: the one of median extent."""
    found: list[tuple[float, int, int]] = []
    for first, end in pairwise(sessions.start.tolist()):
        day = sessions.time[first:end] - sessions.time[first] <= DAY_S
        last = first + min(int(day.sum()), STOPS[1])
        poi = sessions.poi[first:last]
        if len(np.unique(poi)) >= STOPS[0]:
            found.append((float(np.ptp(vocabulary.lat[poi]) + np.ptp(vocabulary.lon[poi])), first, last))
    if not found:
        raise InputError(f"no day of {STOPS[0]} different venues to draw; use a larger city")
    _, first, last = sorted(found)[len(found) // 2]
    return slice(first, last)
