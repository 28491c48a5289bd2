"""A21 to A26: the exact posterior of every visit, and predictions from the habits that it shows.

A release by crowds is a function of the user, the time and the crowd of each visit, and of noise that does not depend
on where in the crowd the visit was. So the released venues carry no further evidence. A21 forgets them, and computes
how likely each member of the crowd is: by the user's other visits to the same crowd, by how popular the members are,
and by the hours at which their categories are visited. A method with candidate sets has no crowds; there, the venues
that may be behind a released one take their place, each with the probability that the method releases it so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.attack.adversaries.base import Device, Evidence, Prediction, Predictor, Seed
from ghostpoi.attack.adversaries.deconvolution import TINY, estimate_popularity, normalise, popularity_hint, sum_by
from ghostpoi.attack.adversaries.habits import HabitsLeak
from ghostpoi.attack.counting import Comparison, CountingModel, SoftSessions, top
from ghostpoi.data.checkins import Bools, Floats, Longs
from ghostpoi.data.places import SLOTS, slot_of
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.channel import Channel
from ghostpoi.settings import ModelSettings, Training

OPTIONS = 1 << 21  # weighed at once
ABOUT = 0.5  # visits added to both totals whose ratio corrects a venue's weight
DIGITS = 9  # to which released venues must agree to count as one crowd
ITERATIONS = 40  # of estimating popularity where none is published

PUBLIC = "the public rule, published aggregates, and who released what and when"
TRUTH = "the city's true popularity of venues and hours of categories"
P = TypeVar("P", bound=Predictor)


@dataclass(frozen=True)
class Posterior(Predictor):
    """A21 counts the habits of every user inside the crowds that the release shows, and predicts from them."""

    number = 21
    title = "exact posterior"
    holds = f"{PUBLIC}, and leaked visits with their users"
    does = "weighs all venues behind each visit by habits, popularity and hours, and predicts the next venue itself"
    effort = 6.0

    habit: float = 2.0  # visits of a user to a crowd that the popularity of its members counts as
    rounds: int = 50  # in which visits are weighed by each other
    step: float = 0.5  # power of each round's correction of a venue's total
    kept: int = 4  # likeliest venues of each visit that predictions use
    leak_weights: tuple[float, ...] = (1.0, 3.0, 10.0)  # tried: how many visits a leaked one counts as

    def predict(self, evidence: Evidence, validation: Sessions, seed: Seed, device: Device) -> Prediction:
        soft = self.soft(evidence)
        best, most = None, -1.0
        for weight in self.leak_weights if evidence.leaked.any() else (1.0,):
            model = self._fitted(soft, evidence, weight, validation)
            gain = Comparison.of(model, validation).accuracy(model.weights)
            best, most = (model, gain) if best is None or gain > most else (best, most)
        return Prediction(cast(CountingModel, best), soft.poi[:, 0])

    def _fitted(
        self, soft: SoftSessions, evidence: Evidence, weight: float, validation: Sessions
    ) -> CountingModel:  # fmt: skip
        weighted = replace(soft, weight=np.where(evidence.positions, weight, 1.0))
        return CountingModel.fit(weighted, validation, evidence.rows)

    def soft(self, evidence: Evidence) -> SoftSessions:
        """Return the sessions with the likeliest venues of every visit; leaked visits are certain."""
        n, at = evidence.released.positions, evidence.positions
        poi, share = np.zeros((n, self.kept), np.int32), np.zeros((n, self.kept))
        poi[at, 0], share[at, 0] = evidence.clean[at], 1.0
        for block in blocks(evidence, self.knowledge(evidence)):
            likely, chance = top(block.venue, self.shares(block), block.owner, block.first, self.kept)
            poi[block.position], share[block.position] = likely[block.group], chance[block.group]
        return SoftSessions(evidence.released, poi, share, np.ones(n))

    def knowledge(self, evidence: Evidence) -> "Knowledge":
        """Return what is known about any visit."""
        channel = HabitsLeak().channel(evidence).covering(evidence.symbol)
        return Knowledge(channel, self.popularity(evidence, channel), evidence.rule.candidates.slot_weight)

    def popularity(self, evidence: Evidence, channel: Channel) -> Floats:
        """Return the published visits of each venue, (P+1,), or an estimate from the release."""
        sets = evidence.rule.candidates
        if evidence.rule.popularity_power and sets.weight is not None:
            published = np.zeros(evidence.rows)
            published[sets.poi] = sets.weight
            published[0] = 0
            published[sets.is_hidden] = published[published > 0].mean()  # of a venue that is never drawn, nothing is
            return published
        leaked = np.bincount(evidence.clean[evidence.positions], minlength=evidence.rows).astype(float)
        released = np.bincount(evidence.symbol, minlength=channel.symbols).astype(float)
        return estimate_popularity(channel, released, leaked + popularity_hint(evidence), ITERATIONS)

    def shares(self, block: "Block") -> Floats:
        """Return the probability of each option, (T,): collapsed Dirichlet habits, and totals that are met."""
        weight, share = np.ones(len(block.target)), block.prior
        for _ in range(self.rounds):
            others = np.maximum(block.visits(share)[block.habit] - share, 0)
            score = weight[block.place] * block.likelihood * (others + self.habit * block.prior)
            share = normalise(score, block.first, block.owner)
            weight *= ((block.target + ABOUT) / (block.total(share) + ABOUT)) ** self.step
        return share


@dataclass(frozen=True)
class InformedPosterior(Posterior):
    """A22 is A21 with outside knowledge of how popular venues are and at which hours each category is visited."""

    number = 22
    title = "informed posterior"
    holds = f"what A21 holds, and {TRUTH}"
    does = "does what A21 does with the true figures in place of the published ones"
    needs_outside = True

    def knowledge(self, evidence: Evidence) -> "Knowledge":
        known, outside = super().knowledge(evidence), evidence.outside
        if outside is not None and outside.popularity is not None:
            known = replace(known, popularity=outside.popularity)
        if outside is not None and outside.hours is not None:
            known = replace(known, hours=outside.hours)
        return known


@dataclass(frozen=True)
class LearnedPosterior(Predictor):
    """A23 blends the counts of A21 with a Transformer that learns from A21's posterior."""

    number = 23
    title = "learned posterior"
    holds = "what A21 holds"
    does = "trains a Transformer over users, hours and crowds on the marginal likelihood of A21's venues, and predicts"
    trains = True
    effort = 500.0

    posterior: Posterior = field(default_factory=lambda: Posterior(kept=8))
    model: ModelSettings = field(default_factory=lambda: ModelSettings(dropout=0.5))
    training: Training = field(default_factory=lambda: Training(patience=5))

    def predict(self, evidence: Evidence, validation: Sessions, seed: Seed, device: Device) -> Prediction:
        from ghostpoi.attack.adversaries.posterior_models import blended

        soft, counted = self.posterior.soft(evidence), self.posterior.predict(evidence, validation, seed, device)
        counts, shape = cast(CountingModel, counted.scorer), (self.model, self.training)
        return replace(counted, scorer=blended(soft, counts, evidence, validation, *shape, seed, device))


def without_leak(base: type[P], number: int, holds: str) -> type[P]:
    """Return a predictor that differs from another in its evidence alone: nothing leaked."""
    about = {
        "__doc__": f"A{number} is A{base.number} without the leak.", "__module__": __name__, "number": number,
        "title": f"{base.title}, no leak", "holds": holds, "does": f"does what A{base.number} does",
        "uses_leak": False, "needs_seed": base.trains,
    }  # fmt: skip
    return dataclass(frozen=True)(type(f"{base.__name__}WithoutLeak", (base,), about))


PosteriorWithoutLeak = without_leak(Posterior, 24, f"{PUBLIC}; no leak")
InformedPosteriorWithoutLeak = without_leak(InformedPosterior, 25, f"what A24 holds, and {TRUTH}")
LearnedPosteriorWithoutLeak = without_leak(LearnedPosterior, 26, "what A24 holds")


@dataclass(frozen=True)
class Block:
    """Visits that did not leak, in groups that nothing distinguishes, and the venues that may be behind each group."""

    position: Longs  # (n,) of the release
    group: Longs  # (n,)
    count: Floats  # (G,) visits
    first: Longs  # (G,) the first option of each group
    owner: Longs  # (T,) the group of each option
    venue: Longs  # (T,) the option's POI
    place: Longs  # (T,) its number among the venues of the block
    likelihood: Floats  # (T,) of what was released, and of the hour
    prior: Floats  # (T,) the option's popularity, relative to all options of its group
    habit: Longs  # (T,) the option's pair of user and venue
    leaked: Floats  # (H,) leaked visits of each such pair
    truth: Floats  # (V,) leaked visits to each venue
    target: Floats  # (V,) visits to each venue that popularity suggests

    @staticmethod
    def of(evidence: Evidence, which: Bools, say_the_same: Longs, known: "Knowledge") -> "Block":
        """Group the visits that `which` (N,) marks; `say_the_same` (N,) numbers crowds of released venues."""
        free, at, rows = np.flatnonzero(which & ~evidence.positions), which & evidence.positions, evidence.rows
        user, slot = evidence.user, slot_of(evidence.released.time)
        key = (user[free] * SLOTS + slot[free]) * len(which) + say_the_same[free]
        _, one, group, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        owner, venue, emitted, prior = known.behind(evidence.symbol[free[one]])
        asked = known.behind(evidence.symbol[at])
        venues, place = np.unique(np.concatenate([venue, asked[1], evidence.clean[at]]), return_inverse=True)
        place, placed, truth = np.split(place, np.cumsum([len(venue), len(asked[1])]))
        pairs = np.concatenate([user[free[one]][owner] * rows + venue, user[at] * rows + evidence.clean[at]])
        habits, habit = np.unique(pairs, return_inverse=True)
        hours = 1.0 if known.hours is None else known.hours[slot[free[one]][owner], venue]
        size, first = len(venues), np.searchsorted(owner, np.arange(len(one)))
        target = sum_by(place, expected(owner, emitted, prior) * count[owner], size)
        target += sum_by(placed, expected(asked[0], *asked[2:]), size)
        return Block(
            free, group.astype(np.int64), count.astype(float), first, owner, venue, place, emitted * hours, prior,
            habit[: len(venue)], sum_by(habit[len(venue) :], np.ones(int(at.sum())), len(habits)),
            sum_by(truth, np.ones(len(truth)), size), target,
        )  # fmt: skip

    def visits(self, share: Floats) -> Floats:
        """Return the expected visits of each pair of user and venue, (H,)."""
        return self.leaked + sum_by(self.habit, share * self.count[self.owner], len(self.leaked))

    def total(self, share: Floats) -> Floats:
        """Return the expected visits to each venue, (V,)."""
        return self.truth + sum_by(self.place, share * self.count[self.owner], len(self.truth))


def expected(owner: Longs, emitted: Floats, prior: Floats) -> Floats:
    """Return the probability of each option of each released venue, if its popularity is all that is known."""
    return normalise(emitted * prior, np.flatnonzero(np.diff(owner, prepend=-1)), owner)


@dataclass(frozen=True)
class Knowledge:
    """What is known about any visit before its user's other visits are seen."""

    channel: Channel
    popularity: Floats  # (P+1,) in visits, of any scale
    hours: Floats | None  # (SLOTS, P+1) the weight of each venue in each slot of the week; None: unknown

    def behind(self, released: Longs) -> tuple[Longs, Longs, Floats, Floats]:
        """Return the venues that may be behind each released one: owner, POI, probability of the release, prior."""
        owner, entry = self.channel.behind(released)
        venue = self.channel.clean[entry]
        prior = normalise(self.popularity[venue], np.searchsorted(owner, np.arange(len(released))), owner)
        return owner, venue, self.channel.probability[entry], prior

    def crowds(self) -> Longs:
        """Number released venues, (Q,): the same number if the same venues are behind them, equally likely."""
        total = sum_by(self.channel.released, self.channel.probability, self.channel.symbols)
        share = self.channel.probability / np.maximum(total, TINY)[self.channel.released]
        marks = np.random.default_rng(0).random((2, int(self.channel.clean.max(initial=0)) + 1))  # of each clean venue
        sums = [sum_by(self.channel.released, share * mark[self.channel.clean], self.channel.symbols) for mark in marks]
        return np.unique(np.round(sums, DIGITS), axis=1, return_inverse=True)[1].reshape(-1)

    def parts(self) -> Longs:
        """Number released venues, (Q,), so that no clean venue may be behind two with different numbers."""
        rows, symbols = int(self.channel.clean.max(initial=0)) + 1, self.channel.symbols
        edges = np.ones(len(self.channel)), (self.channel.clean, rows + self.channel.released)
        graph = scipy.sparse.coo_array(edges, (rows + symbols, rows + symbols))
        part: Longs = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][rows:]
        return part.astype(np.int64)


def blocks(evidence: Evidence, known: Knowledge) -> Iterator[Block]:
    """Divide the visits so that what is behind one block says nothing about another, to bound the memory.

    The channel must hold the leaked pairs, or the visits that they add to a habit may be in another block.
    """
    symbol = evidence.symbol
    part, crowd = known.parts()[symbol], known.crowds()[symbol]
    options = np.bincount(part, np.diff(known.channel.start)[symbol]) if len(part) else np.zeros(0)
    number = (np.cumsum(options) // OPTIONS).astype(np.int64)[part]
    for block in np.unique(number):
        yield Block.of(evidence, number == block, crowd, known)
