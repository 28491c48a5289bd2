"""Round the accuracies of an audit, so that no count of clean visits can be computed from them.

The number of test positions is public. An exact accuracy times this number is a count: for the popularity floor, the
clean visits to the most visited venue. One step covers at least five positions, less than the sampling error of most
accuracies. Everything that an audit concludes is computed from rounded values, so that a manifest, which holds nothing
else, leads to the same conclusions.
"""

import math
from collections.abc import Sequence

POSITIONS_PER_STEP = 5


def step(positions: int) -> float:
    """Return the step for shares of this many positions: 1, 2 or 5 times a power of ten."""
    least = POSITIONS_PER_STEP / max(1, positions)
    power = math.floor(math.log10(least))
    return next(size for size in (m * 10.0**power for m in (1, 2, 5, 10)) if size >= least * (1 - 1e-9))


def rounded(values: Sequence[float], positions: int) -> list[float]:
    """Round accuracies or shares to the step."""
    size = step(positions)
    return [round(round(value / size) * size, 9) for value in values]
