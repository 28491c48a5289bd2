"""Draw how GHOST works on one visit of a synthetic city: its candidates, their scores, and rounds of refitting.

`python docs/loop_figure.py` writes docs/figures/loop.png.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ghostpoi.audits.cache import Cache
from ghostpoi.data.checkins import Floats, Ints
from ghostpoi.draw.methods.ghost import Ghost
from ghostpoi.draw.publication import Task
from ghostpoi.draw.scoring import Position
from ghostpoi.draw.table import publish
from ghostpoi.randomness import Seed
from ghostpoi.study import prepare_city
from ghostpoi.study.figures import CITY, INK, METHODS, STYLE, save, typical_day
from ghostpoi.study.run import Releases

FOLDER = Path(__file__).parent / "figures"
STOP = 2  # of the drawn day: the visit whose candidates are shown, counted from 0
SHOWN = (1, 2, 5)  # rounds
COLOUR, GREY = METHODS["ghost"][0], "#BBBBBB"


@dataclass(frozen=True)
class Round:
    """What one round makes of the visit."""

    candidates: Ints  # (K,)
    adv: Floats  # (K,)
    mani: Floats  # (K,)
    chance: Floats  # (K,)
    chosen: int  # a column


class Watched(Ghost):
    """GHOST that keeps the scores of one position."""

    at: ClassVar[int]
    seen: ClassVar[list[Round]] = []  # by round

    def choose(self, position: Position, uniform: torch.Tensor) -> torch.Tensor:
        column = super().choose(position, uniform)
        for row in torch.nonzero(position.index == self.at).ravel().tolist():
            real = (position.candidates[row] > 0) & position.feasible[row]
            adv, mani = (score[row][real].double().numpy() for score in (position.adv(), position.mani()))
            score = (self.alpha * adv + self.beta * mani) / self.tau
            weight = np.exp(score - score.max())
            place = int(real[: int(column[row])].sum())
            self.seen.append(
                Round(position.candidates[row][real].numpy().astype(np.int32), adv, mani, weight / weight.sum(), place)
            )
        return column


def loop(lat: Floats, lon: Floats, day: Ints, rounds: list[Round]) -> Figure:
    """Draw the candidates on the map, then their scores in some rounds, with what happens between them."""
    figure, panels = plt.subplots(1, 1 + len(SHOWN), figsize=(12.4, 3.5), width_ratios=[1.15] + [1] * len(SHOWN))
    figure.subplots_adjust(wspace=0.6)
    draw_candidates(panels[0], lat, lon, day, rounds[-1])
    every = [np.concatenate([getattr(one, name) for one in rounds]) for name in ("mani", "adv")]
    ranges = [(v.min() - 0.2 * np.ptp(v), v.max() + 0.2 * np.ptp(v)) for v in every]
    for axes, number in zip(panels[1:], SHOWN, strict=True):
        draw_scores(axes, rounds[number - 1], ranges)
        axes.set_title(f"round {number}", fontsize=10, pad=14)
    texts = [
        "score the\ncandidates",
        *("refit the\nsurrogate" if b == a + 1 else "three more\nrounds" for a, b in pairwise(SHOWN)),
    ]
    for left, right, text in zip(panels[:-1], panels[1:], texts, strict=True):
        middle = (left.get_position().x1 + right.get_position().x0) / 2 - 0.018
        figure.text(middle, 0.60, text, ha="center", va="bottom", fontsize=8.5)
        figure.text(middle, 0.50, "\N{RIGHTWARDS ARROW}", ha="center", va="center", fontsize=20)
    caption = (
        "Misleading: the surrogate's loss on the clean next venue. Natural: log-probability under the trajectory LM.\n"
        "Area: probability of the draw. Ring: the venue drawn in this round; the last one is released."
    )
    figure.text(0.5, -0.14, caption, ha="center")
    return figure


def draw_candidates(axes: Axes, lat: Floats, lon: Floats, day: Ints, last: Round) -> None:
    """Draw the day, and the candidates of one of its visits."""
    anchor, sets = day[STOP], last.candidates
    axes.plot(lon[day], lat[day], color=GREY, linewidth=1, zorder=1)
    axes.scatter(lon[day], lat[day], s=14, color=GREY, zorder=2)
    axes.scatter(lon[sets], lat[sets], s=26, color=COLOUR, edgecolors=INK, linewidths=0.5, zorder=3)
    axes.scatter(lon[anchor], lat[anchor], s=60, marker="X", color=INK, zorder=4)
    axes.set(xticks=[], yticks=[], aspect=1 / np.cos(np.radians(float(np.mean(lat[day])))))
    axes.grid(False)
    axes.set_title("a visit (cross), the day (grey)\nand its candidates", fontsize=10)


def draw_scores(axes: Axes, one: Round, ranges: list[tuple[float, float]]) -> None:
    """Draw each candidate by its two scores."""
    axes.scatter(one.mani, one.adv, s=12 + 500 * one.chance, color=COLOUR, alpha=0.55, linewidths=0)
    ring = {"s": 60 + 500 * one.chance[one.chosen], "facecolors": "none", "edgecolors": INK, "linewidths": 1.3}
    axes.scatter(one.mani[one.chosen], one.adv[one.chosen], **ring)
    axes.set(xlim=ranges[0], ylim=ranges[1], xlabel="natural")
    axes.set_ylabel("misleading", rotation=0, ha="left", va="bottom")
    axes.yaxis.set_label_coords(-0.2, 1.0)


def main() -> None:
    """Protect the city once and draw one of its visits."""
    city = prepare_city(*CITY)
    day = typical_day(city.train, city.vocabulary)
    with TemporaryDirectory() as place:
        releases = Releases(city, "strong", torch.device("cpu"), Cache(Path(place)), print)
        settings = releases.settings("ghost")
        Watched.at = day.start + STOP
        lm = releases.trajectory_lm(settings.trajectory_lm)
        task = Task(
            replace(settings, method=Watched()), city.train, city.vocabulary, releases("ghost").rule.candidates, lm
        )
        publish(task, Seed(0), torch.device("cpu"))
    with plt.rc_context(STYLE["rc"]):
        print(
            *save(
                loop(city.vocabulary.lat, city.vocabulary.lon, city.train.poi[day], Watched.seen),
                FOLDER,
                "loop",
                ("png",),
            )
        )


if __name__ == "__main__":
    main()
