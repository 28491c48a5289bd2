"""What leaked pairs show of a publisher: whom it repeats draws for, and which channel it has."""

import numpy as np
import pytest
from attack_evidence import candidates_of

from ghostpoi.attack.adversaries.deconvolution import INDEPENDENT
from ghostpoi.attack.adversaries.habits import CONCENTRATIONS, concentration, learn_from_pairs
from ghostpoi.data.checkins import Longs
from ghostpoi.draw.channel import Channel, uniform

CROWD = uniform(candidates_of([1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], []))  # 5 stays


def drawn(concentration: float, users: int = 200, visits: int = 12) -> tuple[Longs, Longs, Longs]:
    """Users, released and clean POIs of users who visit one POI again and again, by Polya's urn."""
    draw = np.random.default_rng(3)
    released = np.empty((users, visits), np.int64)
    for user in range(users):
        for n in range(visits):
            anew = draw.random() < concentration / (concentration + n)
            released[user, n] = draw.integers(1, 5) if anew else draw.choice(released[user, :n])
    return np.repeat(np.arange(users), visits), released.ravel(), np.ones(users * visits, np.int64)


@pytest.mark.parametrize("true", [0.1, 1.0, 10.0])
def test_the_concentration_of_repeated_draws_is_found(true: float) -> None:
    assert 0.5 < concentration(CROWD, *drawn(true)) / true < 2


def test_independent_draws_and_pois_that_stay_show_no_repetition() -> None:
    assert concentration(CROWD, *drawn(1e9)) in (INDEPENDENT, *CONCENTRATIONS[-5:])
    stays = np.full(8, 5)
    assert concentration(CROWD, np.zeros(8, np.int64), stays, stays) == INDEPENDENT
    once = np.arange(8)
    assert concentration(CROWD, once, once % 4 + 1, np.ones(8, np.int64)) == INDEPENDENT


def test_always_the_same_draw_is_repetition() -> None:
    user = np.repeat(np.arange(50), 4)
    assert concentration(CROWD, user, user % 4 + 1, np.ones(200, np.int64)) == CONCENTRATIONS[0]


def chance(channel: Channel, clean: int, released: int) -> float:
    entry = int(channel.find(np.array([clean]), np.array([released]))[0])
    return float(channel.probability[entry]) if entry >= 0 else 0.0


def test_leaked_pairs_move_a_guess_as_far_as_they_fit_it() -> None:
    """Three of four pairs fit; the guess counts as 8 pairs per POI, times 3.5 of 5."""
    released, clean = np.array([2, 2, 3, 9]), np.array([1, 1, 1, 1])
    guess = uniform(candidates_of([1, 2, 3, 4], *([] for _ in range(8))))
    found = learn_from_pairs(guess, released, clean, 8.0, exact=False)
    weight = {1: 0.7 * 2, 2: 0.7 * 2 + 2, 3: 0.7 * 2 + 1, 4: 0.7 * 2, 9: 1}
    assert [chance(found, 1, q) for q in weight] == pytest.approx([w / (8 + 4) for w in weight.values()])


def test_an_exact_rule_learns_only_what_it_does_not_allow() -> None:
    guess = uniform(candidates_of([1, 2, 3, 4], *([] for _ in range(8))))
    found = learn_from_pairs(guess, np.array([2, 2, 9]), np.array([1, 1, 1]), 8.0, exact=True)
    assert chance(found, 1, 1) == chance(found, 1, 2) == chance(found, 1, 4) > chance(found, 1, 9) > 0
    assert learn_from_pairs(guess, np.empty(0, np.int64), np.empty(0, np.int64), 8.0, exact=True) is guess
