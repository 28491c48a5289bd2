"""The paper's figures from the cells of a study. Readable in grey: every series has its own marker, line and hatch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.files import replacing
from ghostpoi.study import paper
from ghostpoi.study.adaptive.figures import trade_off, worst_cases
from ghostpoi.study.cells import LEAK, Cells
from ghostpoi.study.table import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
INK = "#222222"
DAY_S = 86_400
STOPS = (5, 7)  # of the day on the map: at least so many venues, at most so many check-ins
# Okabe-Ito colours, told apart with any colour vision; markers and lines do the same without colour.
STYLES: dict[str, tuple[str, str, str]] = {
    "ghost": ("#0072B2", "o", "-"),
    "pgd": ("#D55E00", "s", "--"),
    "em": ("#009E73", "^", "-."),
    "ts-ue": ("#CC79A7", "D", ":"),
    "ghost-sym": ("#56B4E9", "v", "-."),
    "ghost-ef": ("#B8860B", "P", ":"),
    "random": (INK, "X", ":"),
}
SCORES = {
    "prot": ("Δprot", "#0072B2", "o", "-"),
    "mean": ("Δmean", "#D55E00", "s", "--"),
    "worst": ("Δworst", "#009E73", "^", "-."),
}
LEAK_STYLE = ("#777777", (0, (1, 1)))
RC: dict[Any, Any] = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "svg.hashsalt": "ghostpoi", "svg.fonttype": "none", "legend.frameon": False, "figure.dpi": 150,
}  # fmt: skip


def draw(cells: Cells, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """All figures of a study, as files named after what they show and the protocol."""
    if cells.study not in FIGURES:
        raise InputError(f"there are no figures for the study {cells.study!r}; there are for {', '.join(FIGURES)}, map")
    name, make = FIGURES[cells.study]
    with plt.rc_context(RC):
        return save(make(cells), folder, f"{name}-{cells.protocol}", formats)


def save(figure: "Figure", folder: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """The same bytes for the same figure: no date, no version inside."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind in formats:
        path = folder / f"{name}.{kind}"
        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
        with replacing(path) as out:
            figure.savefig(out, format=kind, bbox_inches="tight", metadata=metadata)
        paths.append(path)
    plt.close(figure)
    return paths


def pareto(cells: Cells) -> "Figure":
    """What a naive learner is denied against the most that A1 to A3 give back: filled ours, hollow the paper's."""
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    printed = paper.section("nyc", "main")
    for method, (colour, marker, _) in STYLES.items():
        row = cells.row(method)
        if "prot" in row and "worst" in row and (clean := cells.clean()):
            worst = spread([c - w for c, w in zip(clean, row["worst"]["seeds"], strict=True)])
            axes.errorbar(
                row["prot"]["mean"], worst["mean"], xerr=row["prot"]["std"], yerr=worst["std"], color=colour,
                marker=marker, markersize=8, linestyle="none", capsize=2, elinewidth=0.8, label=METHODS[method],
            )  # fmt: skip
        if method in printed:
            x = printed[method]["prot"][0]
            y = max(printed[method][a][0] for a in ("none", "bridge", "frequency"))
            axes.plot(x, y, marker=marker, markersize=8, color=colour, markerfacecolor="none", linestyle="none")
    leak = cells.leak_only()
    if leak:
        _leak_line(axes, leak)
    axes.plot([], [], marker="o", color=INK, markerfacecolor="none", linestyle="none", label="hollow: the paper's")
    axes.set_xlabel("protection gap Δprot (right is better)")
    axes.set_ylabel("most restored acc@1 over A1 to A3 (lower is better)")
    axes.set_title(f"Denied against restored, {_where(cells)}")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def convergence(cells: Cells) -> "Figure":
    """The three aggregated gaps over the number of outer rounds, with the spread over seeds, random as bands."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    rows = {rounds: cells.row(m) for m in cells.methods if (rounds := _rounds(m)) is not None}
    control = cells.row("random")
    hatch = {"prot": "///", "mean": "\\\\\\", "worst": "xx"}
    for key, (name, colour, marker, line) in SCORES.items():
        points = sorted((t, row[key]) for t, row in rows.items() if key in row)
        x = [t for t, _ in points]
        y, e = (np.array([p[k] for _, p in points]) for k in ("mean", "std"))
        axes.errorbar(x, y, yerr=e, color=colour, marker=marker, linestyle=line, capsize=3, label=name)
        if key in control:
            low, high = (control[key]["mean"] + sign * control[key]["std"] for sign in (-1, 1))
            axes.axhspan(low, high, facecolor="none", edgecolor=colour, hatch=hatch[key], alpha=0.35, linewidth=0.5)
    axes.axvline(5, color=INK, linewidth=0.8, linestyle="--")
    axes.text(5.1, 0.01, "default", transform=axes.get_xaxis_transform(), fontsize=8)
    if rows:
        axes.set_xticks(sorted(rows))
    axes.set_xlabel("outer rounds")
    axes.set_ylabel("gap in acc@1")
    axes.set_title(f"GHOST over outer rounds, {_where(cells)}\n(bars: spread over seeds; hatched: random ± spread)")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def leakage(cells: Cells) -> "Figure":
    """What A2 and A3 reach as more leaks, beside what the leak alone gives; survival gaps beside the paper's text."""
    figure, panels = plt.subplots(2, 2, figsize=(8.6, 6.0), sharex=True)
    ratios = sorted({r for _, _, r in cells.contests if r is not None})
    printed = paper.leak_section("nyc")
    for column, (adversary, name) in enumerate((("bridge", "A2 bridge"), ("frequency", "A3 frequency"))):
        top, below = panels[0][column], panels[1][column]
        for method in ("ghost", "pgd", "random"):
            colour, marker, line = STYLES[method]
            for axes, key in ((top, adversary), (below, f"surv_{adversary}")):
                points = [(r, row[key]) for r in ratios if key in (row := cells.row(method, r))]
                y, e = (np.array([p[k] for _, p in points]) for k in ("mean", "std"))
                axes.errorbar(
                    [r for r, _ in points], y, yerr=e, color=colour, marker=marker, linestyle=line, capsize=2,
                    label=METHODS[method],
                )  # fmt: skip
                told = [(float(r), row[method][key][0]) for r, row in printed.items() if key in row.get(method, {})]
                if told:
                    axes.plot(
                        *zip(*told, strict=True), marker=marker, color=colour, linestyle="none", markersize=9,
                        markerfacecolor="none", label=f"{METHODS[method]}, the paper's text",
                    )  # fmt: skip
        alone = [(r, spread(values)) for r in ratios if (values := cells.leak_only(r))]
        top.errorbar(
            [r for r, _ in alone], [s["mean"] for _, s in alone], yerr=[s["std"] for _, s in alone],
            color=LEAK_STYLE[0], linestyle=LEAK_STYLE[1], marker="*", markersize=8, label="leak-only",
        )  # fmt: skip
        top.set_title(name)
        below.axhline(0, color=INK, linewidth=0.8)
        below.set_xlabel("leak ratio")
    panels[0][0].set_ylabel("restored acc@1")
    panels[1][0].set_ylabel("survival gap")
    for axes in panels.flat:
        axes.set_xscale("log")
        axes.minorticks_off()
        if ratios:
            axes.set_xticks(ratios, [f"{r:.0%}" for r in ratios])
    entries = {text: h for axes in panels.flat for h, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="center left", bbox_to_anchor=(0.92, 0.5))
    figure.suptitle(f"As more leaks, {_where(cells)}")
    return figure


def day_map(clean_poi: Ints, vocabulary: Vocabulary, released: Mapping[str, Ints], at: slice) -> "Figure":
    """One day on the map, clean and as every method releases it. It shows clean data: for the publisher alone."""
    sides = {"clean": clean_poi} | dict(released)
    lat, lon = vocabulary.lat, vocabulary.lon
    shown = np.unique(np.concatenate([poi[at] for poi in sides.values()]))
    margin = 0.012
    near = (np.abs(lat - lat[shown].mean()) < np.ptp(lat[shown]) / 2 + margin) & (
        np.abs(lon - lon[shown].mean()) < np.ptp(lon[shown]) / 2 + margin
    )
    categories = {int(c): n for n, c in enumerate(dict.fromkeys(vocabulary.category[clean_poi[at]]))}
    shapes = "osD^vP*Xhp"
    with plt.rc_context(RC):
        figure, panels = plt.subplots(1, len(sides), figsize=(2.9 * len(sides), 3.3), sharex=True, sharey=True)
        for axes, (method, poi) in zip(panels, sides.items(), strict=True):
            path, clean = poi[at], clean_poi[at]
            axes.scatter(lon[near], lat[near], s=3, color="#BBBBBB", linewidths=0, rasterized=True)
            axes.plot(lon[path], lat[path], color=STYLES.get(method, (INK,))[0], linewidth=1.2, zorder=2)
            axes.scatter(
                lon[clean], lat[clean], s=90, facecolors="none", edgecolors="#888888", linewidths=0.9, zorder=3
            )
            for n, (p, q) in enumerate(zip(path, clean, strict=True), 1):
                kind = categories[int(vocabulary.category[q])]
                axes.scatter(
                    lon[p], lat[p], s=34, marker=shapes[kind % len(shapes)], color=f"C{kind}", edgecolors=INK,
                    linewidths=0.5, zorder=4,
                )  # fmt: skip
                axes.annotate(str(n), (lon[p], lat[p]), xytext=(4, 4), textcoords="offset points", fontsize=7, zorder=5)
            moved, rate = int((path != clean).sum()), float((poi != clean_poi).mean())
            title = f"{METHODS.get(method, method)}\n{moved} of {len(path)} moved here,\n{rate:.0%} in the whole city"
            axes.set_title("clean" if method == "clean" else title, fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(False)
            axes.set_aspect(1 / np.cos(np.radians(np.nanmean(lat[shown]))))
        figure.text(
            0.5, -0.02, "Rings: the clean venues. Marker and colour: the category. Numbers: the order of the visits.",
            ha="center",
        )  # fmt: skip
    return figure


def typical_day(sessions: Sessions, vocabulary: Vocabulary) -> slice:
    """Positions of one day with about six stops, as in the paper: of all such, the one of median extent."""
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


@dataclass(frozen=True)
class MapRequest:
    """Which city to draw: prepared data of the publisher's own, or a synthetic one, the only one fit to be shown."""

    data: Path | None = None
    methods: tuple[str, ...] = ("pgd", "ts-ue", "ghost", "random")
    users: int = 120
    pois: int = 350
    days: int = 60

    def draw(self, folder: Path, say: Callable[[str], None], formats: Sequence[str] = FORMATS) -> list[Path]:
        """Publish once per method and draw one day."""
        import tempfile

        import torch

        from ghostpoi.data import prepared as dataset_file
        from ghostpoi.models import trajectory_lm
        from ghostpoi.publish.protocols import publication
        from ghostpoi.publish.rounds import Task, publish
        from ghostpoi.randomness import Seed

        if self.data is not None:
            data = dataset_file.load(self.data)
        else:
            from ghostpoi.data.prepared import prepare_file
            from ghostpoi.data.synthetic_file import write_city

            with tempfile.TemporaryDirectory() as place:
                write_city(Path(place) / "city.txt", self.users, self.pois, self.days, 0)
                data = prepare_file(Path(place) / "city.txt")
        device, released = torch.device("cpu"), {}
        model = None
        for method in self.methods:
            settings = publication(method)
            if settings.method.needs_trajectory_lm and model is None:
                say("map: training the trajectory LM")
                with tempfile.TemporaryDirectory() as place:
                    model = trajectory_lm.load_or_train(
                        Path(place), data.train, len(data.vocabulary), settings.trajectory_lm, device, say
                    )
            say(f"map: releasing with {method}")
            task = Task(
                data.train, data.vocabulary, data.candidates, settings.method, settings.rounds, settings.speed,
                settings.surrogate, settings.training, model,
            )  # fmt: skip
            released[method] = publish(task, Seed(0), device).poi
        day = typical_day(data.train, data.vocabulary)
        return save(day_map(data.train.poi, data.vocabulary, released, day), folder, "map", formats)


FIGURES: dict[str, tuple[str, Callable[[Cells], "Figure"]]] = {
    "main": ("pareto", pareto),
    "rounds": ("convergence", convergence),
    "leak": ("leak", leakage),
    "adaptive": ("worst", worst_cases),
    "crowds": ("trade-off", trade_off),
}


def _rounds(method: str) -> int | None:
    name, *changes = method.split()
    if name != "ghost":
        return None
    values = [change.partition("=")[2] for change in changes if change.startswith("rounds.outer=")]
    return int(values[0]) if values else 5


def _leak_line(axes: "Axes", values: Sequence[float]) -> None:
    alone = spread(values)
    axes.axhline(alone["mean"], color=LEAK_STYLE[0], linestyle=LEAK_STYLE[1], label=f"leak-only at {LEAK:.0%}")
    axes.axhspan(
        alone["mean"] - alone["std"], alone["mean"] + alone["std"], facecolor="none", edgecolor=LEAK_STYLE[0],
        hatch="///", alpha=0.3, linewidth=0,
    )  # fmt: skip


def _where(cells: Cells) -> str:
    place = paper.CITIES[cells.city] if cells.city else cells.data or "nothing measured"
    return f"{place}, protocol {cells.protocol}"
