"""A9's pairs of states: all of them where they are few, never more than the budget, and the likeliest states stay."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from attack_evidence import EVERYTHING, candidates_of, evidence_of, situations
from builders import sessions_of
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack.adversaries.deconvolution import Visits
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov, most_states, states_of, transitions_of
from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.data.checkins import Floats
from ghostpoi.draw.channel import Channel, uniform
from ghostpoi.randomness import Seed


def slow_states(evidence: Evidence, v: Visits, share: Floats, least: float, most: int) -> dict[int, dict[int, float]]:
    """The weight of each state of each position, with dictionaries."""
    states = {int(at): {int(evidence.clean[at]): 1.0} for at in np.flatnonzero(evidence.positions)}
    for at, group in zip(np.flatnonzero(~evidence.positions).tolist(), v.group.tolist(), strict=True):
        options = {int(v.clean[k]): float(share[k]) for k in np.flatnonzero(v.owner == group)}
        likely = {p: w for p, w in options.items() if w >= least * max(options.values())}
        best = sorted(likely, key=lambda p: (-likely[p], p))[:most]
        states[at] = {p: likely[p] / sum(likely[q] for q in best) for p in sorted(best)}
    return states


def pairs_of(evidence: Evidence, states: dict[int, dict[int, float]]) -> int:
    inside = [itertools.pairwise(range(a, b)) for a, b in itertools.pairwise(evidence.released.start.tolist())]
    return sum(len(states[a]) * len(states[b]) for a, b in itertools.chain(*inside))


class TestStates:
    @given(situations(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 60))
    def test_they_are_the_most_that_the_budget_allows(
        self, situation: tuple[Evidence, Channel], least: float, budget: int
    ) -> None:
        evidence, channel = situation
        v = Visits.of(evidence, channel, evidence.symbol)
        share = v.posterior(5.0 * v.popularity(5)[v.clean], 0.5, 5)
        s = states_of(evidence, v, share, least, budget)
        by_most = [slow_states(evidence, v, share, least, most) for most in range(1, 8)]
        fitting = [states for states in by_most if pairs_of(evidence, states) <= budget]
        wanted = fitting[-1] if fitting else by_most[0]
        found: dict[int, dict[int, float]] = {}
        for owner, poi, weight in zip(s.owner.tolist(), s.poi.tolist(), s.weight.tolist(), strict=True):
            found.setdefault(int(s.position[owner]), {})[poi] = weight
        assert {at: pytest.approx(states) for at, states in wanted.items()} == found
        assert len(transitions_of(s).before) == pairs_of(evidence, wanted)

    @given(situations(), st.integers(1, 60))
    def test_the_budget_holds_for_a_part_of_the_steps(self, situation: tuple[Evidence, Channel], budget: int) -> None:
        evidence, channel = situation
        among, blind = evidence.positions, evidence.without_leak()
        v = Visits.of(blind, channel, evidence.symbol)
        share = v.posterior(5.0 * v.popularity(5)[v.clean], 0.5, 5)
        pairs = transitions_of(states_of(blind, v, share, 0.0, budget, among), among)
        assert len(pairs.before) <= max(budget, pairs.count)

    def test_most_states_by_hand(self) -> None:
        left, right = np.array([3, 5]), np.array([5, 2])  # 3 x 5 + 5 x 2 = 25 pairs; 3 x 4 + 4 x 2 = 20
        assert [most_states(left, right, 9, n) for n in (25, 24, 20, 19, 8, 7, 0)] == [9, 4, 4, 3, 2, 1, 1]
        assert most_states(left[:0], right[:0], 9, 0) == 9  # no steps, no pairs


class TestRestoring:
    def test_a_large_crowd_stays_within_the_budget_and_is_still_resolved(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # All of 2 to 41 form one crowd, so a step inside it has 1600 pairs. The leak says that 2 follows 1.
        crowd = list(range(2, 42))
        sets = candidates_of([], *[crowd] * 40)
        g, made = np.random.default_rng(0), []
        leaked = [[1, 2, 2]] * 6
        released = [[1, *g.choice(crowd, 2).tolist()] for _ in range(30)]
        evidence = evidence_of(sets, range(30), released, leaked)
        monkeypatch.setattr(
            "ghostpoi.attack.adversaries.hidden_markov.transitions_of",
            lambda *a: made.append(transitions_of(*a)) or made[-1],  # type: ignore[func-returns-value]
        )
        adversary = HiddenMarkov(max_pairs=1000)
        assert adversary.restore(evidence, Seed(7), torch.device("cpu"))[18:].tolist() == [1, 2, 2] * 24
        assert made
        assert max(len(pairs.before) for pairs in made) <= 1000

    def test_a_budget_that_is_large_enough_changes_nothing(self) -> None:
        g = np.random.default_rng(1)
        sets = candidates_of(*[[(p + d) % 20 + 1 for d in (0, 3, 7, 12)] for p in range(20)])
        clean = sessions_of(*g.integers(1, 21, (60, 5)).tolist(), user=np.repeat(range(12), 5).tolist())
        shown = replace(clean, poi=sets.poi[clean.poi, g.integers(4, size=clean.positions)])
        evidence = Evidence.of(shown, clean.poi, g.random(60) < 0.2, 21, Rule(sets, uniform(sets), exact=True))
        few, all_, enough = (
            HiddenMarkov(max_pairs=n).restore(evidence, Seed(7), torch.device("cpu"))
            for n in (240, EVERYTHING, 240 * 16)
        )
        assert (enough == all_).all()
        assert (few != all_).any()
