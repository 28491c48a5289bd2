"""The habits of each user, inferred from a release: the model of A7, which A8, A9 and A11 share."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ghostpoi.attack.evidence import Evidence
from ghostpoi.attack.inference.channel_learning import concentration, fit_attraction, joint_channel, learn_from_pairs
from ghostpoi.attack.inference.visits import INDEPENDENT, TINY, Visits, popularity_hint
from ghostpoi.attack.rule import Rule
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import haversine_km
from ghostpoi.publish.channel import Channel

ATTRACTION_STEPS = 5  # of `fit_attraction` per round
MIN_VISITS = 0.2  # a user goes to a venue if it has at least this many visits


@dataclass(frozen=True)
class HabitModel:
    """Infers habits from a release.

    The settings were chosen once on NYC by the recovered share: on a random release whose seed no study uses, on draws
    fixed per user and POI, on GHOST and PGD releases under protocol `paper`, and, for regions and hints, on crowds.
    """

    prior_weight: float = 30.0  # visits per user that the popularity of a POI counts as
    repeat_power: float = 0.5  # n visits of a user with the same released POI count as n ** repeat_power
    channel_weight: float = 30.0  # leaked pairs per clean POI that a guessed channel counts as
    attraction_weight: float = 10.0  # visits per released POI that an attraction of 1 counts as
    attraction_rounds: int = 6
    hint_weight: float = 30.0  # visits that a POI's popularity in the release counts as, if the rule favours popularity
    near_km: float = 0.25  # a venue this far from all of a user's visits is half as close as one among them
    near_power: float = 4.0  # how much closeness counts
    region_rounds: int = 3  # of inferring where each user goes
    iterations: int = 80

    def restore(self, evidence: Evidence, rule: Rule) -> Ints:
        """Return the likeliest clean POI of every position given the release and the leak, (N,)."""
        visits, _, share = self.explain(evidence, self.channel(evidence, rule), evidence.symbol)
        return evidence.fill(visits.argmax(share))

    def restore_jointly(self, evidence: Evidence, rule: Rule) -> Ints:
        """Return the likeliest clean POI of every position given all releases and the leak, (N,)."""
        each = evidence.per_release()
        channels = [self.channel(e, rule).covering(e.released.poi) for e in each]
        symbols, symbol = np.unique(np.stack([e.released.poi for e in each], 1), axis=0, return_inverse=True)
        hint = np.mean([popularity_hint(e) for e in each], axis=0)
        visits, _, share = self.explain(evidence, joint_channel(channels, symbols.astype(np.int64)), symbol, hint=hint)
        return evidence.fill(visits.argmax(share))

    def channel(self, evidence: Evidence, rule: Rule) -> Channel:
        """Return the channel to assume: the rule's own, or a guess refined by the release and the leak."""
        at, symbol = evidence.positions, evidence.symbol
        pairs = symbol[at], evidence.clean[at].astype(np.int64)
        guess, attraction = rule.channel, np.ones(rule.channel.symbols)
        released = np.bincount(symbol, minlength=rule.channel.symbols).astype(float)
        for _ in range(0 if rule.exact else self.attraction_rounds):
            assumed = learn_from_pairs(guess, *pairs, self.channel_weight, rule.exact)
            visits, _, share = self.explain(evidence, assumed, symbol, quick=True)
            counts = visits.expected(share)
            for _ in range(ATTRACTION_STEPS):
                guess, attraction = fit_attraction(rule.channel, counts, released, attraction, self.attraction_weight)
        return learn_from_pairs(guess, *pairs, self.channel_weight, rule.exact)

    def explain(
        self, evidence: Evidence, channel: Channel, symbol: Longs, quick: bool = False, hint: Floats | None = None
    ) -> tuple[Visits, Floats, Floats]:
        """Return the visits, the popularity of each POI (P+1,) and the probability of each option (T,).

        `symbol` (N,) is what was released, in the channel's numbers. `quick` leaves out regions and repeated draws.
        `hint` (P+1,) replaces the release's own `popularity_hint`.
        """
        at, visits, rule = evidence.positions, Visits.of(evidence, channel, symbol), evidence.rule
        hint = popularity_hint(evidence) if hint is None else hint
        popularity = visits.popularity(self.iterations // 2, self.hint_weight * hint)
        base = self.prior_weight * popularity[visits.clean]  # (T,)
        share = visits.posterior(base, self.repeat_power, self.iterations // 4)
        if not quick:
            prior = base
            for _ in range(self.region_rounds):
                prior = base * self.region(visits, share, base, rule)
                share = visits.posterior(prior, self.repeat_power, self.iterations // 4)
            pairs = evidence.user[at], symbol[at], evidence.clean[at].astype(np.int64)
            # A rule that favours popular venues repeats its draws, although each is independent.
            favours = rule is not None and rule.popularity_power > 0
            repeats = INDEPENDENT if favours else concentration(channel, *pairs)
            share = visits.posterior(prior, self.repeat_power, self.iterations, repeats)
        return visits, popularity, share

    def region(self, visits: Visits, share: Floats, base: Floats, rule: Rule | None) -> Floats:
        """Return how much likelier the user's region makes each option, (T,); the sum of the prior stays the same."""
        if rule is None or rule.lat is None or rule.lon is None:
            return np.ones(len(share))
        near = closeness(visits, visits.habit_visits(share, self.repeat_power), rule.lat, rule.lon, self.near_km)
        near = np.maximum(near, TINY)[visits.habit] ** self.near_power
        scaled: Floats = near * (base.sum() / max((base * near).sum(), TINY))
        return scaled


def closeness(visits: Visits, counts: Floats, lat: Floats, lon: Floats, km: float) -> Floats:
    """Return the mean of 1 / (distance + km) from each habit's POI to its user's other visits, `counts` (H,); (H,)."""
    out = np.zeros(len(counts))
    bounds = np.flatnonzero(np.diff(visits.habit_user, prepend=-1, append=-1))
    for begin, end in pairwise(bounds.tolist()):
        poi, count = visits.habit_clean[begin:end], counts[begin:end]
        to = np.flatnonzero(count >= MIN_VISITS)
        there, weight = poi[to], count[to]
        near = 1 / (haversine_km(lat[poi][:, None], lon[poi][:, None], lat[there], lon[there]) + km)
        near[to, np.arange(len(to))] = 0  # not from a venue to itself
        out[begin:end] = near @ weight / max(weight.sum(), TINY)
    return out
