"""The words for what a release gives away: thresholds, order, choice on validation steps, and noise."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.audits.measures.accuracy import step
from ghostpoi.audits.measures.gaps import PRACTICAL, Interval
from ghostpoi.audits.verdicts import (
    CANNOT_TELL,
    LITTLE,
    MUCH,
    NOTHING,
    SEVERITY,
    Player,
    best,
    harmless,
    judge,
    needed,
    word,
    worst,
)
from ghostpoi.data.checkins import Bools

CLEAN = Interval(0.12, 0.1, 0.14)


@pytest.mark.parametrize(
    ("low", "mean", "high", "expected"),
    [
        (-0.01, 0.0, 0.01, NOTHING),
        (-0.05, -0.03, -0.01, NOTHING),  # worse than doing without the release
        (-0.01, 0.005, 0.02, NOTHING),
        (-0.01, 0.006, 0.021, CANNOT_TELL),
        (0.0, 0.02, 0.04, CANNOT_TELL),
        (0.001, 0.01, 0.02, LITTLE),
        (0.0001, PRACTICAL, 0.02, LITTLE),
        (0.0, PRACTICAL, 0.02, NOTHING),  # zero itself is not excluded
        (0.0005, 0.001, 0.0015, NOTHING),  # below what studies call a difference
        (0.001, 0.029, 0.05, LITTLE),
        (0.001, 0.03, 0.05, MUCH),  # a quarter of .12
        (0.1, 0.12, 0.14, MUCH),
    ],
)
def test_words(low: float, mean: float, high: float, expected: str) -> None:
    assert word(Interval(mean, low, high), CLEAN) == expected


@pytest.mark.parametrize(("mean", "low", "high"), [(0, -0.01, 0.01), (0.1, 0.08, 0.12), (-0.1, -0.2, -0.05)])
def test_where_clean_data_teaches_nothing_it_cannot_be_told(mean: float, low: float, high: float) -> None:
    assert word(Interval(mean, low, high), Interval(0.02, 0.0, 0.04)) == CANNOT_TELL


def test_nothing_measurable_always_excludes_much() -> None:
    """Where clean data gives .04 more than the control, a quarter of it is .01, so .015 is not excluded enough."""
    little = Interval(0.04, 0.03, 0.05)
    assert word(Interval(0.0, -0.01, 0.01), little) == NOTHING
    assert word(Interval(0.0, -0.015, 0.015), little) == CANNOT_TELL


def test_the_order_of_words_is_total() -> None:
    assert SEVERITY[CANNOT_TELL] == min(SEVERITY.values())
    assert SEVERITY[NOTHING] < SEVERITY[LITTLE] < SEVERITY[MUCH]
    expected = {frozenset(pair): pair[1] for pair in itertools.combinations((NOTHING, CANNOT_TELL, LITTLE, MUCH), 2)}
    for pair, found in expected.items():
        assert worst(pair) == found
    assert worst([NOTHING, NOTHING]) == NOTHING


def hit(share: float, count: int, seed: int = 0) -> Bools:
    return np.random.default_rng(seed).random((2, count)) < share


def judged(adversary: Bools, control: Bools, clean: Bools, users: int = 100) -> dict[str, Any]:
    """The judgement of these hits, whose steps belong to users in turn."""
    who = np.arange(control.shape[1]) % users
    return judge(Player("one", adversary), Player("stay", control), Player("clean", clean), who)


def test_the_strongest_is_chosen_on_validation_steps_and_ties_go_to_the_first() -> None:
    assert best([[0.1, 0.3], [0.25, 0.2], [0.2, 0.25]]) == 1
    assert best([[0.2], [0.2]]) == 0


def test_figures_are_rounded_outward_and_stored_by_name() -> None:
    control, clean = hit(0.1, 4000), hit(0.1, 4000) | hit(0.2, 4000, 1)
    found = judged(control | hit(0.1, 4000, 2), control, clean)
    assert found.keys() == {
        "mean", "low", "high", "verdict", "adversary", "control", "headroom", "test_positions", "positions_needed",
    }  # fmt: skip
    figures = [found[name] for name in ("mean", "low", "high")]
    assert figures == pytest.approx([round(value / 0.002) * 0.002 for value in figures])
    assert (found["adversary"], found["control"]) == ("one", "stay")
    assert found["test_positions"] == 4000


@given(st.floats(-1, 1), st.floats(0, 1), st.integers(1, 100_000))
def test_rounding_never_narrows_an_interval(mean: float, half: float, positions: int) -> None:
    given = Interval(mean, mean - half, mean + half)
    found = given.outward(positions)
    assert found.low <= given.low + 1e-8
    assert found.high >= given.high - 1e-8
    assert abs(found.mean - given.mean) <= step(positions) / 2 + 1e-8


def test_too_few_steps_cannot_tell_and_say_how_many_would() -> None:
    def tested(count: int) -> dict[str, Any]:
        control, clean = hit(0.1, count), hit(0.1, count) | hit(0.3, count, 1)
        return judged(hit(0.1, count, 3), control, clean, users=count)

    few, many = tested(400), tested(20_000)
    assert few["verdict"] == CANNOT_TELL
    assert few["positions_needed"] is not None
    assert 400 < few["positions_needed"] < 20_000
    for count in (150, 250, 400, 700):  # to two digits
        assert len(str(tested(count)["positions_needed"]).rstrip("0")) <= 2
    assert (many["verdict"], many["positions_needed"]) == (NOTHING, None)


def test_few_users_cannot_tell() -> None:
    control, clean = hit(0.1, 4000), hit(0.5, 4000, 1)
    found = judged(clean, control, clean, users=10)
    assert (found["verdict"], found["positions_needed"]) == (CANNOT_TELL, 8000)
    nearly, enough = (judged(clean, control, clean, users=users) for users in (19, 20))
    assert (nearly["verdict"], nearly["positions_needed"]) == (CANNOT_TELL, 4300)  # of 4210.5, two digits, rounded up
    assert (enough["verdict"], enough["positions_needed"]) == (MUCH, None)
    few = hit(0.1, 20)
    assert judged(few, few, few, users=19)["positions_needed"] == 22  # of 21.05


def test_clean_data_that_teaches_nothing_needs_more_steps_or_none_would_do() -> None:
    control = hit(0.1, 400)
    alike = judged(control, control, control)
    assert (alike["verdict"], alike["positions_needed"]) == (CANNOT_TELL, None)
    slightly = judged(control, control, hit(0.12, 400, 1))
    assert slightly["verdict"] == CANNOT_TELL
    assert slightly["positions_needed"] is None or slightly["positions_needed"] > 400


def test_the_clean_file_gives_away_much_and_noise_nothing() -> None:
    control, clean = hit(0.07, 8000), hit(0.07, 8000) | hit(0.13, 8000, 1)
    assert judged(clean, control, clean)["verdict"] == MUCH
    assert judged(hit(0.05, 8000, 5), control, clean)["verdict"] == NOTHING


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.integers(0, 9), st.sampled_from([200, 1000]))
def test_more_noise_never_worsens_the_verdict(shares: list[float], seed: int, count: int) -> None:
    """Noise takes hits away from the adversary; a larger share takes those of a smaller share and others."""
    control = hit(0.07, count, seed)
    clean = control | hit(0.25, count, seed + 20)
    place = np.random.default_rng(seed + 40).random(count)
    found = [judged(clean & (place >= share), control, clean)["verdict"] for share in sorted({0.0, *shares, 1.0})]
    bad = [SEVERITY[one] for one in found]
    assert bad == sorted(bad, reverse=True)
    assert bad[-1] == 0


def test_no_number_of_steps_tells_where_there_is_nothing_to_tell() -> None:
    zero = Interval(0.0, -0.02, 0.02)
    assert needed(zero, zero, 1000) == 0
    assert needed(zero, Interval(0.01, 0.0, 0.02), 1000) == pytest.approx(1000)
    assert needed(Interval(0.0, -0.02, 0.02), CLEAN, 1000) == pytest.approx(1000 * (0.02 / harmless(CLEAN)) ** 2)
