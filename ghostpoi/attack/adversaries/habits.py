"""A7, A8 and A15: the habits of users, by deconvolution of what they released. A9 and A11 build on the same model."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.attack.adversaries.base import Adversary, Device, Seed
from ghostpoi.attack.adversaries.deconvolution import INDEPENDENT, TINY, Visits, likeliest, popularity_hint, sum_by
from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import EARTH_RADIUS_KM, unit_sphere
from ghostpoi.data.sessions import spans
from ghostpoi.draw.channel import Channel

CONCENTRATIONS: Floats = 10.0 ** np.arange(-2, 3.01, 0.25)  # tried for K_u; the last stands for independent draws
ATTRACTION_STEPS = 5  # of `fit_attraction` per round
POSITIONS = 1 << 13  # that are weighed at once
MIN_VISITS = 0.2  # a user goes to a venue if it has at least this many visits


@dataclass(frozen=True)
class HabitsLeak(Adversary):
    """A8 combines A5 and A7: a leaked pair is a visit whose venue is certain.

    Leaked pairs also show whether the publisher repeats what it drew for a user and a venue.
    Its settings were chosen once by the recovered share on NYC, with a seed that no study uses.
    """

    number = 8
    title = "user habits with leak"
    holds = "the public rule, who released what, and leaked pairs with their users"
    does = "combines A5 and A7 in one model"
    effort = 6.0

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

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        visits, _, share = self.explain(evidence, self.channel(evidence), evidence.symbol)
        return evidence.fill(visits.argmax(share))

    def channel(self, evidence: Evidence) -> Channel:
        """Return the channel to assume: the rule's own, or a guess refined by the release and the leak."""
        at, symbol, rule = evidence.positions, evidence.symbol, evidence.rule
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

        `symbol` (N,) is in the channel's numbers. `quick` leaves out regions and repeated draws. `hint`: (P+1,).
        """
        at, visits, rule = evidence.positions, Visits.of(evidence, channel, symbol), evidence.rule
        hint = popularity_hint(evidence) if hint is None else hint
        popularity = visits.popularity(self.iterations // 2, self.hint_weight * hint)
        base = self.prior_weight * popularity
        prior = base[visits.clean]  # (T,)
        share = visits.posterior(prior, self.repeat_power, self.iterations // 4)
        if not quick:
            for _ in range(self.region_rounds):
                del prior  # each of them needs much memory
                prior = self.region(visits, share, base, rule)
                del share
                share = visits.posterior(prior, self.repeat_power, self.iterations // 4)
            pairs = evidence.user[at], symbol[at], evidence.clean[at].astype(np.int64)
            # A rule that favours popular venues repeats its draws, although each is independent.
            repeats = INDEPENDENT if rule.popularity_power > 0 else concentration(channel, *pairs)
            share = visits.posterior(prior, self.repeat_power, self.iterations, repeats)
        return visits, popularity, share

    def region(self, visits: Visits, share: Floats, base: Floats, rule: Rule) -> Floats:
        """Return the prior of each option, (T,): `base` (P+1,) and how near it is to the user's other visits.

        The sum stays the same.
        """
        if rule.lat is None or rule.lon is None:
            return base[visits.clean]
        # Straight lines are as good as the way on the ground here, and much faster to compute.
        out, point = np.empty(len(share)), EARTH_RADIUS_KM * unit_sphere(rule.lat, rule.lon)
        for block in visits.blocks():
            visited = share[block.options] * (visits.count[block.groups] ** self.repeat_power)[block.owner]
            user, clean, leaked = visits.habits[:, block.habits]
            near = closeness(user, point[clean], leaked + sum_by(block.habit, visited, len(leaked)), self.near_km)
            out[block.options] = np.maximum(near, TINY)[block.habit] ** self.near_power
        weight = base[visits.clean]
        total = weight.sum()
        weight *= out
        out *= total / max(weight.sum(), TINY)
        out *= base[visits.clean]
        return out


@dataclass(frozen=True)
class Habits(HabitsLeak):
    """A7 is A8 without the leak: what a user's draws from one candidate set have in common reveals the venue."""

    number = 7
    title = "user habits"
    holds = "the public rule and who released what; no leak"
    does = "pools each user's visits, since repeated draws reveal a habit"
    uses_leak = False
    needs_seed = False


@dataclass(frozen=True)
class SessionHabits(Adversary):
    """A15 runs A7 twice, the second time as if every session had a user of its own, and combines both.

    Within a session people stay in one area, which A7 mixes up with the user's other areas. What both say about a
    position is multiplied, the less telling one with a smaller power. Where all options have the same channel, as in a
    crowd, a user's repeated draws reveal nothing, but a session's area does. Elsewhere repeated draws reveal most.
    """

    number = 15
    title = "session habits"
    holds = "what A7 holds"
    does = "runs A7 per user and per session, and combines both"
    effort = 15.0
    uses_leak = False
    needs_seed = False

    habits: HabitsLeak = HabitsLeak()
    less: float = 0.5

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        alone = replace(evidence.released, user=np.arange(len(evidence.released), dtype=np.int32))
        channel = self.habits.channel(evidence)
        same = ~distinguishes(channel.covering(evidence.symbol))[evidence.symbol]
        score, answer = np.zeros(0), np.zeros(len(same), np.int32)
        for known, telling in ((evidence, ~same), (replace(evidence, released=alone, pseudonym=None), same)):
            visits, _, share = self.habits.explain(known, channel, evidence.symbol)
            # The options of a position are the same at both levels, in the same order.
            size = np.diff(visits.first, append=len(visits.owner))[visits.group]
            ends, power = np.append(0, np.cumsum(size)), np.where(telling, 1.0, self.less)
            score = score if len(score) else np.zeros(ends[-1])
            for some in (slice(at, at + POSITIONS) for at in range(0, len(size), POSITIONS)):
                option = spans(visits.first[visits.group[some]], size[some])
                first, owner = ends[:-1][some] - ends[some.start], np.repeat(np.arange(len(size[some])), size[some])
                each = score[ends[some.start] :][: len(owner)]
                each += power[some][owner] * np.log(share[option])
                answer[some] = likeliest(each, visits.clean[option], owner, first)
            del visits, share  # before the next ones are made
        return answer


def closeness(user: Ints, point: Floats, counts: Floats, km: float) -> Floats:
    """Return the mean of 1 / (distance + km) from each habit's point (H, 3) to its user's other visits, (H,)."""
    out = np.zeros(len(counts))
    bounds = np.flatnonzero(np.diff(user, prepend=-1, append=-1))
    for begin, end in pairwise(bounds.tolist()):
        count, here = counts[begin:end], point[begin:end]
        to = np.flatnonzero(count >= MIN_VISITS)
        weight = count[to]
        near = 1 / (scipy.spatial.distance.cdist(here, here[to]) + km)
        near[to, np.arange(len(to))] = 0  # not from a venue to itself
        out[begin:end] = near @ weight / max(weight.sum(), TINY)
    return out


def fit_attraction(
    channel: Channel, visits: Floats, released: Floats, attraction: Floats, strength: float
) -> tuple[Channel, Floats]:
    """Take one step of minorise-maximise towards K(q|p) proportional to K_0(q|p) attraction(q); return both.

    A candidate that a method's model scores high behind one POI scores high behind others. `visits` (P+1,) are the
    clean visits assumed; `strength` is the weight, in visits, of an attraction of 1.
    """
    total = sum_by(channel.clean, channel.probability * attraction[channel.released], len(visits))
    chance = channel.probability * np.divide(visits, total, out=np.zeros_like(visits), where=total > 0)[channel.clean]
    attraction = (released + strength) / (sum_by(channel.released, chance, len(released)) + strength)
    weight = channel.probability * attraction[channel.released]
    weight = weight / sum_by(channel.clean, weight)[channel.clean]
    return Channel(channel.clean, channel.released, weight, channel.start), attraction


def learn_from_pairs(channel: Channel, released: Longs, clean: Longs, strength: float, exact: bool) -> Channel:
    """Add leaked pairs that the channel does not allow and, unless it is exact, move it towards all leaked pairs.

    A guess weighs as much as `strength` pairs per clean POI, times the share of pairs that it allows: another tool's
    release may follow a different rule.
    """
    if not len(clean):
        return channel
    not_allowed = channel.find(clean, released) < 0
    trust = ((~not_allowed).sum() + 0.5) / (len(clean) + 1)
    new = not_allowed if exact else np.ones(len(clean), bool)
    pairs = np.bincount(clean[new], minlength=int(max(channel.clean.max(initial=0), clean.max())) + 1)
    old = trust * strength * channel.probability / (strength + pairs[channel.clean])
    return Channel.of(
        np.concatenate([channel.clean, clean[new]]), np.concatenate([channel.released, released[new]]),
        np.concatenate([old, 1 / (strength + pairs[clean[new]])]), channel.symbols,
    )  # fmt: skip


def concentration(channel: Channel, user: Longs, released: Longs, clean: Longs) -> float:
    """Return the concentration of K_u that makes leaked visits likeliest (Polya's urn); near 0 draws are repeated."""
    rows = int(clean.max(initial=0)) + 1
    triple, count = np.unique((user * rows + clean) * channel.symbols + released, return_counts=True)
    pair, symbol = np.divmod(triple, channel.symbols)
    entry = channel.find(pair % rows, symbol)
    chance = np.where(entry >= 0, channel.probability[entry], 0.0)
    varies = (chance > 0) & (chance < 1 - 1e-9)  # a POI that is always released as the same POI reveals nothing
    pair, count, chance = pair[varies], count[varies], chance[varies]
    total = np.bincount(np.unique(pair, return_inverse=True)[1], count)
    if not (total > 1).any():
        return INDEPENDENT
    k = CONCENTRATIONS[:, None]
    gammaln = scipy.special.gammaln
    fit = (gammaln(k) - gammaln(k + total)).sum(1) + (gammaln(k * chance + count) - gammaln(k * chance)).sum(1)
    best = int(fit.argmax())
    return INDEPENDENT if best == len(CONCENTRATIONS) - 1 else float(CONCENTRATIONS[best])


def distinguishes(channel: Channel) -> Bools:
    """Whether the POIs behind each released POI differ in what they are released as, (Q,)."""
    # Channels that differ have different sums of such numbers, up to chance.
    mark = sum_by(channel.clean, channel.probability * np.sin(1.0 + channel.released.astype(float) ** 1.5))
    apart = np.zeros(channel.symbols, bool)
    first = np.flatnonzero(np.diff(channel.released, prepend=-1))
    marks = mark[channel.clean]
    if len(first):
        apart[channel.released[first]] = np.maximum.reduceat(marks, first) - np.minimum.reduceat(marks, first) > 1e-9
    return apart
