"""The worst case of every method between its controls, and what a lower worst case costs."""

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY, RANDOM
from ghostpoi.study import labels
from ghostpoi.study.figures.style import DOTTED, GREY, INK, finish, legend, points
from ghostpoi.study.paper import contents
from ghostpoi.study.results import MEASURES, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHADE, CONTROL_SHADE = "#8FB8DE", "#DDDDDD"
MARKERS = "osD^vP*X<>dp"
TARGET = contents("prior")["target"]["worst"]
MARKS = {"o": "A1: as released", "x": "leak-mixed, no adversary", "^": "strongest without a leak"}
PANELS = ("flows", "naturalness")


def worst_cases(results: Results) -> "Figure":
    """Draw one bar per method, its worst case, with what a victim gets as released, mixed and without a leak."""
    found = {m: worst for m in results.methods if (worst := results.worst(m))}
    methods = sorted(found, key=lambda m: -found[m].accuracy["mean"])
    figure, axes = plt.subplots(figsize=(7.4, 1.6 + 0.42 * max(1, len(methods))))
    for at, method in enumerate(methods):
        accuracy, control = found[method].accuracy, method == RANDOM
        axes.barh(
            at, accuracy["mean"], xerr=accuracy["std"], height=0.62, color=CONTROL_SHADE if control else SHADE,
            edgecolor=INK, hatch="///" if control else "", linewidth=0.8, capsize=3, zorder=2,
        )  # fmt: skip
        text = f"{labels.number(found[method].adversary)} {accuracy['mean']:.3f}"
        beside = (accuracy["mean"] + accuracy["std"], at)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}  # keeps the vertical lines off the number
        axes.annotate(text, beside, (6, 0), textcoords="offset points", va="center", fontsize=8, zorder=4, bbox=box)
        leakless = results.without_leak(method)
        marks = {"o": results.value(method, "none"), "x": results.value(method, LEAK_MIXED)}
        for marker, value in (marks | {"^": leakless.accuracy if leakless else None}).items():
            if value:
                axes.plot(value["mean"], at, marker, color=INK, markerfacecolor="white", zorder=5)
    for marker, text in MARKS.items():
        axes.plot([], [], marker, color=INK, markerfacecolor="white", linestyle="none", label=text)
    for key, style in ((LEAK_ONLY, DOTTED), (CLEAN, "-")):
        if value := results.value(CLEAN, key):
            axes.axvline(value["mean"], color=GREY, linestyle=style, linewidth=1.6, zorder=3, label=key)
    axes.axvline(TARGET, color=INK, linestyle="--", linewidth=1.2, zorder=3, label="target")
    axes.set_yticks(range(len(methods)), [labels.method(m, results.study) for m in methods])
    axes.set_xlim(left=0)
    axes.grid(axis="y", visible=False)
    text = f"acc@1 of the victim after the strongest of {_numbers(results)} (lower is better)"
    return finish(
        figure, axes, text, "", f"Worst case of every method\n{labels.place(results)}, leak {results.leak:.0%}"
    )


def trade_off(ablation: Results, others: Results | None = None) -> "Figure":
    """Draw the worst case against flows and naturalness: the ablation filled, other methods hollow.

    All points show the worst over the same adversaries: those of the ablation.
    """
    figure, panels = plt.subplots(1, len(PANELS), figsize=(9.2, 4.0), sharey=True)
    sides = [(ablation, n, m) for n, m in enumerate(ablation.methods)]
    if others:
        sides += [(others, n, m) for n, m in enumerate(m for m in others.methods if m not in ablation.methods)]
    for axes, key in zip(panels, PANELS, strict=True):
        for results, n, method in sides:
            found, cost = results.worst(method, among=ablation.study.adversaries), results.value(method, key)
            if found and cost:
                colour, marker = (INK, "h") if method == RANDOM else (f"C{n % 10}", MARKERS[n % len(MARKERS)])
                points(
                    axes, [cost["mean"]], [found.accuracy], xerr=cost["std"], color=colour, marker=marker, markersize=8,
                    markerfacecolor=colour if results is ablation and method != RANDOM else "white", linestyle="none",
                    elinewidth=0.8, label=labels.method(method, results.study),
                )  # fmt: skip
        if alone := ablation.value(CLEAN, LEAK_ONLY):
            axes.axhline(alone["mean"], color=GREY, linestyle=DOTTED, label=LEAK_ONLY)
        axes.axhline(TARGET, color=INK, linestyle="--", linewidth=1.2, label="target")
        if level := ablation.value(RANDOM, key):
            axes.axvline(level["mean"], color=INK, linestyle=":", linewidth=0.9, label="as good as random")
        axes.set_xlabel(f"{MEASURES[key].heading} (right is better)")
    panels[0].set_ylabel(f"worst acc@1 over {_numbers(ablation)}\n(lower is better)")
    legend(figure, list(panels), 0.91)
    title = f"What a lower worst case costs (filled: the ablation; hollow: others)\n{labels.place(ablation)}"
    figure.suptitle(title, y=1.02)
    return figure


def _numbers(results: Results) -> str:
    """Write the adversaries of a plan in short: A1 to A10 if none is left out, else each number."""
    names = [labels.number(a) for a in results.study.adversaries]
    whole = names == [f"A{n + 1}" for n in range(len(names))]
    return f"{names[0]} to {names[-1]}" if whole and len(names) > 1 else ", ".join(names)
