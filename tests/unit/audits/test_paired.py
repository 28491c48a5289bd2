"""The interval of a paired difference: exact values, a slow reference, coverage, and monotone ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.audits.measures.gaps import DRAWS, MOST_CLUSTERS, Interval, Steps
from ghostpoi.data.checkins import Bools, Longs
from ghostpoi.randomness import Seed


def people(count: int, steps: int) -> Longs:
    return np.repeat(np.arange(count), steps)


def slow(users: Longs, one: Bools, two: Bools) -> tuple[float, float]:
    """Draw users and seeds, copy all their steps, and take the mean; the ends are percentiles."""
    ids, seeds = np.unique(users), len(one)
    generator = Seed(0).generator("paired", seeds)
    times, repeats = (generator.multinomial(n, np.full(n, 1 / n), DRAWS) for n in (len(ids), seeds))
    each = one.astype(int) - two.astype(int)
    means = []
    for who, which in zip(times, repeats, strict=True):
        at = np.concatenate([np.flatnonzero(users == i) for i, n in zip(ids, who, strict=True) for _ in range(n)])
        means.append(np.mean([each[seed, at] for seed, n in enumerate(which) for _ in range(n)]))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def test_agrees_with_copying_all_drawn_steps() -> None:
    random = np.random.default_rng(1)
    users = np.array([4, 4, 4, 1, 1, 7, 9, 9, 9, 9, 9, 3])
    one, two = random.random((3, 12)) < 0.6, random.random((3, 12)) < 0.3
    found = Steps(users, 3).difference(one, two)
    assert found.mean == pytest.approx((one.sum() - two.sum()) / 36)
    low, high = slow(users, one, two)
    assert found.low == pytest.approx(min(low, found.mean - 3 / 12))
    assert found.high == pytest.approx(max(high, found.mean + 3 / 12))


def test_what_never_differs_still_has_the_width_of_three_steps() -> None:
    hits = np.ones((2, 300), bool)
    found = Steps(people(100, 3), 2).difference(hits, hits)
    assert (found.mean, found.low, found.high) == pytest.approx((0, -0.01, 0.01))


def test_steps_of_one_person_count_as_one_draw() -> None:
    """Fifty people of 20 equal steps each: the interval is as wide as that of fifty steps."""
    users, random = people(50, 20), np.random.default_rng(2)
    person = random.random(50) < 0.5
    hits, none = np.repeat(person, 20)[None], np.zeros((1, 1000), bool)
    together = Steps(users, 1).difference(hits, none)
    apart = Steps(np.arange(50), 1).difference(person[None], none[:, :50])
    assert together.half == pytest.approx(0.5 * 1.96 / 50**0.5, rel=0.1)
    assert apart.mean == together.mean
    assert apart.half == pytest.approx(together.half, rel=0.1)


def test_seeds_that_differ_widen_the_interval() -> None:
    users, none = people(400, 5), np.zeros((3, 2000), bool)
    random = np.random.default_rng(3)
    same = np.stack([random.random(2000) < 0.2 for _ in range(3)])
    apart = np.stack([random.random(2000) < share for share in (0.1, 0.2, 0.3)])
    steps = Steps(users, 3)
    assert steps.difference(apart, none).half > 3 * steps.difference(same, none).half


@pytest.mark.parametrize("truth", [0.0, 0.05])
def test_the_interval_covers_the_truth(truth: float) -> None:
    """Two hundred tests of 120 people, whose hits depend on the person: about 95% of the intervals hold the truth."""
    random, users = np.random.default_rng(4), people(120, 6)
    steps, covered = Steps(users, 3), 0
    for _ in range(200):
        base = random.beta(2, 8, 120)[users]
        one, two = (random.random((3, len(users))) < base + more for more in (truth, 0.0))
        found = steps.difference(one, two)
        covered += found.low <= truth <= found.high
    assert covered / 200 >= 0.92


def test_more_users_than_clusters() -> None:
    random, count = np.random.default_rng(5), 3 * MOST_CLUSTERS
    hits = random.random((1, count)) < 0.3
    found = Steps(np.arange(count), 1).difference(hits, np.zeros_like(hits))
    assert found.half == pytest.approx(1.96 * (0.3 * 0.7 / count) ** 0.5, rel=0.1)


hits = st.lists(st.tuples(*[st.booleans()] * 3), min_size=1, max_size=40)


@given(hits, st.integers(1, 12), st.integers(1, 3))
def test_fewer_hits_never_raise_an_end(drawn: list[tuple[bool, bool, bool]], users: int, seeds: int) -> None:
    one, other, stays = (np.tile(np.array(row), (seeds, 1)) for row in zip(*drawn, strict=True))
    steps = Steps(np.arange(len(drawn)) % users, seeds)
    more, fewer = steps.difference(one, other), steps.difference(one & stays, other)
    assert all(getattr(fewer, end) <= getattr(more, end) + 1e-12 for end in ("mean", "low", "high"))


@given(hits)
def test_the_mean_lies_inside_and_the_sign_turns_with_the_order(drawn: list[tuple[bool, bool, bool]]) -> None:
    one, other, _ = (np.array(row)[None] for row in zip(*drawn, strict=True))
    steps = Steps(np.arange(len(drawn)), 1)
    there, back = steps.difference(one, other), steps.difference(other, one)
    assert there.low <= there.mean <= there.high
    assert (there.mean, there.low, there.high) == pytest.approx((-back.mean, -back.high, -back.low))


def test_half_of_the_width() -> None:
    assert Interval(0.1, 0.0, 0.3).half == pytest.approx(0.15)
