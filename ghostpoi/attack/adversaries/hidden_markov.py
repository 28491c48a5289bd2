"""A9 and A14: a hidden Markov model of the clean sessions, with leaked steps or with known lengths of steps.

`step_lengths.toml` holds how far people go between check-ins in a public data set, by the time between them. `python
docs/step_lengths.py FILE` prints such a table for any check-in file.
"""

import tomllib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Seed
from ghostpoi.attack.adversaries.deconvolution import TINY, Visits, likeliest, normalise, sum_by
from ghostpoi.attack.adversaries.habits import HabitsLeak
from ghostpoi.attack.counting import ranked
from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import haversine_km
from ghostpoi.draw.channel import Channel
from ghostpoi.settings import key_of

BANDS_KM: Floats = 0.05 * 2.0 ** np.arange(10.0)  # lengths of steps that are distinguished, up to 25.6 km
GAPS_S: Longs = np.array([900, 3_600, 10_800, 28_800])  # times between check-ins that are distinguished
KEPT_ANSWERS = 3  # of `infer`: with the whole leak, without it, with half of it
SHAPE = len(GAPS_S) + 1, len(BANDS_KM) + 2
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class States:
    """The states of all positions, ordered by place: all first positions of sessions, then all second ones, ..."""

    position: Longs  # (N,) the positions in that order
    bounds: Longs  # (places+1,) place k holds states bounds[k] to bounds[k+1]
    follows: Bools  # (N,) whether another position follows in the session
    first: Longs  # (N,) the first state of each position
    owner: Ints  # (T,) the position of each state, an index into `position`
    poi: Ints  # (T,)
    user: Ints  # (T,)
    habit: Ints  # (T,) the pair (user, POI)
    weight: Floats  # (T,) without any step; sums to 1 per position

    @property
    def size(self) -> Longs:
        """The number of states of each position, (N,)."""
        return np.diff(self.first, append=len(self.owner))


@dataclass(frozen=True)
class Transitions:
    """All pairs of states of two consecutive positions, ordered by the place of the first."""

    before: Ints  # (E,) a state
    after: Ints  # (E,) a state of the next position
    step: Ints  # (E,) which two positions, ascending
    common: Ints  # (E,) the pair of POIs
    own: Ints  # (E,) the pair of POIs of one user
    bounds: Longs  # (places,) between places k and k+1: bounds[k] to bounds[k+1]
    count: int  # of steps


@dataclass(frozen=True)
class HiddenMarkov(Adversary):
    """A9 extends A8 by the steps from one venue to the next: as likely as the user, or everybody, was seen to go."""

    number = 9
    title = "hidden Markov model"
    holds = "what A8 holds"
    does = "adds the steps from one venue to the next"
    effort = 45.0

    habits: HabitsLeak = HabitsLeak()
    user_steps: float = 100.0  # steps from p per user that everybody's steps count as
    common_steps: float = 1000.0  # steps from p that popularity alone counts as
    band_steps: float = 20.0  # leaked steps that an uninformative length counts as
    least: float = 0.01  # leave out a state this much less likely than the likeliest of its position
    max_pairs: int = 8_000_000  # of states of consecutive positions, about 150 bytes each
    rounds: int = 6

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        """Return the likeliest state of every position given its whole session, (N,)."""
        states, belief = self.infer(evidence)
        answer = np.zeros(len(evidence.clean), np.int32)
        answer[states.position] = likeliest(belief, states.poi, states.owner, states.first)
        return evidence.fill(answer[~evidence.positions])

    def infer(self, evidence: Evidence) -> tuple[States, Floats]:
        """Return the states of all positions and their probabilities given whole sessions, (T,)."""
        return remembered(_answers, (self, key_of(evidence)), lambda: self.inferred(evidence))

    def inferred(self, evidence: Evidence) -> tuple[States, Floats]:
        """Infer what `infer` returns."""
        channel = self.habits.channel(evidence)
        lengths = self.known_lengths(evidence, channel)
        states, popularity = self.explained(evidence, channel, self.least)
        steps = transitions_of(states)
        near = self.length_weight(evidence, lengths, states, steps)
        belief, joint = states.weight, states.weight[steps.before] * states.weight[steps.after]
        for _ in range(self.rounds if len(steps.before) else 0):
            lift = self.lift(states, steps, belief, joint, popularity) * near
            belief, joint = forward_backward(states, steps, lift)
        return states, belief

    def explained(
        self, evidence: Evidence, channel: Channel, least: float, among: Bools | None = None
    ) -> tuple[States, Floats]:
        """Return the states that A8 leaves, and the popularity of each POI (P+1,)."""
        visits, popularity, share = self.habits.explain(evidence, channel, evidence.symbol)
        return states_of(evidence, visits, share, least, self.max_pairs, among), popularity

    def known_lengths(self, evidence: Evidence, channel: Channel) -> Floats:
        """Return how much likelier each length is than A7 infers, as leaked steps show, (lengths,)."""
        at = evidence.positions
        ends, _ = self.explained(evidence.without_leak(), channel, self.least / 10, at)
        steps = transitions_of(ends, at)
        true = evidence.clean[ends.position[ends.owner]] == ends.poi  # (T,)
        taken = true[steps.before] & true[steps.after]
        allowed = sum_by(steps.step, taken.astype(float))[steps.step] > 0  # what the rule does not allow shows nothing
        band, guessed = bands(ends, steps, evidence.rule), ends.weight[steps.before] * ends.weight[steps.after]
        count, expected = (sum_by(band[allowed], v[allowed].astype(float), len(BANDS_KM) + 2) for v in (taken, guessed))
        return (count + self.band_steps) / (expected + self.band_steps)

    def length_weight(self, evidence: Evidence, known: Floats, s: States, e: Transitions) -> Floats:
        """Return how much likelier its length makes each step, (E,)."""
        return np.asarray(known[bands(s, e, evidence.rule)])

    def lift(self, s: States, e: Transitions, belief: Floats, joint: Floats, popularity: Floats) -> Floats:
        """Return how much likelier each step makes the state it leads to than the user's habits alone do, (E,)."""
        weight = self.habits.prior_weight
        habit = weight * popularity[s.poi] + _others(s.habit, belief)  # the user's visits at other positions
        habit = np.maximum(habit / (weight + np.bincount(s.user)[s.user] - 1), TINY)[e.after]
        # Everybody's steps: how often p' follows p, relative to how often it follows anything.
        follows = _others(s.poi[e.after], joint) + self.user_steps * popularity[s.poi[e.after]]
        follows = np.maximum(follows, TINY) / (e.count + self.user_steps)
        common = _others(e.common, joint) + self.common_steps * follows
        common = common / (_others(s.poi[e.before], joint) + self.common_steps) / follows
        # The user's own steps, with everybody's as the prior.
        own = _others(e.own, joint) + self.user_steps * habit * common
        return own / (_others(s.habit[e.before], joint) + self.user_steps) / habit


_answers: dict[tuple[HiddenMarkov, str], tuple[States, Floats]] = {}  # A16 asks what A9 has just asked, A20 as A14


def remembered(answers: dict[K, V], asked: K, answer: Callable[[], V]) -> V:
    """Return an answer; keep the KEPT_ANSWERS that were asked for last."""
    found = answers.pop(asked) if asked in answers else answer()
    answers[asked] = found  # behind all others
    while len(answers) > KEPT_ANSWERS:
        del answers[next(iter(answers))]
    return found


def states_of(
    evidence: Evidence, v: Visits, share: Floats, least: float, max_pairs: int, among: Bools | None = None
) -> States:
    """Return the likeliest options of every position as its states; a leaked position has one.

    An option with less than `least` times the largest share is left out. So are further ones, the least likely first,
    until `transitions_of` with the same `among` makes at most `max_pairs` pairs, or every position has one state.
    """
    at, session = evidence.positions, evidence.released.session_of()
    place = np.arange(len(at)) - evidence.released.start[session]
    position = np.argsort(place, kind="stable")
    follows = np.append(np.diff(session) == 0, False) if len(at) else at
    group = np.full(len(at), -1)
    group[~at] = v.group
    likely, count = np.zeros(len(share), bool), np.zeros(len(v.first), np.int64)
    for b in v.blocks():
        best = np.maximum.reduceat(share[b.options], b.first)
        likely[b.options] = share[b.options] >= (least * best)[b.owner]
        count[b.groups] = np.bincount(b.owner[likely[b.options]], minlength=len(b.first))
    options = np.append(count, 1)[group]  # (N,), the last for -1
    left = np.flatnonzero(follows if among is None else follows & among)
    most = most_states(options[left], options[left + 1], int(options.max(initial=1)), max_pairs)
    for b in v.blocks():
        many = np.flatnonzero(likely[b.options] & (count[b.groups] > most)[b.owner])
        begin = np.searchsorted(b.owner[many], np.arange(len(b.first)))
        order, nth = ranked(share[b.options][many], b.owner[many], begin)
        likely[b.options.start + many[order[nth >= most]]] = False
    kept = np.flatnonzero(likely)
    number = np.bincount(v.owner[kept], minlength=len(v.first))
    size = np.append(number, 1)[group][position]
    first = np.cumsum(size) - size
    owner, known = np.repeat(np.arange(len(size)), size).astype(np.int32), np.repeat(at[position], size)
    poi, weight = np.repeat(evidence.clean[position], size), np.ones(len(owner))
    shift = np.append(np.cumsum(number) - number, 0)[group][position] - first
    chosen = kept[(shift[owner] + np.arange(len(owner)))[~known]]
    poi[~known], weight[~known] = v.clean[chosen], share[chosen]
    user = np.repeat(evidence.user[position], size)
    habit = np.unique(user * evidence.rows + poi, return_inverse=True)[1].astype(np.int32)
    ends = np.searchsorted(place[position], np.arange(int(place.max(initial=-1)) + 2))
    weight = normalise(weight, first, owner)
    bounds = np.append(first, len(owner))[ends]
    return States(position, bounds, follows[position], first, owner, poi, user.astype(np.int32), habit, weight)


def most_states(left: Longs, right: Longs, high: int, max_pairs: int) -> int:
    """Return the most states a position may keep, 1 to `high`, given the options at both ends of each step."""

    def pairs(states: int) -> int:
        return int((np.minimum(left, states) * np.minimum(right, states)).sum())

    return max(1, bisect_right(range(1, high + 1), max_pairs, key=pairs))


def transitions_of(s: States, among: Bools | None = None) -> Transitions:
    """Pair each state of a position with each state of the next; `among` (N,) restricts the first positions."""
    where = np.argsort(s.position)
    left = np.flatnonzero(s.follows if among is None else s.follows & among[s.position])  # ascending by place
    right = where[s.position[left] + 1]
    width = s.size[right]
    number = s.size[left] * width
    step = np.repeat(np.arange(len(left), dtype=np.int32), number)
    k = np.arange(len(step)) - (np.cumsum(number) - number)[step]
    before = (s.first[left][step] + k // width[step]).astype(np.int32)
    after = (s.first[right][step] + k % width[step]).astype(np.int32)
    wide = int(s.poi.max(initial=0)) + 1
    pairs, common = np.unique(s.poi[before].astype(np.int64) * wide + s.poi[after], return_inverse=True)
    own = np.unique(s.user[before].astype(np.int64) * len(pairs) + common, return_inverse=True)[1].astype(np.int32)
    bounds = np.searchsorted(before, s.bounds[:-1].astype(np.int32))
    return Transitions(before, after, step, common.astype(np.int32), own, bounds, len(left))


def bands(s: States, e: Transitions, rule: Rule) -> Longs:
    """Return the length of each step as a band, (E,); 0 without coordinates."""
    if rule.lat is None or rule.lon is None:
        return np.zeros(len(e.before), np.int64)
    return length_bands(s.poi[e.before], s.poi[e.after], rule.lat, rule.lon)


def length_bands(before: Longs | Ints, after: Longs | Ints, lat: Floats, lon: Floats) -> Longs:
    """Return the length of steps between POIs as a band: 0 for the same POI, then by BANDS_KM."""
    km = haversine_km(lat[before], lon[before], lat[after], lon[after])
    return np.where(before == after, 0, 1 + np.searchsorted(BANDS_KM, km))


def forward_backward(s: States, e: Transitions, lift: Floats) -> tuple[Floats, Floats]:
    """Return the probability of each state (T,) and of each transition (E,) given whole sessions and `lift` (E,)."""
    forward, backward = s.weight.copy(), np.ones(len(s.weight))  # messages of all before and of all after a position
    follows, size, places = s.follows[s.owner], s.size, len(s.bounds) - 1
    at = np.searchsorted(s.first, s.bounds)  # the first position of each place

    def scaled(weight: Floats, k: int) -> Floats:
        """Scale messages to the states of place k, so that nothing vanishes in long sessions."""
        total: Floats = np.add.reduceat(weight, s.first[at[k] : at[k + 1]] - s.bounds[k])
        return weight / np.repeat(np.maximum(total, TINY), size[at[k] : at[k + 1]])

    for k in range(places - 1):
        pairs, states = slice(e.bounds[k], e.bounds[k + 1]), slice(s.bounds[k + 1], s.bounds[k + 2])
        sent = forward[e.before[pairs]] * lift[pairs]
        received = sum_by(e.after[pairs] - states.start, sent, states.stop - states.start)
        forward[states] = scaled(s.weight[states] * received, k + 1)
    for k in range(places - 2, -1, -1):
        pairs, states = slice(e.bounds[k], e.bounds[k + 1]), slice(s.bounds[k], s.bounds[k + 1])
        sent = s.weight[e.after[pairs]] * backward[e.after[pairs]] * lift[pairs]
        received = sum_by(e.before[pairs] - states.start, sent, states.stop - states.start)
        backward[states] = np.where(follows[states], scaled(received, k), 1.0)
    belief, joint = forward * backward, forward[e.before] * lift * (s.weight * backward)[e.after]
    return normalise(belief, s.first, s.owner), joint / np.maximum(sum_by(e.step, joint), TINY)[e.step]


def _others(key: Ints | Longs, weight: Floats) -> Floats:
    """Sum the weights of the same key, leaving out each one's own; rounding must not make it negative."""
    return np.maximum(sum_by(key, weight)[key] - weight, 0.0)


@dataclass(frozen=True)
class StepLengths(HiddenMarkov):
    """A14 extends A7 as A9 extends A8. A table of another region, in place of a leak, shows how far people go."""

    number = 14
    title = "known step lengths"
    holds = "what A7 holds, and how far people go between check-ins in another region"
    does = "runs A9's model without a leak"
    effort = 45.0
    uses_leak = False
    needs_seed = False

    def known_lengths(self, evidence: Evidence, channel: Channel) -> Floats:
        """Return the share of each length among the steps after each time, (gaps, lengths)."""
        return known_shares()

    def length_weight(self, evidence: Evidence, known: Floats, s: States, e: Transitions) -> Floats:
        time, at = evidence.released.time, s.position[s.owner[e.before]]
        cell = gap_bands(time[at + 1] - time[at]) * SHAPE[1] + bands(s, e, evidence.rule)
        expected = sum_by(cell, s.weight[e.before] * s.weight[e.after], SHAPE[0] * SHAPE[1]).reshape(SHAPE)
        seen = known * expected.sum(1, keepdims=True)
        weight: Floats = (seen + self.band_steps) / (expected + self.band_steps)
        return np.asarray(weight.ravel()[cell])


def gap_bands(gap_s: Longs) -> Longs:
    """Return the row of the table for each time between two check-ins."""
    return np.searchsorted(GAPS_S, gap_s)


@cache
def known_shares() -> Floats:
    """Return the share of each length among the steps after each time, (gaps, lengths)."""
    table = tomllib.loads(Path(__file__).with_name("step_lengths.toml").read_text("utf-8"))
    known = np.array(table["steps"], float)
    return known / known.sum(1, keepdims=True)
