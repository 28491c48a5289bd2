"""A6: popularity by deconvolution. And what each user released how often: the arrays that A6 to A9 and A11 work on.

The model of a visit: user u goes to p with probability theta_u(p), and the publisher releases q with probability
K_u(q|p). theta_u varies around the popularity of all users, K_u around the channel K: widely if the publisher repeats
what it once drew for (u, p), not at all if every visit is drawn independently.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

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
    owner: Longs  # (T,) the group of each option
    entry: Longs  # (T,) the option's entry of the channel
    clean: Longs  # (T,) the option's POI, ascending within a group
    habit: Longs  # (T,) the option's habit: a pair (user, clean POI)
    habit_user: Longs  # (H,) ascending
    habit_clean: Longs  # (H,)
    habit_leaked: Floats  # (H,) leaked visits
    leaked: Floats  # (T,) leaked visits with the same user, clean and released POI
    popular: Floats  # (P+1,) leaked visits of each POI

    @staticmethod
    def of(evidence: Evidence, channel: Channel, symbol: Longs) -> "Visits":
        """Group the evidence; `symbol` (N,) is what was released, in the channel's numbers."""
        user, at, rows, channel = evidence.user, evidence.positions, evidence.rows, channel.covering(symbol)
        wide = channel.symbols
        groups, group, count = np.unique(user[~at] * wide + symbol[~at], return_inverse=True, return_counts=True)
        group_user, group_symbol = np.divmod(groups, wide)
        owner, entry = channel.behind(group_symbol)
        clean = channel.clean[entry]
        known = user[at] * rows + evidence.clean[at]
        habits, place = np.unique(np.concatenate([group_user[owner] * rows + clean, known]), return_inverse=True)
        habit, leaked_habit = place[: len(clean)], place[len(clean) :]
        own, leaked = habit * wide + group_symbol[owner], np.sort(leaked_habit * wide + symbol[at])
        return Visits(
            channel, count.astype(float), group, np.searchsorted(owner, np.arange(len(groups))), owner, entry, clean,
            habit, habits // rows, habits % rows, np.bincount(leaked_habit, minlength=len(habits)).astype(float),
            (np.searchsorted(leaked, own, "right") - np.searchsorted(leaked, own)).astype(float),
            np.bincount(evidence.clean[at], minlength=rows).astype(float),
        )  # fmt: skip

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
        for options, groups, habits in self.blocks():
            share[options] = self._posterior(prior, power, iterations, concentration, options, groups, habits)
        return share

    def _posterior(
        self, prior: Floats, power: float, iterations: int, concentration: float, options: slice, groups: slice,
        habits: slice,
    ) -> Floats:  # fmt: skip
        """Return the probabilities of the options of some users."""
        channel = self.channel.probability[self.entry[options]]  # (t,)
        first, owner = self.first[groups] - options.start, self.owner[options] - groups.start
        habit, habit_leaked = self.habit[options] - habits.start, self.habit_leaked[habits]
        weight = (self.count[groups] ** power)[owner]
        prior, leaked = prior[options], self.leaked[options]
        share, visits = np.zeros(len(habit)), habit_leaked
        for n in range(iterations):
            others = visits[habit] - share  # (t,) the user's other visits to the option
            likelihood = channel
            if np.isfinite(concentration) and 2 * n >= iterations:
                same = leaked + share * (weight - 1)  # those among them with the same released POI
                likelihood = (concentration * channel + same) / (concentration + others)
            share = normalise((prior + others) * likelihood, first, owner)
            visits = habit_leaked + sum_by(habit, share * weight, len(habit_leaked))
        return share

    def blocks(self) -> Iterator[tuple[slice, slice, slice]]:
        """Yield the options, the groups and the habits of some users at a time, all users once."""
        user = self.habit_user[self.habit[self.first]] if len(self.first) else np.zeros(0, np.int64)  # (G,) ascending
        begins = np.append(np.flatnonzero(np.diff(user, prepend=-1)), len(user))  # the first group of each user
        option = np.append(self.first, len(self.clean))[begins]
        cut = np.flatnonzero(np.diff(option // BLOCK, prepend=-1))  # users whose options begin a stretch of BLOCK
        bounds = np.unique(np.append(begins[cut], len(user)))
        for a, b in pairwise(bounds.tolist()):
            end = int(self.first[b]) if b < len(user) else len(self.clean)
            low, high = np.searchsorted(self.habit_user, [user[a], user[b - 1] + 1])
            yield slice(int(self.first[a]), end), slice(a, b), slice(int(low), int(high))

    def expected(self, share: Floats) -> Floats:
        """Return the visits to each POI under a posterior, leaked ones included, (P+1,)."""
        return self.popular + sum_by(self.clean, share * self.count[self.owner], len(self.popular))

    def argmax(self, share: Floats) -> Ints:
        """Return the likeliest option of each position that did not leak, (N - leaked,); ties: the smaller POI."""
        return likeliest(share, self.clean, self.owner, self.first)[self.group]


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


def sum_by(key: Longs, weight: Floats, size: int = 0) -> Floats:
    """Sum the weights of each key, from key 0 on."""
    return np.bincount(key, weight, size).astype(np.float64, copy=False)


def normalise(weight: Floats, first: Longs, owner: Longs) -> Floats:
    """Scale the weights of options to sum to 1 per owner, whose options start at `first`."""
    weight = np.maximum(weight, TINY)
    return weight / np.add.reduceat(weight, first)[owner] if len(weight) else weight


def likeliest(share: Floats, clean: Longs, owner: Longs, first: Longs) -> Ints:
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
