"""The difference between two predictors over the same test steps, with an interval.

Both predict the same steps under the same seeds, so differences are taken step by step. Steps of one person resemble
each other, so an interval comes from drawing persons again and again with replacement, and seeds with them (a bootstrap
over two crossed factors). Its ends are percentiles of the drawn means. All comparisons over the same steps share the
draws, so that a predictor with fewer hits never gets a higher end.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ghostpoi.audits.measures.accuracy import ROUNDING, rounded, step
from ghostpoi.data.checkins import Bools, Floats, Longs
from ghostpoi.randomness import Seed

DRAWS = 2000
MOST_CLUSTERS = 1000  # of test users; with more users, some share a cluster, which is as valid and bounds the memory
LEVEL = 0.95
RULE_OF_THREE = 3.0  # what never happened in n trials has a probability of up to 3 / n (95%)


@dataclass(frozen=True)
class Interval:
    """A signed difference of accuracies with the ends of its interval."""

    mean: float
    low: float
    high: float

    def outward(self, positions: int) -> "Interval":
        """Round as accuracies of this many positions are; the ends move outward, so that the interval still covers."""
        size = step(positions)
        low, high = np.floor(self.low / size + ROUNDING) * size, np.ceil(self.high / size - ROUNDING) * size
        return Interval(rounded([self.mean], positions)[0], round(float(low), 9), round(float(high), 9))

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True, eq=False)
class Steps:
    """The test steps by user, and how often each user and seed is drawn."""

    users: Longs  # (N,) the user of each test step
    seeds: int

    @cached_property
    def _cluster(self) -> Longs:
        _, number = np.unique(self.users, return_inverse=True)
        return number.astype(np.int64) % MOST_CLUSTERS

    @cached_property
    def _drawn(self) -> tuple[Floats, Floats]:
        """How often each cluster of users (D, C) and each seed (D, S) is drawn."""
        generator, clusters = Seed(0).generator("paired", self.seeds), int(self._cluster.max()) + 1
        people, seeds = (
            generator.multinomial(count, np.full(count, 1 / count), DRAWS).astype(np.float64)
            for count in (clusters, self.seeds)
        )
        return people, seeds

    def difference(self, one: Bools, two: Bools, level: float = LEVEL) -> Interval:
        """Return by how much `one` is right more often than `two`; both are (S, N)."""
        each = one.astype(np.float64) - two  # (S, N)
        people, seeds = self._drawn
        clusters = people.shape[1]
        sums = np.stack([np.bincount(self._cluster, row, clusters) for row in each], axis=1)  # (C, S)
        steps = people @ np.bincount(self._cluster, minlength=clusters)
        drawn = ((people @ sums) * seeds).sum(axis=1) / (self.seeds * np.maximum(steps, 1))
        tail, mean = (1 - level) / 2, float(each.mean())
        low, high = (float(end) for end in np.quantile(drawn, [tail, 1 - tail]))
        least = RULE_OF_THREE / each.shape[1]
        return Interval(mean, min(low, mean - least), max(high, mean + least))
