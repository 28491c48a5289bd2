"""A6: popularity by deconvolution. And what each user released how often: the arrays that A6 to A9 and A11 work on.

The model of a visit: user u goes to p with probability theta_u(p), and the publisher releases q with probability
K_u(q|p). theta_u varies around the popularity of all users, K_u around the channel K: widely if the publisher repeats
what it once drew for (u, p), not at all if every visit is drawn independently.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Seed
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.draw.channel import Channel

TINY = 1e-300  # keeps a posterior defined where the model calls all options impossible
RARE = 1e-6  # share of the prior spread over all POIs, so that none is impossible
BLOCK = 1 << 15  # options of users that are inferred together
INDEPENDENT = np.inf  # the concentration of K_u if every visit is drawn independently


@dataclass(frozen=True)
class Visits:
    """The positions that did not leak, grouped by (user, released POI), and the options A(q) of each group."""

    channel: Channel
    count: Floats  # (G,) positions of each group
    group: Longs  # (N - leaked,) the group of each position
    first: Longs  # (G,) the first option of each group
    owner: Ints  # (T,) the group of each option
    entry: Ints  # (T,) the option's entry of the channel
    clean: Ints  # (T,) the option's POI, ascending within a group
    habit: Ints  # (T,) the option's habit: a pair (user, clean POI)
    leaked: Ints  # (T,) leaked visits with the same user, clean and released POI
    habits: Ints  # (3, H) the user, ascending, the clean POI and the leaked visits of each habit
    popular: Floats  # (P+1,) leaked visits of each POI

    @staticmethod
    def of(evidence: Evidence, channel: Channel, symbol: Longs) -> "Visits":
        """Group the evidence; `symbol` (N,) is what was released, in the channel's numbers."""
        user, at, rows, channel = evidence.user, evidence.positions, evidence.rows, channel.covering(symbol)
        wide = channel.symbols
        groups, group, count = np.unique(user[~at] * wide + symbol[~at], return_inverse=True, return_counts=True)
        users, symbols = np.divmod(groups, wide)
        first = np.append(0, np.cumsum(np.diff(channel.start)[symbols]))
        known = user[at] * rows + evidence.clean[at]
        order = np.argsort(known, kind="stable")
        known, shown = known[order], symbol[at][order]
        options, habits, total = np.empty((5, first[-1]), np.int32), [np.empty((3, 0), np.int32)], 0
        runs = runs_of(users, first) or [(0, 0)]
        ends = [0, *np.searchsorted(known, users[[a for a, _ in runs[1:]]] * rows).tolist(), len(known)]
        for (a, b), (low, high) in zip(runs, pairwise(ends), strict=True):  # sorting all at once needs much memory
            owner, entry = channel.behind(symbols[a:b])
            clean, size = channel.clean[entry], len(owner)
            found, place = np.unique(np.append(users[a:b][owner] * rows + clean, known[low:high]), return_inverse=True)
            own, pairs = place[:size] * wide + symbols[a:b][owner], np.sort(place[size:] * wide + shown[low:high])
            leaked = np.searchsorted(pairs, own, "right") - np.searchsorted(pairs, own)
            options[:, first[a] : first[b]] = owner + a, entry, clean, place[:size] + total, leaked
            visits = np.bincount(place[size:], minlength=len(found))
            habits.append(np.array((found // rows, found % rows, visits), np.int32))
            total += len(found)
        popular = np.bincount(evidence.clean[at], minlength=rows).astype(float)
        owners, entries, venues, numbers, leaks = options
        of_habit = np.concatenate(habits, 1)
        return Visits(
            channel, count.astype(float), group, first[:-1], owners, entries, venues, numbers, leaks, of_habit, popular
        )

    def popularity(self, iterations: int, hint: Floats | float = 0.0) -> Floats:
        """Estimate by EM how popular each POI is, a distribution (P+1,); `hint` counts like leaked visits."""
        symbol = self.channel.released[self.entry[self.first]]  # (G,)
        released = sum_by(symbol, self.count, self.channel.symbols)
        return estimate_popularity(self.channel, released, self.popular + hint, iterations)

    def posterior(self, prior: Floats, power: float, iterations: int, concentration: float = INDEPENDENT) -> Floats:
        """Return the probability of each option given all other visits of its user, (T,); it sums to 1 per group.

        Collapsed variational Bayes of order zero: each visit is explained by the expected counts of all others and by
        `prior` (T,), in visits. The n visits of a group count as n ** power: the same answer twice is not twice
        the evidence, because draws depend on their context and the true channel differs from the assumed one.
        `concentration` is that of K_u. It takes effect halfway: from the start it would hold on to first guesses.
        Users do not depend on each other, so some at a time are inferred in arrays that fit into the processor's cache.
        """
        share = np.zeros(len(self.clean))
        for block in self.blocks():
            share[block.options] = self._posterior(prior[block.options], power, iterations, concentration, block)
        return share

    def _posterior(
        self, prior: Floats, power: float, iterations: int, concentration: float, block: "Block"
    ) -> Floats:  # fmt: skip
        """Return the probabilities of the options of some users."""
        channel, leaked = self.channel.probability[self.entry[block.options]], self.leaked[block.options]  # (t,)
        habit, habit_leaked = block.habit, self.habits[2, block.habits].astype(float)
        weight = (self.count[block.groups] ** power)[block.owner]
        share, visits = np.zeros(len(habit)), habit_leaked
        for n in range(iterations):
            others = visits[habit] - share  # (t,) the user's other visits to the option
            likelihood = channel
            if np.isfinite(concentration) and 2 * n >= iterations:
                same = leaked + share * (weight - 1)  # those among them with the same released POI
                likelihood = (concentration * channel + same) / (concentration + others)
            share = normalise((prior + others) * likelihood, block.first, block.owner)
            visits = habit_leaked + sum_by(habit, share * weight, len(habit_leaked))
        return share

    def blocks(self) -> Iterator["Block"]:
        """Yield the options of some users at a time, all users once."""
        user, every = self.habits[0], np.append(self.first, len(self.clean))
        for a, b in runs_of(user[self.habit[self.first]], every):
            options, known = slice(int(every[a]), int(every[b])), user[self.habit[every[[a, b - 1]]]]
            low, high = int(np.searchsorted(user, known[0])), int(np.searchsorted(user, known[1], "right"))
            owner, habit = (of[options].astype(np.int64) for of in (self.owner, self.habit))
            yield Block(options, slice(a, b), slice(low, high), every[a:b] - options.start, owner - a, habit - low)

    def expected(self, share: Floats) -> Floats:
        """Return the visits to each POI under a posterior, leaked ones included, (P+1,)."""
        return self.popular + sum_by(self.clean, share * self.count[self.owner], len(self.popular))

    def argmax(self, share: Floats) -> Ints:
        """Return the likeliest option of each position that did not leak, (N - leaked,); ties: the smaller POI."""
        return likeliest(share, self.clean, self.owner, self.first)[self.group]


class Block(NamedTuple):
    """The options of some users, with numbers of their own."""

    options: slice
    groups: slice
    habits: slice
    first: Longs  # (g,) the first option of each group
    owner: Longs  # (t,) the group of each option
    habit: Longs  # (t,)


def runs_of(user: Ints | Longs, first: Longs) -> list[tuple[int, int]]:
    """Return runs of groups, those of some users each, with about BLOCK options.

    `user` (G,) is ascending; `first` (G+1,) is the first option of each group, and the end.
    """
    begins = np.append(np.flatnonzero(np.diff(user, prepend=-1)), len(user))  # the first group of each user
    cut = np.flatnonzero(np.diff(first[begins] // BLOCK, prepend=-1))  # users whose options begin a stretch of BLOCK
    return list(pairwise(np.unique(np.append(begins[cut], len(user))).tolist()))


def estimate_popularity(channel: Channel, released: Floats, leaked: Floats, iterations: int) -> Floats:
    """Estimate by EM the clean distribution (P+1,) behind released counts (Q,), given leaked counts (P+1,)."""
    rows = len(leaked)
    prior = np.ones(rows)
    for _ in range(iterations):
        weight = prior[channel.clean] * channel.probability
        total = sum_by(channel.released, weight, len(released))[channel.released]
        share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
        prior = sum_by(channel.clean, share * released[channel.released], rows) + leaked
        prior = prior / max(prior.sum(), TINY)
    return (1 - RARE) * prior + RARE / rows


def popularity_hint(evidence: Evidence) -> Floats:
    """Return visits that released counts suggest if the rule favours popular venues, one per POI on average, (P+1,)."""
    # EM cannot distinguish POIs with equal channels; how often each of them was released can.
    rule = evidence.rule
    if not rule.popularity_power:
        return np.zeros(evidence.rows)
    count = np.bincount(evidence.released.poi, minlength=evidence.rows) + 1.0
    weight: Floats = np.power(count, rule.popularity_power, dtype=np.float64)
    total = sum_by(rule.channel.released, weight[rule.channel.clean], evidence.rows)  # of A(q)
    size = np.bincount(rule.channel.released, minlength=evidence.rows)
    return np.divide(size * weight, total, out=np.zeros(evidence.rows), where=total > 0)


def sum_by(key: Ints | Longs, weight: Floats, size: int = 0) -> Floats:
    """Sum the weights of each key, from key 0 on."""
    return np.bincount(key, weight, size).astype(np.float64, copy=False)


def normalise(weight: Floats, first: Longs, owner: Ints | Longs) -> Floats:
    """Scale the weights of options to sum to 1 per owner, whose options start at `first`."""
    weight = np.maximum(weight, TINY)
    return weight / np.add.reduceat(weight, first)[owner] if len(weight) else weight


def likeliest(share: Floats, clean: Ints | Longs, owner: Ints | Longs, first: Longs) -> Ints:
    """Return the option with the largest share of each owner; ties go to the first."""
    if not len(share):
        return np.zeros(0, np.int32)
    best = np.flatnonzero(share == np.maximum.reduceat(share, first)[owner])
    _, one = np.unique(owner[best], return_index=True)
    return clean[best[one]].astype(np.int32)


@dataclass(frozen=True)
class Deconvolution(Adversary):
    """A6 knows the public rule alone. EM finds the visits to each p that explain best how often each q was released."""

    number = 6
    title = "popularity deconvolution"
    holds = "the public rule; no leak"
    does = "estimates venue popularity by expectation maximisation and takes the likeliest clean venue"
    uses_leak = False
    needs_seed = False

    iterations: int = 60

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        poi = evidence.released.poi
        channel = evidence.rule.channel.covering(poi)
        released = np.bincount(poi, minlength=evidence.rows).astype(float)
        prior = estimate_popularity(channel, released, popularity_hint(evidence), self.iterations)
        weight = prior[channel.clean] * channel.probability  # (M,)
        order = np.lexsort((channel.clean, -weight, channel.released))
        return channel.clean[order[channel.start[poi]]].astype(np.int32)
