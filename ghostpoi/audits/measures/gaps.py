"""Protection and survival gaps, accuracy lost, and when two accuracies differ clearly.

Gaps are computed per seed, then averaged: the victims of one seed share data and release, so their noise cancels. A
difference is clear if its 95% interval (Student's t over the seeds) excludes 0 and, if the number of test positions is
known, it exceeds twice the binomial sampling error. With two seeds, twice the standard deviation replaces the interval;
with one seed, only the sampling error decides. Rounded accuracies must differ by more than a step of the rounding.

Studies are stricter: a difference must be at least PRACTICAL, and differences that answer one question together share
the level of 5% by Holm's correction.

Two predictors over the same test steps are compared step by step. Steps of one person resemble each other, so the
interval comes from drawing persons, and seeds with them, again and again with replacement (a bootstrap over two crossed
factors). All comparisons share the draws, so that a predictor with fewer hits never gets a higher end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypedDict

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.audits.measures.accuracy import ROUNDING, rounded, step
from ghostpoi.data.checkins import Bools, Floats, Longs
from ghostpoi.randomness import Seed

SAMPLING_ERRORS = 2.0
SIGNIFICANCE = 0.05  # of the test that calls a difference clear
DRAWS = 2000
MOST_CLUSTERS = 1000  # of test users; with more users, some share a cluster, which is as valid and bounds the memory
LEVEL = 0.95
RULE_OF_THREE = 3.0  # what never happened in n trials has a probability of up to 3 / n (95%)
PRACTICAL = 0.002  # the smallest difference of accuracies that a study calls clear
TWO_SEEDS = 2.0  # standard deviations that a difference of two seeds must exceed
POOLED = ("none", "bridge", "frequency")  # A1 to A3, which the paper's mean and worst gap pool


class Spread(TypedDict):
    """One measure over seeds."""

    mean: float
    std: float  # of a sample (n - 1); 0 for a single seed
    seeds: list[float]  # the value of every seed


class Gaps(TypedDict):
    """All gaps of one release. None: an adversary that the gap needs did not run."""

    prot: Spread | None  # clean - none
    surv: dict[str, Spread]  # adversary - none, for every adversary except none
    mean: Spread | None  # clean - mean over A1 to A3
    worst: Spread | None  # clean - max over A1 to A3
    worst_all: Spread | None  # clean - max over all that ran and over what they have without the release


@dataclass(frozen=True)
class Verdict:
    """A difference over seeds."""

    difference: Spread
    sampling_error: float | None = None  # standard error due to the size of the test sample; None: unknown
    step: float = 0.0  # of rounded accuracies
    least: float = 0.0  # the smallest difference that matters
    level: float = SIGNIFICANCE  # of the test; 0: not clear, whatever the numbers are

    @property
    def sign(self) -> int:
        """1 for clearly higher, -1 for clearly lower, 0 inside the spread."""
        mean, n, half = self.difference["mean"], len(self.difference["seeds"]), 0.0
        if not self.level or (n < 2 and self.sampling_error is None) or abs(mean) < self.least - ROUNDING:
            return 0
        if n > 1:  # of two seeds, the t interval is nine deviations wide and would call nothing clear
            quantile = float(scipy.special.stdtrit(n - 1, 1 - self.level / 2))
            deviations = quantile / float(np.sqrt(n)) if n > 2 else TWO_SEEDS
            half = deviations * self.difference["std"]
        clear = abs(mean) > max(half, SAMPLING_ERRORS * (self.sampling_error or 0.0)) + self.step + ROUNDING
        return int(np.sign(mean)) if clear else 0

    @property
    def p(self) -> float:
        """The two-sided p-value of Student's t test over the seeds; 1 for a single seed."""
        mean, std, n = abs(self.difference["mean"]), self.difference["std"], len(self.difference["seeds"])
        if n < 2 or mean <= ROUNDING:
            return 1.0
        return float(2 * scipy.special.stdtr(n - 1, -mean / (std / np.sqrt(n)))) if std else 0.0


def spread(values: Sequence[float]) -> Spread:
    """Return mean and standard deviation over seeds."""
    if not values:
        raise ValueError("a measure needs at least one seed")
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "std": std, "seeds": [float(v) for v in values]}


def gaps(
    clean: Sequence[float], adversaries: Mapping[str, Sequence[float]],
    controls: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> Gaps:  # fmt: skip
    """Return the gaps from the accuracy per seed of the clean victim and of every adversary's victim.

    A positive gap means that the release denies something; a positive survival gap, that the adversary wins some back.
    """
    if any(len(values) != len(clean) for values in adversaries.values()):
        raise ValueError("every adversary needs the same seeds as the clean victim")
    ceiling = np.asarray(clean, float)
    acc = {name: np.asarray(values, float) for name, values in adversaries.items()}
    none = acc.get("none")
    pooled = [acc[name] for name in POOLED if name in acc]
    complete, every = len(pooled) == len(POOLED), np.array([*acc.values(), *controls.values()], float)
    return {
        "prot": None if none is None else spread((ceiling - none).tolist()),
        "surv": {} if none is None else {a: spread((acc[a] - none).tolist()) for a in acc if a != "none"},
        "mean": spread((ceiling - np.mean(pooled, axis=0)).tolist()) if complete else None,
        "worst": spread((ceiling - np.max(pooled, axis=0)).tolist()) if complete else None,
        "worst_all": spread((ceiling - np.max(every, axis=0)).tolist()) if acc else None,
    }


def strongest(adversaries: Mapping[str, Sequence[float]]) -> str:
    """Return the adversary with the highest mean over seeds; ties go to the first."""
    return max(adversaries, key=lambda name: float(np.mean(adversaries[name])))


def against(
    one: Sequence[float] | None, two: Sequence[float] | None, positions: int | None = None, step: float = 0.0,
    least: float = 0.0,
) -> Verdict | None:  # fmt: skip
    """Compare one accuracy per seed with another; None if either is missing or the seeds do not match."""
    if one is None or two is None or len(one) != len(two):
        return None
    error = None
    if positions is not None:
        p, q = float(np.mean(one)), float(np.mean(two))
        error = float(np.sqrt((p * (1 - p) + q * (1 - q)) / max(1, positions)))
    return Verdict(spread([a - b for a, b in zip(one, two, strict=True)]), error, step, least)


def holm(family: Sequence[Verdict | None]) -> list[Verdict | None]:
    """Return the same differences, each with the level that Holm's correction leaves it among all of them.

    The smallest p-value must meet 5% divided by their number, the next 5% divided by one less, and so on. The first
    that fails ends it: it and all larger ones are not clear.
    """
    levels, fails = dict[int, float](), False
    known = sorted((verdict.p, place) for place, verdict in enumerate(family) if verdict is not None)
    for number, (p, place) in enumerate(known):
        level = SIGNIFICANCE / (len(known) - number)
        fails = fails or p > level
        levels[place] = 0.0 if fails else level
    return [verdict and replace(verdict, level=levels[place]) for place, verdict in enumerate(family)]


def differs(one: Sequence[float], two: Sequence[float], positions: int | None = None, step: float = 0.0) -> int:
    """Return 1 if `one` is clearly higher than `two`, -1 if clearly lower, 0 inside the spread."""
    found = against(one, two, positions, step)
    if found is None:
        raise ValueError("accuracies of the same seeds are needed")
    return found.sign


def accuracy_lost(clean: Sequence[float], victim: Sequence[float]) -> list[float]:
    """Return the share of the clean accuracy that a victim lacks, per seed."""
    return [(c - v) / c if c else 0.0 for c, v in zip(clean, victim, strict=True)]


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


def of_share(share: float, count: int) -> Interval:
    """Return a share of so many trials with its sampling error."""
    half = SAMPLING_ERRORS * float(np.sqrt(share * (1 - share) / count)) + RULE_OF_THREE / count
    return Interval(share, share - half, share + half)


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
