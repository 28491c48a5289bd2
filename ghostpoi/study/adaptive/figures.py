"""Two figures: the worst case of every method between its controls, and what a lower worst case costs."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.study.adaptive import outside
from ghostpoi.study.adaptive.tables import place
from ghostpoi.study.adaptive.worst import COSTS, comparable, measured, worst
from ghostpoi.study.cells import ADAPTIVE, LEAK, LEAKLESS, Cells, Series
from ghostpoi.study.table import CONTROL, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SHADE, CONTROL_SHADE = "#222222", "#8FB8DE", "#DDDDDD"
MARKERS = "osD^vP*X<>dp"
PANELS = ("flows", "naturalness")


def worst_cases(cells: Cells) -> "Figure":
    """A bar per method, lowest first: its worst case, beside what a victim gets as released and without a leak."""
    found = {m: w for m in comparable(cells) if (w := worst(cells, m))}
    methods = sorted(found, key=lambda m: -found[m].accuracy["mean"])
    figure, axes = plt.subplots(figsize=(7.4, 1.6 + 0.42 * max(1, len(methods))))
    for at, method in enumerate(methods):
        accuracy = found[method].accuracy
        control = method == CONTROL
        axes.barh(
            at, accuracy["mean"], xerr=accuracy["std"], height=0.62, color=CONTROL_SHADE if control else SHADE,
            edgecolor=INK, hatch="///" if control else "", linewidth=0.8, capsize=3, zorder=2,
        )  # fmt: skip
        text = f"{found[method].name} {accuracy['mean']:.3f}"
        beside = (accuracy["mean"] + accuracy["std"], at)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}  # a line behind would cross the figure out
        axes.annotate(text, beside, (6, 0), textcoords="offset points", va="center", fontsize=8, zorder=4, bbox=box)
        for only, marker in ((("none",), "o"), (LEAKLESS, "^")):
            point = worst(cells, method, among=only)
            if point:
                axes.plot(point.accuracy["mean"], at, marker, color=INK, markerfacecolor="white", zorder=5)
        mixed = cells.series(method, "leak-mixed")
        if mixed:
            axes.plot(spread(mixed)["mean"], at, "x", color=INK, zorder=5)
    axes.plot([], [], "o", color=INK, markerfacecolor="white", label="A1: as released")
    axes.plot([], [], "x", color=INK, linestyle="none", label="leak-mixed, no adversary")
    axes.plot([], [], "^", color=INK, markerfacecolor="white", label="strongest without any leak")
    _line(axes, cells.leak_only(), (0, (1, 1)), f"leak-only at {LEAK:.0%}")
    _line(axes, cells.clean(), "-", "clean")
    axes.axvline(outside.target("worst"), color=INK, linestyle="--", linewidth=1.2, zorder=3, label="target, at most")
    axes.set_yticks(range(len(methods)), [label(m) for m in methods])
    axes.set_xlim(left=0)
    axes.set_xlabel(f"acc@1 of the victim after the strongest of {_numbers(measured(cells))} (lower is better)")
    axes.set_title(f"Worst case of every method\n{place(cells)}")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def trade_off(ablation: Cells, methods: Cells | None = None) -> "Figure":
    """The worst case against flows and naturalness: filled the ablation, hollow all other methods.

    All points show the worst over the same adversaries: those that the ablation was measured against.
    """
    figure, panels = plt.subplots(1, len(PANELS), figsize=(9.2, 4.0), sharey=True)
    among = measured(ablation)
    sides = [(ablation, n, m, True) for n, m in enumerate(comparable(ablation))]
    others = [m for m in methods.methods if m not in ablation.methods] if methods else []
    sides += [(methods, n, m, False) for n, m in enumerate(others)] if methods else []
    for cells, number, method, filled in sides:
        found = worst(cells, method, among=among)
        if found is None or any(not cells.series(method, a) for a in among):
            continue
        for axes, key in zip(panels, PANELS, strict=True):
            values = COSTS[key].get(cells, method)
            if not values:
                continue
            control = method == CONTROL
            colour, marker = (INK, "h") if control else (f"C{number % 10}", MARKERS[number % len(MARKERS)])
            axes.errorbar(
                spread(values)["mean"], found.accuracy["mean"], xerr=spread(values)["std"],
                yerr=found.accuracy["std"], marker=marker, color=colour, markersize=8,
                markerfacecolor=colour if filled and not control else "white", linestyle="none", capsize=2,
                elinewidth=0.8, label=label(method),
            )  # fmt: skip
    alone = ablation.leak_only()
    for axes, key in zip(panels, PANELS, strict=True):
        if alone:
            axes.axhline(
                spread(alone)["mean"], color="#777777", linestyle=(0, (1, 1)), label=f"leak-only at {LEAK:.0%}"
            )
        axes.axhline(outside.target("worst"), color=INK, linestyle="--", linewidth=1.2, label="target, at most")
        level = COSTS[key].get(ablation, CONTROL)
        if level:
            axes.axvline(spread(level)["mean"], color=INK, linestyle=":", linewidth=0.9, label="as good as random")
        axes.set_xlabel(f"{COSTS[key].heading} (right is better)")
    panels[0].set_ylabel(f"worst acc@1 over {_numbers(among)}\n(lower is better)")
    entries = {t: h for axes in panels for h, t in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="center left", bbox_to_anchor=(0.91, 0.5))
    figure.suptitle(f"What a lower worst case costs (filled: the ablation; hollow: others)\n{place(ablation)}", y=1.02)
    return figure


def _line(axes: "Axes", values: Series | None, style: str | tuple[int, tuple[int, int]], text: str) -> None:
    if values:
        axes.axvline(spread(values)["mean"], color="#777777", linestyle=style, linewidth=1.6, zorder=3, label=text)


def _numbers(adversaries: Collection[str]) -> str:
    """A1 to A10 in short: all of them, or each by its number."""
    names = [ADAPTIVE[a] for a in adversaries]
    whole = len(names) == len(ADAPTIVE)
    return f"{names[0]} to {names[-1]}" if whole else ", ".join(names) or "no adversary"
