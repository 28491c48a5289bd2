"""The paper's figures: Pareto plot, convergence over rounds, survival by leak ratio."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

from ghostpoi.evaluate.controls import CLEAN, LEAK_ONLY, RANDOM
from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.study import labels, paper
from ghostpoi.study.figures.style import DOTTED, GREY, INK, METHODS, finish, legend, points
from ghostpoi.study.plan import Variant
from ghostpoi.study.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAP_STYLES = {
    "prot": ("#0072B2", "o", "-", "///"),
    "mean": ("#D55E00", "s", "--", "\\\\\\"),
    "worst": ("#009E73", "^", "-.", "xx"),
}


def pareto(results: Results) -> "Figure":
    """Draw what a naive learner is denied against the most that A1 to A3 restore: ours filled, the paper's hollow."""
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    printed, clean = paper.section("nyc", "main"), results.series(CLEAN, CLEAN)
    for method, (colour, marker, _) in METHODS.items():
        denied, worst = results.value(method, "prot"), results.series(method, "worst")
        if denied and worst and clean:
            restored = spread([c - w for c, w in zip(clean, worst, strict=True)])
            points(
                axes, [denied["mean"]], [restored], xerr=denied["std"], color=colour, marker=marker, markersize=8,
                linestyle="none", elinewidth=0.8, label=labels.method(method),
            )  # fmt: skip
        if method in printed:
            most = max(printed[method][a][0] for a in ("none", "bridge", "frequency"))
            axes.plot(printed[method]["prot"][0], most, marker, markersize=8, color=colour, markerfacecolor="none")
    if alone := results.value(CLEAN, LEAK_ONLY):
        axes.axhline(alone["mean"], color=GREY, linestyle=DOTTED, label=f"leak-only at {results.leak:.0%}")
        low, high = alone["mean"] - alone["std"], alone["mean"] + alone["std"]
        axes.axhspan(low, high, facecolor="none", edgecolor=GREY, hatch="///", alpha=0.3, linewidth=0)
    axes.plot([], [], "o", color=INK, markerfacecolor="none", label="hollow: printed in the paper")
    text = "protection gap Δprot (right is better)", "most restored acc@1 over A1 to A3 (lower is better)"
    return finish(figure, axes, *text, f"Protection against recovery, {labels.place(results)}")


def convergence(results: Results) -> "Figure":
    """Draw the aggregated gaps over the number of outer rounds, with the random control as bands."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    rounds = {m: Variant(m).settings(results.protocol).rounds.outer for m in results.methods if m != RANDOM}
    for key, (colour, marker, line, hatch) in GAP_STYLES.items():
        found = sorted((rounds[m], m) for m in rounds if results.value(m, key))
        values = [value for _, m in found if (value := results.value(m, key))]
        style = {"color": colour, "marker": marker, "linestyle": line, "capsize": 3}
        points(axes, [t for t, _ in found], values, label=labels.heading(key), **style)
        if control := results.value(RANDOM, key):
            low, high = control["mean"] - control["std"], control["mean"] + control["std"]
            axes.axhspan(low, high, facecolor="none", edgecolor=colour, hatch=hatch, alpha=0.35, linewidth=0.5)
    default = Variant("ghost").settings(results.protocol).rounds.outer
    axes.axvline(default, color=INK, linewidth=0.8, linestyle="--")
    axes.text(default + 0.1, 0.01, "default", transform=axes.get_xaxis_transform(), fontsize=8)
    axes.set_xticks(sorted(rounds.values()))
    title = f"GHOST over outer rounds, {labels.place(results)}\n(bars: spread over seeds; hatched: random ± spread)"
    return finish(figure, axes, "outer rounds", "gap in acc@1", title)


def leakage(results: Results) -> "Figure":
    """Draw what A2 and A3 reach as more leaks, beside what the leaked sessions give on their own."""
    figure, panels = plt.subplots(2, 2, figsize=(8.6, 6.0), sharex=True)
    ratios, printed = sorted(results.study.leak), paper.leak_section("nyc")

    def curve(axes: "Axes", method: str, key: str, **style: Any) -> None:
        found = [(r, value) for r in ratios if (value := results.value(method, key, r))]
        points(axes, [r for r, _ in found], [value for _, value in found], **style)

    for (top, below), adversary in zip(panels.T, ("bridge", "frequency"), strict=True):
        for method in ("ghost", "pgd", RANDOM):
            colour, marker, line = METHODS[method]
            style, name = {"color": colour, "marker": marker}, labels.method(method)
            for axes, key in ((top, adversary), (below, f"surv_{adversary}")):
                curve(axes, method, key, linestyle=line, label=name, **style)
                told = {float(r): rows[method][key][0] for r, rows in printed.items() if key in rows.get(method, {})}
                if told:
                    hollow = {"linestyle": "none", "markersize": 9, "markerfacecolor": "none"}
                    axes.plot(list(told), list(told.values()), label=f"{name}, the paper's text", **style, **hollow)
        curve(top, CLEAN, LEAK_ONLY, color=GREY, linestyle=DOTTED, marker="*", markersize=8, capsize=0, label=LEAK_ONLY)
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
