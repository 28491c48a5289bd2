"""Predict the clean venues of rows from what a release shows and from the values of columns, on rows not learned from.

A release shows the user, the time and roughly the place: which few dozen neighbours a venue is one of. The predictor
weighs how common each of them is, how often it is visited at such times and after such pauses, and how often it, its
category and its block have the value of each column. Tables are learned on most rows, weights on some others; the
share of venues that are named is counted on the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ghostpoi.columns.related import ERRORS
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs, Venues

AREA, BLOCK = 48, 6  # venues
FIT, TEST = 1500, 4500  # rows, at most; at least as many are learned from
PRIOR = 5.0  # rows that a table counts as much as the table behind it
DENSE = 1 << 24  # cells of a table of counts; larger ones are searched
STEPS = 5  # of Newton's method
RIDGE = 2.0
VENUE_GAIN = 0.02  # largest allowed gain in the share of venues that are predicted
FEWEST = 40  # predictions; fewer prove nothing


def areas(venues: Venues, most: int, shown: Longs | None = None) -> Longs:
    """Number areas of up to `most` neighbouring venues, (V+1,). `shown`: what venues of an area have in common."""
    xy = np.stack([venues.lat, venues.lon * np.cos(np.radians(np.nanmedian(venues.lat)))], axis=1)
    xy, found = np.nan_to_num(xy), np.zeros(len(xy), np.int64)
    label = np.zeros(len(xy), np.int64) if shown is None else shown
    order = 1 + np.argsort(label[1:], kind="stable")
    todo = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    count = 0
    while todo:
        part = todo.pop()
        if len(part) <= most:
            count += 1
            found[part] = count
            continue
        axis, half = np.ptp(xy[part], axis=0).argmax(), len(part) // 2
        by_axis = np.argpartition(xy[part, axis], half)
        todo += [part[by_axis[:half]], part[by_axis[half:]]]
    return found


@dataclass(frozen=True)
class Tables:
    """How often each group of rows has each value, in the rows that are learned from."""

    group: Longs  # (n,)
    code: Longs  # (n,)

    @cached_property
    def _values(self) -> int:
        return int(self.code.max(initial=0)) + 1

    @cached_property
    def _size(self) -> int:
        return int(self.group.max(initial=0)) + 1

    @cached_property
    def _total(self) -> Longs:
        return np.bincount(self.group, minlength=self._size)

    @cached_property
    def _counts(self) -> tuple[Longs, Longs] | Longs:
        key = self.group * self._values + self.code
        if self._size * self._values <= DENSE:
            return np.bincount(key, minlength=self._size * self._values)
        return np.unique(key, return_counts=True)

    def share(self, group: Longs, code: Longs, behind: Floats) -> Floats:
        """Return the share of the rows of some groups that have these values, drawn towards what is `behind` it."""
        known = (group < self._size) & (code < self._values)
        key = np.where(known, group * self._values + code, 0)
        if isinstance(self._counts, tuple):
            keys, number = self._counts
            at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            count = np.where(keys[at] == key, number[at], 0)
        else:
            count = self._counts[key]
        total = self._total[np.where(known, group, 0)]
        return (np.where(known, count, 0) + PRIOR * behind) / (np.where(known, total, 0) + PRIOR)


class Predictor:
    """Predicts the venues of some rows, (n,), 0 where there is none, from what is `known` of them: codes, (n,) each."""

    def __init__(self, venues: Venues, venue: Ints, known: Sequence[Longs] = (), shown: Longs | None = None) -> None:
        self.venue = venue.astype(np.int64)
        self.category = venues.category.astype(np.int64) + 1
        area, self._block = areas(venues, AREA, shown), areas(venues, BLOCK, shown)
        real = np.random.default_rng(0).permutation(np.flatnonzero(venue))
        fit, test = min(FIT, len(real) // 5), min(TEST, 3 * len(real) // 10)
        self._some, self._learn = real[: fit + test], real[fit + test :]
        self._fit = slice(0, fit)
        self._test = slice(fit, fit + test)
        members = _members(area)
        self._choice = members[area[self.venue[self._some]]]  # (m, C)
        self._true = (self._choice == self.venue[self._some][:, None]).argmax(axis=1)
        common = np.bincount(self.venue[self._learn], minlength=len(area))[self._choice]
        features = [np.log(common + 0.5), *(one for code in known for one in self.features(code)[:2])]
        self._base = np.where(self._choice > 0, self._scores(features, self._fitted(features)), -np.inf)
        self.named = self.named_with([])

    def features(self, code: Longs) -> list[Floats]:
        """Return how much likelier each venue, its category and its block make the values of a column, (m, C) each."""
        learn, venue, here = self._learn, self._choice, code[self._some][:, None]
        count = np.bincount(code[learn], minlength=int(code.max(initial=0)) + 1)
        share = ((count + 1) / (count.sum() + len(count)))[here]

        def of(group: Longs, behind: Floats) -> Floats:
            return Tables(group[self.venue[learn]], code[learn]).share(group[venue], here, behind)

        by_category = of(self.category, share)
        by_venue = of(np.arange(len(self.category)), by_category)
        return [np.log(one / share) for one in (by_venue, by_category, of(self._block, share))]

    def named_with(self, features: list[Floats]) -> Bools:
        """Mark the test rows whose venue is the likeliest."""
        if not len(self._true):
            return np.zeros(0, bool)
        every = [np.where(self._choice > 0, self._base, 0), *features] if features else [self._base]
        weights = self._fitted(every) if features else np.ones(1)
        score = np.where(self._choice > 0, self._scores(every, weights), -np.inf)[self._test]
        return score.argmax(axis=1) == self._true[self._test]

    @staticmethod
    def _scores(features: list[Floats], weights: Floats) -> Floats:
        total = np.zeros_like(features[0])
        for weight, one in zip(weights, features, strict=True):
            total += weight * one
        return total

    def _fitted(self, features: list[Floats]) -> Floats:
        """Return the weights that make the venues of the fitted rows likeliest; the first one begins at 1."""
        value = np.stack([one[self._fit] for one in features], axis=2)  # (f, C, K)
        absent, true = self._choice[self._fit] == 0, self._true[self._fit]
        start = np.eye(1, len(features))[0]
        weights: Floats = start
        rows = np.arange(len(value))
        for _ in range(STEPS):
            score = np.where(absent, -np.inf, value @ weights)
            chance = np.exp(score - score.max(axis=1, keepdims=True, initial=-1e9))
            chance /= chance.sum(axis=1, keepdims=True)
            mean = np.einsum("fc,fck->fk", chance, value)
            slope = (value[rows, true] - mean).sum(axis=0) - RIDGE * (weights - start)
            flat = value.reshape(-1, len(weights))
            bend = (flat * chance.reshape(-1, 1)).T @ flat - mean.T @ mean + RIDGE * np.eye(len(weights))
            weights = weights + np.clip(np.linalg.solve(bend, slope), -2, 2)
        return weights


def clear_gain(named: Bools, control: Bools, least: float = VENUE_GAIN) -> float:
    """Return how many more rows are named than by a control; 0 if not clearly more than `least`."""
    if len(named) < FEWEST:
        return 0.0
    gain = float(named.mean() - control.mean())
    error = float(np.sqrt((named != control).mean() / len(named)))
    return gain if gain > max(least, ERRORS * error) else 0.0


def _members(area: Longs) -> Longs:
    """The venues of each area, (A+1, C), 0 where there are no more."""
    order = np.argsort(area[1:], kind="stable") + 1
    size = np.bincount(area[1:])
    out = np.zeros((len(size), int(size.max(initial=1))), np.int64)
    begin = np.cumsum(size) - size
    out[area[order], np.arange(len(order)) - begin[area[order]]] = order
    return out
