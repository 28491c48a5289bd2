"""Distances of guesses: the fast paths against a slow reference, the sample of steps, the floors."""

import numpy as np
import pytest
import torch
from builders import sessions_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ghostpoi.attack.counting import Sparse
from ghostpoi.attack.victims import judge as distances
from ghostpoi.attack.victims.base import Exam
from ghostpoi.attack.victims.judge import RADII_KM, Asked, Guesser, discs_of, floors, guesser_of, guesses
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.randomness import Seed

CPU = torch.device("cpu")
KM = 1 / 111.195  # degrees of latitude


def line(*km: float) -> Vocabulary:
    """Venues this far north of the first."""
    lat = np.array([np.nan, *(40 + KM * k for k in km)])
    return Vocabulary(lat, np.full(len(lat), -74.0), np.zeros(len(lat), np.int32), np.arange(len(lat), dtype=np.int32))


def slow_guess(scores: np.ndarray, places: Vocabulary, radius: float) -> int:
    """Add up the scores in the disc around every venue."""
    held = []
    for centre in range(1, len(places)):
        km = [
            haversine_km(*(np.array([part[v]]) for v in (centre, other) for part in (places.lat, places.lon)))[0]
            for other in range(1, len(places))
        ]
        held.append(sum(score for score, far in zip(scores[1:], km, strict=True) if far <= radius))
    return int(np.argmax(held)) + 1


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_fast_guesses_are_those_of_the_definition(data: st.DataObject) -> None:
    count, steps = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 4))
    spots = st.lists(st.integers(0, 12), min_size=count, max_size=count)
    places = line(*(0.3 * k for k in data.draw(spots)))
    few = st.lists(st.integers(0, 3).map(float), min_size=count, max_size=count)  # sums are exact, and ties frequent
    base, more = np.array([0, *data.draw(few)]), np.array([[0, *data.draw(few)] for _ in range(steps)])
    scores, discs = Sparse(base, sparse.csr_array(more)), discs_of(places)
    for radius in RADII_KM:
        expected = [slow_guess(row, places, radius) for row in base + more]
        assert guesses(scores, discs, radius, CPU).tolist() == expected
        assert guesses(scores.dense(), discs, radius, CPU).tolist() == expected
        assert guesses(torch.from_numpy(scores.dense()), discs, radius, CPU).tolist() == expected


def test_the_neighbourhood_counts_and_not_the_likeliest_venue() -> None:
    places = line(0, 10, 10.4, 10.8)
    scores = np.array([[0, 0.4, 0.3, 0.2, 0.1]])
    assert [guesses(scores, discs_of(places), radius, CPU).tolist() for radius in RADII_KM] == [[3], [2], [2]]


def test_shares_of_all_steps_and_of_far_moves() -> None:
    places = line(0, 0.4, 3.0, 3.9)
    asked = Asked.of(places, sessions_of([1, 2, 3, 9, 1], [3, 1]), 0, 1, everything=True)
    assert asked.far.tolist() == [False, True, False, False, True]  # an unknown venue lies nowhere
    guess = np.array([1, 4, 1, 1, 1])
    found = asked.shares(dict.fromkeys(RADII_KM, guess))
    assert found["steps"] == 5
    assert found["far_moves"] == 2
    assert found["within_0.5km"] == pytest.approx(3 / 5)
    assert found["within_1km"] == pytest.approx(4 / 5)
    assert found["far_moves_within_0.5km"] == 0.5
    assert found["far_moves_within_1km"] == 1.0


def test_no_steps_have_no_shares() -> None:
    found = Asked.of(line(0, 1), sessions_of([1]), 0, 1, everything=False).shares(
        dict.fromkeys(RADII_KM, np.zeros(0, np.int64))
    )
    assert set(found.values()) == {0.0}


def test_seeds_look_at_different_steps_and_always_at_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "STEPS", 6)
    path, places = sessions_of([1, 2] * 20), line(0, 1)
    step = [Asked.of(places, path, seed, 3, everything=False).step.tolist() for seed in (0, 1, 2, 0)]
    assert [len(some) for some in step] == [2, 2, 2, 2]
    assert len({*step[0], *step[1], *step[2]}) == 6
    assert step[3] == step[0]
    assert len(Asked.of(places, path, 1, 3, everything=True).step) == 39


def test_a_guesser_reads_batches_in_order() -> None:
    places, path = line(0, 5, 10), sessions_of([1, 2, 3, 1, 2])
    exam = Exam(path, path, 4, CPU, vocabulary=places, seeds=1)
    whole, parts = guesser_of(exam, Seed(0)), Guesser(Asked.of(places, path, 0, 1, everything=False), CPU)
    scores = np.eye(4)[[2, 3, 1, 1]]
    assert whole is not None
    whole.read(scores)
    parts.read(scores[:1])
    parts.read(Sparse(np.zeros(4), sparse.csr_array(scores[1:])))
    assert whole.shares() == parts.shares()
    assert whole.shares()["within_1km"] == whole.shares()["far_moves_within_2km"] == 0.75
    assert guesser_of(Exam(path, path, 4, CPU, vocabulary=places), Seed(0)) is None


def test_floors_stay_or_guess_where_most_visits_are() -> None:
    places = line(0, 0.4, 3.0, 9.0)
    found = floors(places, sessions_of([1, 2, 2, 1], [3, 3, 3]), sessions_of([1, 2, 4, 3]))
    assert found["stay"]["within_0.5km"] == pytest.approx(1 / 3)
    assert found["stay"]["far_moves_within_2km"] == 0.0
    assert found["popularity"]["within_0.5km"] == pytest.approx(1 / 3)  # the disc of two venues with four visits
    assert found["popularity"]["steps"] == 3
