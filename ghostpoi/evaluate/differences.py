"""When two accuracies differ clearly, and how much accuracy a victim lost.

A difference is computed per seed. It is clear if its 95% interval (Student's t over the seeds) excludes 0 and, if the
number of test positions is known, it exceeds twice the binomial sampling error. With one seed, only the sampling error
decides. Any other difference lies inside the spread and is never called a win.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ghostpoi.evaluate.measures.gaps import Spread, spread

ROUNDING = 1e-9  # differences up to this come from rounding
SAMPLING_ERRORS = 2.0


@dataclass(frozen=True)
class Verdict:
    """A difference over seeds."""

    difference: Spread
    sampling_error: float | None = None  # standard error due to the size of the test sample; None: unknown

    @property
    def sign(self) -> int:
        """1 for clearly higher, -1 for clearly lower, 0 inside the spread."""
        mean, n, half = self.difference["mean"], len(self.difference["seeds"]), 0.0
        if n < 2 and self.sampling_error is None:
            return 0
        if n > 1:
            half = float(stdtrit(n - 1, 0.975)) * self.difference["std"] / float(np.sqrt(n))
        clear = abs(mean) > max(half, SAMPLING_ERRORS * (self.sampling_error or 0.0)) + ROUNDING
        return int(np.sign(mean)) if clear else 0


def against(one: Sequence[float] | None, two: Sequence[float] | None, positions: int | None = None) -> Verdict | None:
    """Compare one accuracy per seed with another; None if either is missing or the seeds do not match."""
    if one is None or two is None or len(one) != len(two):
        return None
    error = None
    if positions is not None:
        p, q = float(np.mean(one)), float(np.mean(two))
        error = float(np.sqrt((p * (1 - p) + q * (1 - q)) / max(1, positions)))
    return Verdict(spread([a - b for a, b in zip(one, two, strict=True)]), error)


def differs(one: Sequence[float], two: Sequence[float], positions: int | None = None) -> int:
    """Return 1 if `one` is clearly higher than `two`, -1 if clearly lower, 0 inside the spread."""
    found = against(one, two, positions)
    if found is None:
        raise ValueError("accuracies of the same seeds are needed")
    return found.sign


def accuracy_lost(clean: Sequence[float], victim: Sequence[float]) -> list[float]:
    """Return the share of the clean accuracy that a victim lacks, per seed."""
    return [(c - v) / c if c else 0.0 for c, v in zip(clean, victim, strict=True)]
