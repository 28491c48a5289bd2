"""What each user released how often and what may stand behind it: the arrays that A6 to A9 and A11 reason over.

The model of one visit: user u goes to p with probability theta_u(p), and the publisher releases q with K_u(q|p).
theta_u is drawn around the popularity of all users. K_u is drawn around the channel K: far around it where the
publisher sticks to what it once drew for (u, p), not at all where every visit is drawn afresh.
"""

from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.publish.channel import Channel

TINY = 1e-300  # keeps a posterior defined where the model calls all options impossible
RARE = 1e-6  # share of the prior spread over all POIs, so that none is impossible
AFRESH = np.inf  # the concentration of K_u where every visit is drawn afresh


@dataclass(frozen=True)
class Visits:
    """The cells (user, released) of the positions that did not leak, each with its options A(q)."""

    channel: Channel
    count: Floats  # (G,) visits of each cell
    cell: Longs  # (N - leaked,) the cell of each position that did not leak
    first: Longs  # (G,) its first option
    owner: Longs  # (T,) the cell of each option
    entry: Longs  # (T,) the option's entry of the channel
    clean: Longs  # (T,) the POI of each option, ascending within a cell
    habit: Longs  # (T,) the pair (user, clean) of each option
    habit_user: Longs  # (H,) of each such pair, ascending
    habit_clean: Longs  # (H,)
    habit_leaked: Floats  # (H,) leaked visits
    leaked: Floats  # (T,) leaked visits of the same user, clean and released POI
    popular: Floats  # (P+1,) leaked visits of each POI

    @staticmethod
    def of(evidence: Evidence, channel: Channel, symbol: Longs | None = None) -> "Visits":
        """From all that is known; `symbol` (N,) is what was released in the numbers of the channel."""
        user, at, rows = users(evidence), evidence.positions, evidence.rows
        symbol = evidence.released.poi.astype(np.int64) if symbol is None else symbol
        channel = channel.covering(symbol)
        wide = channel.symbols
        cells, cell, count = np.unique(user[~at] * wide + symbol[~at], return_inverse=True, return_counts=True)
        cell_user, cell_symbol = np.divmod(cells, wide)
        owner, entry = channel.behind(cell_symbol)
        clean = channel.clean[entry]
        known = user[at] * rows + evidence.clean[at]
        pairs, place = np.unique(np.concatenate([cell_user[owner] * rows + clean, known]), return_inverse=True)
        habit, leaked_habit = place[: len(clean)], place[len(clean) :]
        return Visits(
            channel, count.astype(float), cell, np.searchsorted(owner, np.arange(len(cells))), owner, entry, clean,
            habit, pairs // rows, pairs % rows, np.bincount(leaked_habit, minlength=len(pairs)).astype(float),
            _count(habit * wide + cell_symbol[owner], leaked_habit * wide + symbol[at]),
            np.bincount(evidence.clean[at], minlength=rows).astype(float),
        )  # fmt: skip

    def popularity(self, iterations: int, liked: Floats | float = 0.0) -> Floats:
        """The visits to each POI that best explain what all users released, by EM: a distribution (P+1,).

        `liked`, (P+1,) or the same for all, are visits that count as if they had leaked.
        """
        symbol = self.channel.released[self.entry[self.first]]  # (G,)
        released = summed(symbol, self.count, self.channel.symbols)
        return popularity(self.channel, released, self.popular + liked, iterations)

    def posterior(self, base: Floats, repeats: float, iterations: int, stickiness: float = AFRESH) -> Floats:
        """The probability of each option given all other visits of its user, (T,); sums to 1 over a cell.

        Collapsed variational Bayes of order zero: every visit is explained by the expected counts of all the others,
        and by `base` (T,), visits that the prior counts as. The visits of a cell count as their number to the power
        `repeats`: the same answer twice is not twice the evidence, as draws depend on the context and the true channel
        is never quite the one assumed. `stickiness` is the concentration of K_u. It comes in halfway: from the start it
        would hold on to first guesses.
        """
        channel = self.channel.probability[self.entry]  # (T,)
        weight = (self.count**repeats)[self.owner]
        share, visits = np.zeros(len(self.clean)), self.habit_leaked
        for n in range(iterations):
            others = visits[self.habit] - share  # (T,) the user's other visits to the option
            likelihood = channel
            if np.isfinite(stickiness) and 2 * n >= iterations:
                same = self.leaked + share * (weight - 1)  # those among them that were released alike
                likelihood = (stickiness * channel + same) / (stickiness + others)
            share = self.normalised((base + others) * likelihood)
            visits = self.habits(share, repeats)
        return share

    def habits(self, share: Floats, repeats: float) -> Floats:
        """The visits of each user to each POI under a posterior, counted as there, (H,)."""
        weight = (self.count**repeats)[self.owner]
        return self.habit_leaked + summed(self.habit, share * weight, len(self.habit_leaked))

    def expected(self, share: Floats) -> Floats:
        """The visits to each POI under a posterior, those that leaked included, (P+1,)."""
        return self.popular + summed(self.clean, share * self.count[self.owner], len(self.popular))

    def normalised(self, weight: Floats) -> Floats:
        """Weights of options (T,) as probabilities within each cell."""
        weight = np.maximum(weight, TINY)
        return weight / np.add.reduceat(weight, self.first)[self.owner] if len(weight) else weight

    def argmax(self, share: Floats) -> Ints:
        """The likeliest option of every position that did not leak, (N - leaked,); ties go to the smaller POI."""
        return likeliest(share, self.clean, self.owner, self.first)[self.cell]


def popularity(channel: Channel, released: Floats, leaked: Floats, iterations: int) -> Floats:
    """EM for the clean distribution (P+1,) behind counts of released POIs (Q,), with counts that leaked (P+1,)."""
    rows = len(leaked)
    prior = np.ones(rows)
    for _ in range(iterations):
        weight = prior[channel.clean] * channel.probability
        total = summed(channel.released, weight, len(released))[channel.released]
        share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
        prior = summed(channel.clean, share * released[channel.released], rows) + leaked
        prior = prior / max(prior.sum(), TINY)
    return (1 - RARE) * prior + RARE / rows


def liked(evidence: Evidence) -> Floats:
    """Visits that the release suggests where the rule draws what is popular, one for each POI on average, (P+1,).

    EM cannot choose between POIs that are released alike; how often each of them was released can.
    """
    rule = evidence.rule
    if rule is None or not rule.popularity_power:
        return np.zeros(evidence.rows)
    count = np.bincount(evidence.released.poi, minlength=evidence.rows) + 1.0
    looks: Floats = np.power(count, rule.popularity_power, dtype=np.float64)
    alike = summed(rule.channel.released, looks[rule.channel.clean], evidence.rows)  # of all that stand behind it
    number = np.bincount(rule.channel.released, minlength=evidence.rows)
    return np.divide(number * looks, alike, out=np.zeros(evidence.rows), where=alike > 0)


def summed(key: Longs, weight: Floats, size: int = 0) -> Floats:
    """The sum of the weights of each key from 0 on."""
    return np.bincount(key, weight, size).astype(np.float64, copy=False)


def likeliest(share: Floats, clean: Longs, owner: Longs, first: Longs) -> Ints:
    """The option of the largest share of each owner; ties go to the one that comes first."""
    if not len(share):
        return np.zeros(0, np.int32)
    best = np.flatnonzero(share == np.maximum.reduceat(share, first)[owner])
    _, one = np.unique(owner[best], return_index=True)
    return clean[best[one]].astype(np.int32)


def users(evidence: Evidence) -> Longs:
    """The user of every position, (N,)."""
    return np.repeat(evidence.released.user, evidence.released.length).astype(np.int64)


def filled(evidence: Evidence, rest: Ints) -> Ints:
    """Answers for the positions that did not leak, put among those that did, (N,)."""
    out = evidence.clean.copy()
    out[~evidence.positions] = rest
    return out


def _count(key: Longs, among: Longs) -> Floats:
    """How often each key, all different, occurs among others."""
    values, count = np.unique(among, return_counts=True)
    if not len(values):
        return np.zeros(len(key))
    at = np.minimum(np.searchsorted(values, key), len(values) - 1)
    return np.where(values[at] == key, count[at], 0).astype(float)
