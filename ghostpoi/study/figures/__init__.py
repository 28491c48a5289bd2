"""Figures of a study, as files named after what they show and the protocol."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

from ghostpoi.errors import InputError
from ghostpoi.study.figures import adaptive, reproduction
from ghostpoi.study.figures.style import FORMATS, RC, save
from ghostpoi.study.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, tuple[str, Callable[..., "Figure"]]] = {
    "main": ("pareto", reproduction.pareto),
    "rounds": ("convergence", reproduction.convergence),
    "leak": ("leak", reproduction.leakage),
    "adaptive": ("worst", adaptive.worst_cases),
    "crowds": ("trade-off", adaptive.trade_off),
}


def draw(*found: Results, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw the figure of a study; a second study's results stand beside the first where the figure has a place."""
    study = found[0].study.name
    if study not in FIGURES:
        raise InputError(f"there are no figures for the study {study!r}; there are for {', '.join(FIGURES)}, map")
    name, make = FIGURES[study]
    with plt.rc_context(RC):
        return save(make(*found), folder, f"{name}-{found[0].protocol}", formats)
