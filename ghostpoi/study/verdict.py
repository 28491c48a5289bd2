"""A difference between two figures, and what may be said of it.

It is taken seed by seed and called clear only if its 95% interval (Student's t over the seeds) leaves out 0; anything
else is inside the spread, and is never called a win.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ghostpoi.evaluate.measures.gaps import Spread, spread
from ghostpoi.study.cells import Series

INSIDE = "inside the spread"


@dataclass(frozen=True)
class Verdict:
    """A difference over seeds, and what may be said of it."""

    difference: Spread

    @property
    def clear(self) -> bool:
        n, std = len(self.difference["seeds"]), self.difference["std"]
        if n < 2:
            return False
        half = float(stdtrit(n - 1, 0.975)) * std / float(np.sqrt(n))
        return abs(self.difference["mean"]) > half + 1e-9  # not for what rounding makes of equal figures

    @property
    def word(self) -> str:
        if not self.clear:
            return INSIDE
        return "lower" if self.difference["mean"] < 0 else "higher"

    @property
    def text(self) -> str:
        d = self.difference
        return f"{d['mean']:+.4f} ± {d['std']:.4f}, {self.word}"


def against(one: Series | None, two: Series | None) -> Verdict | None:
    """One series minus the other."""
    if one is None or two is None or len(one) != len(two):
        return None
    return Verdict(spread([a - b for a, b in zip(one, two, strict=True)]))
