"""A16 and A20: the chain, its draws and walks by hand, and a leak that would drown among wrong sessions."""

import itertools

import numpy as np
import pytest
import torch
from attack_evidence import answer, candidates_of, evidence_of
from builders import sessions_of
from scipy import sparse

from ghostpoi.attack.adversaries.deconvolution import Visits
from ghostpoi.attack.adversaries.distillation import (
    Distilled,
    DistilledRelease,
    draw_states,
    followers,
    gains,
    hits,
    mix,
    walk,
)
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov, states_of
from ghostpoi.randomness import Seed

CPU = torch.device("cpu")


def test_followers_by_hand() -> None:
    sessions = sessions_of([1, 2, 3], [1, 2])
    wanted = np.zeros((4, 4))
    wanted[1, 2], wanted[2, 3], wanted[1, 3], wanted[2, 1], wanted[3, 2] = 2, 1, 0.1, 0.2, 0.1
    assert followers(sessions, 4).toarray() == pytest.approx(wanted)


def test_a_mixed_chain_by_hand() -> None:
    leaked, inferred = sparse.csr_array([[0, 0, 0], [0, 0, 1.0], [0, 0, 0]]), sparse.csr_array(np.ones((3, 3)))
    assert mix(leaked, inferred, 0.1, 0.5).toarray() == pytest.approx(
        np.array([[0.6, 0.1, 0.1], [0.1, 0.6, 1.1], [0.1, 0.1, 0.6]])
    )
    nothing = sparse.csr_array((3, 3))
    assert mix(nothing, nothing, 0, 0).toarray() == pytest.approx(1e-9 * np.eye(3))
    chain = sparse.csr_array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])
    right = hits(chain, sessions_of([1, 2, 1], [2, 2]), np.array([1, 2, 1, 2, 2], np.int32))
    assert right.tolist() == [True, True, False]


def test_inferred_steps_must_help_more_than_chance_would_explain() -> None:
    none, four, five = (np.arange(9) < n for n in (0, 4, 5))
    assert [gains(none, none), gains(four, none), gains(five, none), gains(none, five)] == [False, False, True, False]


def test_walks_follow_the_weights() -> None:
    chain = sparse.csr_array([[1.0, 0, 0, 0], [0, 0, 1, 3], [0, 1, 0, 0], [0, 0, 0, 1]])
    sessions = sessions_of([1] * 3, [1] * 3, [1], [1] * 4)
    drawn = np.array([0, 0.24, 0.99, 0, 0.26, 0.5, 0, 0, 0.9, 0.9, 0.9])
    assert walk(chain, sessions, np.array([1, 1, 3, 2]), drawn).tolist() == [1, 2, 1, 1, 3, 3, 3, 2, 1, 3, 3]


def test_draws_follow_the_probabilities() -> None:
    sets = candidates_of([1, 2, 3], [1, 2, 3], [1, 2, 3])
    evidence = evidence_of(sets, [0, 1], [[1, 2], [3]], leaked=[[2, 3]])
    v = Visits.of(evidence, evidence.rule.channel, evidence.symbol)
    s = states_of(evidence, v, np.array([0.2, 0.5, 0.3]), 0.0, 100)
    found = [draw_states(s, s.weight, np.full(3, u)).tolist() for u in (0.1, 0.3, 0.69, 0.71, 0.999)]
    assert found == [[2, 3, 1], [2, 3, 2], [2, 3, 2], [2, 3, 3], [2, 3, 3]]


def followed(poi: np.ndarray, length: int, p: int) -> int:
    """What a victim that counts would say after p."""
    pairs = [pair for session in poi.reshape(-1, length).tolist() for pair in itertools.pairwise(session)]
    after = [b for a, b in pairs if a == p]
    return max(set(after), key=after.count)


class TestRestoring:
    """People go from 1 to 2 and from 3 to 4. All four form one crowd, and few sessions leak."""

    def test_a_leak_teaches_although_most_sessions_cannot_be_restored(self) -> None:
        g = np.random.default_rng(0)
        sets = candidates_of(*[[1, 2, 3, 4]] * 4)
        clean = [[1, 2], [3, 4]] * 100
        released = g.integers(1, 5, (200, 2)).tolist()
        evidence = evidence_of(sets, range(200), released, leaked=clean[:8])
        poi = np.array(answer("distilled", evidence))
        assert [followed(poi, 2, p) for p in (1, 3)] == [2, 4]
        assert poi[:16].tolist() == [p for session in clean[:8] for p in session]

    def test_what_is_known_of_no_venue_is_that_people_stay(self) -> None:
        # Half of the leak shows staying at 5 to 8, where the other half has not been.
        sets = candidates_of(*[[1, 2, 3, 4]] * 4, *[[5, 6, 7, 8, 9, 10]] * 6)
        leaked = [[1, 2, 1], [5, 5, 5], [1, 2, 1], [6, 6, 6], [1, 2, 1], [7, 7, 7], [1, 2, 1], [8, 8, 8]]
        g = np.random.default_rng(0)
        released = [*leaked, *g.integers(1, 11, (60, 3)).tolist()]
        poi = np.array(answer("distilled", evidence_of(sets, range(68), released, leaked)))
        assert [followed(poi, 3, p) for p in (1, 2, 9, 10)] == [2, 1, 9, 10]

    def test_with_one_leaked_session_nothing_can_be_tried_and_it_is_a9(self) -> None:
        sets = candidates_of([2, 3], [1, 3], [1, 2])
        evidence = evidence_of(sets, range(5), [[2, 1], [1, 2], [3, 3], [2, 2], [1, 3]], [[1, 2]])
        seed = Seed(7)
        assert (Distilled().restore(evidence, seed, CPU) == HiddenMarkov().restore(evidence, seed, CPU)).all()

    def test_where_the_release_teaches_nothing_it_is_what_needs_no_release(self) -> None:
        g = np.random.default_rng(1)
        leaked = [[1, 2, 1], [3, 4, 3]] * 6
        released = [*leaked, *g.integers(1, 5, (60, 3)).tolist()]
        evidence = evidence_of(candidates_of(*[[1, 2, 3, 4]] * 4), range(72), released, leaked)
        alone = Distilled().distil(evidence, Seed(7), release=False)
        assert (Distilled().restore(evidence, Seed(7), CPU) == alone).all()

    def test_the_seed_decides_on_the_walks(self) -> None:
        sets = candidates_of(*[[1, 2, 3, 4]] * 4)
        evidence = evidence_of(sets, range(40), [[1, 2, 3]] * 40, [[1, 2, 1]] * 4)
        a, b, c = (Distilled().distil(evidence, Seed(n)).tolist() for n in (1, 1, 2))
        assert a == b
        assert a != c


class TestWithoutLeak:
    """A20 holds the release, the rule, and that people often stay."""

    def test_frequent_steps_are_taught_and_elsewhere_people_stay(self) -> None:
        sets = candidates_of(*[[p] for p in range(1, 7)])  # nobody has been at 5 and 6
        evidence = evidence_of(sets, range(60), [*[[1, 2, 1]] * 30, *[[3, 4, 3]] * 30])
        poi = np.array(answer("distilled-release", evidence))
        assert [followed(poi, 3, p) for p in range(1, 7)] == [2, 1, 4, 3, 5, 6]

    def test_inferred_steps_count_thrice(self) -> None:
        # The rule cannot tell 2 from 3, so every inferred step has either as its end with probability 1/2.
        sets = candidates_of([1], [2, 3], [2, 3])
        evidence = evidence_of(sets, range(80), [[1, 2], [1, 3]] * 40)
        chain = DistilledRelease(draws=40).chain(evidence, np.random.default_rng(0)).toarray()
        assert chain[1].tolist() == pytest.approx([0, 4, 40 + 3 * 40, 40 + 3 * 40], rel=0.05)

    def test_leaked_sessions_are_not_used(self) -> None:
        sets = candidates_of(*[[1, 2, 3, 4]] * 4)
        released = np.random.default_rng(0).integers(1, 5, (40, 3)).tolist()
        told = evidence_of(sets, range(40), released, [[1, 2, 1]] * 4)
        assert answer("distilled-release", told) == answer("distilled-release", told.without_leak())
