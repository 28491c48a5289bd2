"""The style of all figures: readable in grey, since every series has its own marker, line and hatch."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from ghostpoi.evaluate.measures.gaps import Spread
from ghostpoi.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
INK, GREY = "#222222", "#777777"
DOTTED = (0, (1, 1))
# Okabe-Ito colours, which any colour vision tells apart, with a marker and a line each.
METHODS: dict[str, tuple[str, str, str]] = {
    "ghost": ("#0072B2", "o", "-"),
    "pgd": ("#D55E00", "s", "--"),
    "em": ("#009E73", "^", "-."),
    "ts-ue": ("#CC79A7", "D", ":"),
    "ghost-sym": ("#56B4E9", "v", "-."),
    "ghost-ef": ("#B8860B", "P", ":"),
    "random": (INK, "X", ":"),
}
RC: dict[Any, Any] = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "svg.hashsalt": "ghostpoi", "svg.fonttype": "none", "legend.frameon": False, "figure.dpi": 150,
}  # fmt: skip


def save(figure: "Figure", folder: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure without date or version: the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in formats]
    for path in paths:
        metadata: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        with replacing(path) as out:
            figure.savefig(out, format=path.suffix[1:], bbox_inches="tight", metadata=metadata)
    plt.close(figure)
    return paths


def points(axes: "Axes", x: Sequence[float], values: Sequence[Spread], **style: Any) -> None:
    """Draw values over x with bars for their spread over seeds."""
    y, e = ([value[part] for value in values] for part in ("mean", "std"))
    axes.errorbar(x, y, yerr=e, **({"capsize": 2} | style))


def finish(figure: "Figure", axes: "Axes", x: str, y: str, title: str) -> "Figure":
    """Name the axes of a single panel and put its legend beside it."""
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def legend(figure: "Figure", panels: Sequence["Axes"], left: float) -> None:
    """Draw one legend for several panels, each entry once."""
    entries = {text: h for axes in panels for h, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="center left", bbox_to_anchor=(left, 0.5))
