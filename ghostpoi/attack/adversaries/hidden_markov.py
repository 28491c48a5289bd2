"""A9: a hidden Markov model over what may stand behind a session."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ghostpoi.attack.adversaries.base import Bools, Evidence
from ghostpoi.attack.adversaries.bigram import Bigram
from ghostpoi.attack.adversaries.habits import MODEL, Explanation, HabitModel
from ghostpoi.attack.inference.visits import TINY, filled, likeliest, summed, users
from ghostpoi.attack.rule import Rule
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import haversine_km
from ghostpoi.publish.channel import Channel
from ghostpoi.randomness import Seed

BANDS_KM: Floats = 0.05 * 2.0 ** np.arange(10.0)  # lengths of steps that are told apart, up to 25.6 km


@dataclass(frozen=True)
class HiddenMarkov:
    """A9 knows all that A8 knows and that people go from one venue to the next in ways that repeat.

    The states of a position are its options A(q), as A8 weighs them; what leaked has one state. A step from p to p' is
    as likely as the user, and failing that everybody, was seen to take it: in leaked sessions for certain, elsewhere as
    expected under the present belief. People also stay near: how much more often leaked steps are short than a guess
    without them would have it multiplies the steps of each length. Forward-backward gives the belief in every state,
    and the steps are counted anew, each position explained by the steps of the others. Without a rule A9 is A4.
    """

    model: HabitModel = MODEL
    user_steps: float = 100.0  # steps from p that everybody's steps count as, for each user
    common_steps: float = 1000.0  # steps from p that popularity alone counts as
    band_steps: float = 20.0  # leaked steps that a length which tells nothing counts as
    least: float = 0.01  # a state this much less likely than the likeliest of its position is left out
    rounds: int = 6
    uses_leak: ClassVar[bool] = True

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The likeliest state of every position, given the whole session."""
        if evidence.rule is None:
            return Bigram().restore(evidence, seed, device)
        symbol = evidence.released.poi.astype(np.int64)
        channel = self.model.channel(evidence, evidence.rule)
        found = self.model.explain(evidence, channel, symbol)
        states = states_of(evidence, found, self.least)
        steps = steps_of(states)
        near = self.nearness(evidence, evidence.rule, channel)[bands(states, steps, evidence.rule)]
        belief, joint = states.weight, states.weight[steps.before] * states.weight[steps.after]
        for _ in range(self.rounds if len(steps.before) else 0):
            lift = self.lift(states, steps, belief, joint, found.prior) * near
            belief, joint = forward_backward(states, steps, lift)
        answer = np.zeros(len(symbol), np.int32)
        answer[states.position] = likeliest(belief, states.poi, states.owner, states.first)
        return filled(evidence, answer[~evidence.positions])

    def nearness(self, evidence: Evidence, rule: Rule, channel: Channel) -> Floats:
        """How much likelier a step of each length is than two independent guesses of its ends would be, (bands,).

        Learned from steps that leaked, by what A7 would have made of their ends.
        """
        at, blind = evidence.positions, evidence.without_leak()
        guess = self.model.explain(blind, channel, evidence.released.poi.astype(np.int64))
        s = states_of(blind, guess, self.least / 10)
        e = steps_of(s, at)
        true = evidence.clean[s.position[s.owner]] == s.poi  # (T,)
        taken = true[e.before] & true[e.after]
        told = summed(e.step, taken.astype(float))[e.step] > 0  # a step that the rule does not allow tells nothing
        band, guessed = bands(s, e, rule), s.weight[e.before] * s.weight[e.after]
        count, expected = (
            summed(band[told], value[told].astype(float), len(BANDS_KM) + 2) for value in (taken, guessed)
        )
        return (count + self.band_steps) / (expected + self.band_steps)

    def lift(self, s: "States", e: "Steps", belief: Floats, joint: Floats, prior: Floats) -> Floats:
        """How much likelier each step makes the state that it leads to than its user's habits alone, (E,)."""
        own = self.model.strength * prior[s.poi] + _others(s.habit, belief)  # the user's visits at other positions
        own = own / (self.model.strength + np.bincount(s.user)[s.user] - 1)
        own = np.maximum(own, TINY)[e.after]
        # Everybody's steps: how often p' follows p, against how often it follows anything.
        follows = _others(s.poi[e.after], joint) + self.user_steps * prior[s.poi[e.after]]
        follows = np.maximum(follows, TINY) / (e.count + self.user_steps)
        common = _others(e.common, joint) + self.common_steps * follows
        common = common / (_others(s.poi[e.before], joint) + self.common_steps) / follows
        # The user's own steps, around everybody's.
        mine = _others(e.mine, joint) + self.user_steps * own * common
        return mine / (_others(s.habit[e.before], joint) + self.user_steps) / own


@dataclass(frozen=True)
class States:
    """The states of all positions, those of the first place of every session first, then those of the second, ..."""

    position: Longs  # (N,) positions in that order
    bounds: Longs  # (places+1,) place k holds states bounds[k] to bounds[k+1]
    follows: Bools  # (N,) whether another position follows in the session
    first: Longs  # (N,) the first state of each position
    owner: Longs  # (T,) whose state it is: a number of the order above
    poi: Longs  # (T,)
    user: Longs  # (T,)
    habit: Longs  # (T,) the pair (user, POI)
    weight: Floats  # (T,) before any step is looked at; sums to 1 over a position

    @property
    def size(self) -> Longs:
        return np.diff(np.append(self.first, len(self.owner)))  # (N,)


@dataclass(frozen=True)
class Steps:
    """All pairs of states of two positions that follow each other, by the place of the first."""

    before: Longs  # (E,) a state
    after: Longs  # (E,) a state of the next position
    step: Longs  # (E,) which two positions: ascending
    common: Longs  # (E,) the pair of POIs
    mine: Longs  # (E,) the pair of POIs of one user
    bounds: Longs  # (places,) pairs of places k and k+1: bounds[k] to bounds[k+1]
    count: int  # of steps


def states_of(evidence: Evidence, found: Explanation, least: float) -> States:
    """The options of every position; what leaked has one."""
    v, at, start = found.visits, evidence.positions, evidence.released.start
    place = np.arange(len(at)) - start[evidence.released.session_of()]
    position = np.argsort(place, kind="stable")
    cell = np.full(len(at), -1)
    cell[~at] = v.cell
    cell = cell[position]  # (N,)
    options = np.diff(np.append(v.first, len(v.owner)))
    size = np.where(cell < 0, 1, options[cell]) if len(options) else np.ones(len(cell), np.int64)
    owner = np.repeat(np.arange(len(cell)), size)
    option = np.arange(len(owner)) - (np.cumsum(size) - size)[owner]
    known, poi, weight = cell[owner] < 0, evidence.clean[position][owner].astype(np.int64), np.ones(len(owner))
    option = (v.first[cell[owner]] if len(v.first) else 0) + option
    poi[~known], weight[~known] = v.clean[option[~known]], found.share[option[~known]]
    if len(owner):
        kept = weight >= least * np.maximum.reduceat(weight, np.cumsum(size) - size)[owner]
        owner, poi, weight = owner[kept], poi[kept], weight[kept]
    first = np.searchsorted(owner, np.arange(len(cell)))
    user = users(evidence)[position][owner]
    _, habit = np.unique(user * evidence.rows + poi, return_inverse=True)
    follows = np.append(np.diff(evidence.released.session_of()) == 0, False)[position] if len(at) else at
    places = int(place.max(initial=-1)) + 1
    bounds = np.searchsorted(place[position][owner], np.arange(places + 1))
    out = States(position, bounds, follows, first, owner, poi, user, habit, weight)
    return States(position, bounds, follows, first, owner, poi, user, habit, _normalised(weight, out))


def bands(s: States, e: Steps, rule: Rule) -> Longs:
    """How far each step leads, (E,): 0 to the same POI, then by BANDS_KM; all alike where venues have no places."""
    before, after = s.poi[e.before], s.poi[e.after]
    if rule.lat is None or rule.lon is None:
        return np.zeros(len(before), np.int64)
    km = haversine_km(rule.lat[before], rule.lon[before], rule.lat[after], rule.lon[after])
    return np.where(before == after, 0, 1 + np.searchsorted(BANDS_KM, km))


def steps_of(s: States, among: Bools | None = None) -> Steps:
    """Every state of a position with every state of the next; of some positions (N,) only, if that is asked for."""
    where = np.empty(len(s.position), np.int64)
    where[s.position] = np.arange(len(s.position))
    left = np.flatnonzero(s.follows if among is None else s.follows & among[s.position])  # ascending by place
    right = where[s.position[left] + 1]
    width = s.size[right]
    number = s.size[left] * width
    step = np.repeat(np.arange(len(left)), number)
    k = np.arange(len(step)) - (np.cumsum(number) - number)[step]
    before, after = s.first[left][step] + k // width[step], s.first[right][step] + k % width[step]
    wide = int(s.poi.max(initial=0)) + 1
    pairs, common = np.unique(s.poi[before] * wide + s.poi[after], return_inverse=True)
    _, mine = np.unique(s.user[before] * len(pairs) + common, return_inverse=True)
    return Steps(before, after, step, common, mine, np.searchsorted(before, s.bounds[:-1]), len(left))


def forward_backward(s: States, e: Steps, lift: Floats) -> tuple[Floats, Floats]:
    """The belief in every state (T,) and in every pair of states that follow each other (E,), given whole sessions."""
    ahead, behind = s.weight.copy(), np.ones(len(s.weight))  # of all up to a position, of all after it
    follows, size, places = s.follows[s.owner], s.size, len(s.bounds) - 1
    at = np.searchsorted(s.first, s.bounds)  # the first position of each place

    def spread(weight: Floats, k: int) -> Floats:
        """Messages to the states of place k, so scaled that nothing vanishes in long sessions."""
        total: Floats = np.add.reduceat(weight, s.first[at[k] : at[k + 1]] - s.bounds[k])
        scaled: Floats = weight / np.repeat(np.maximum(total, TINY), size[at[k] : at[k + 1]])
        return scaled

    for k in range(places - 1):
        pairs, states = slice(e.bounds[k], e.bounds[k + 1]), slice(s.bounds[k + 1], s.bounds[k + 2])
        sent = ahead[e.before[pairs]] * lift[pairs]
        got = summed(e.after[pairs] - states.start, sent, states.stop - states.start)
        ahead[states] = spread(s.weight[states] * got, k + 1)
    for k in range(places - 2, -1, -1):
        pairs, states = slice(e.bounds[k], e.bounds[k + 1]), slice(s.bounds[k], s.bounds[k + 1])
        sent = s.weight[e.after[pairs]] * behind[e.after[pairs]] * lift[pairs]
        got = summed(e.before[pairs] - states.start, sent, states.stop - states.start)
        behind[states] = np.where(follows[states], spread(got, k), 1.0)
    joint = ahead[e.before] * lift * (s.weight * behind)[e.after]
    return _normalised(ahead * behind, s), joint / np.maximum(summed(e.step, joint), TINY)[e.step]


def _normalised(weight: Floats, s: States) -> Floats:
    if not len(weight):
        return weight
    weight = np.maximum(weight, TINY)
    return weight / np.add.reduceat(weight, s.first)[s.owner]


def _others(key: Longs, weight: Floats) -> Floats:
    """The sum over all of the same key, oneself left out; rounding must not make it negative."""
    return np.maximum(summed(key, weight)[key] - weight, 0.0)
