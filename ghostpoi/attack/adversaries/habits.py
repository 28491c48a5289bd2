"""A7: habits by deconvolution, user by user; and the model that A8, A9 and A11 share with it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.attack.adversaries.imitation import attracted, learned, stickiness
from ghostpoi.attack.adversaries.region import closeness
from ghostpoi.attack.inference.visits import AFRESH, TINY, Visits, filled, liked, users
from ghostpoi.attack.rule import Rule
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.publish.channel import Channel
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class Explanation:
    """What stands behind every cell of a release, as far as can be told."""

    visits: Visits
    prior: Floats  # (P+1,) the popularity of POIs
    share: Floats  # (T,) the probability of each option


@dataclass(frozen=True)
class HabitModel:
    """How habits are told from a release.

    The settings were chosen once on NYC by the share restored: on a random release of a seed that no study uses, on
    draws fixed per user and POI, on GHOST and PGD releases under protocol `paper`, and, for nearness and looks, on
    draws from crowds.
    """

    strength: float = 30.0  # visits that the popularity of a POI counts as, for each user
    repeats: float = 0.5  # n visits that were released alike count as n ** repeats
    trust: float = 30.0  # pairs that a guessed channel counts as, for each clean POI
    pull: float = 10.0  # visits that a pull of 1 counts as, for each released POI
    rounds: int = 6  # of guessing the pull
    looks: float = 30.0  # visits that a POI's popularity in the release counts as, where draws lean to what is popular
    near_km: float = 0.25  # a venue this far from all that a user visits is half as near as one among them
    near_power: float = 4.0  # how much nearness tells
    regions: int = 3  # rounds of finding out where each user goes
    iterations: int = 80

    def channel(self, evidence: Evidence, rule: Rule) -> Channel:
        """The channel that the adversary believes in: the rule's own, or a guess refined by release and leak."""
        at, symbol = evidence.positions, evidence.released.poi.astype(np.int64)
        pairs = symbol[at], evidence.clean[at].astype(np.int64)
        guess, pull = rule.channel, np.ones(rule.channel.symbols)
        released = np.bincount(symbol, minlength=rule.channel.symbols).astype(float)
        for _ in range(0 if rule.exact else self.rounds):
            found = self.explain(evidence, learned(guess, *pairs, self.trust, rule.exact), symbol, quick=True)
            visits = found.visits.expected(found.share)
            for _ in range(5):
                guess, pull = attracted(rule.channel, visits, released, pull, self.pull)
        return learned(guess, *pairs, self.trust, rule.exact)

    def explain(
        self, evidence: Evidence, channel: Channel, symbol: Longs, quick: bool = False, looks: Floats | None = None
    ) -> Explanation:
        """The habits of all users under a channel; `symbol` (N,) is what was released in its numbers.

        `looks` (P+1,) is how popular POIs look, unless it is that of the release at hand.
        """
        at, visits = evidence.positions, Visits.of(evidence, channel, symbol)
        prior = visits.popularity(self.iterations // 2, self.looks * (liked(evidence) if looks is None else looks))
        base = self.strength * prior[visits.clean]  # (T,)
        share = visits.posterior(base, self.repeats, self.iterations // 4)
        if not quick:
            placed = base
            for _ in range(self.regions):
                placed = base * self.region(visits, share, base, evidence.rule)
                share = visits.posterior(placed, self.repeats, self.iterations // 4)
            # Popular draws come again and look as if the publisher stuck to them.
            afresh = evidence.rule is not None and evidence.rule.popularity_power > 0
            pairs = users(evidence)[at], symbol[at], evidence.clean[at].astype(np.int64)
            sticky = AFRESH if afresh else stickiness(channel, *pairs)
            share = visits.posterior(placed, self.repeats, self.iterations, sticky)
        return Explanation(visits, prior, share)

    def region(self, visits: Visits, share: Floats, base: Floats, rule: Rule | None) -> Floats:
        """How much likelier each option is for where its user goes, (T,); it leaves the sum of the prior as it is."""
        if rule is None or rule.lat is None or rule.lon is None:
            return np.ones(len(share))
        near = closeness(visits, visits.habits(share, self.repeats), rule.lat, rule.lon, self.near_km)
        near = np.maximum(near, TINY)[visits.habit] ** self.near_power
        scaled: Floats = near * (base.sum() / max((base * near).sum(), TINY))
        return scaled


MODEL = HabitModel()


@dataclass(frozen=True)
class Habits:
    """A7 knows A6's rule and who released what, and holds no pair: it wants back the habits of each user.

    Every visit to the same venue is another draw from the same candidates, and what they have in common gives the venue
    away; so does where its user goes otherwise. The channel is the rule's own where the method has one; else it is
    imitated, from the release alone. Where no rule is known, the release stays.
    """

    model: HabitModel = MODEL
    uses_leak: ClassVar[bool] = False

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The likeliest clean POI given all that its user released."""
        if evidence.rule is None:
            return evidence.released.poi
        return decoded(self.model, evidence.without_leak(), evidence.rule)


def decoded(model: HabitModel, evidence: Evidence, rule: Rule) -> Ints:
    """The likeliest clean POI of every position, given the release and what leaked, (N,)."""
    found = model.explain(evidence, model.channel(evidence, rule), evidence.released.poi.astype(np.int64))
    return filled(evidence, found.visits.argmax(found.share))
