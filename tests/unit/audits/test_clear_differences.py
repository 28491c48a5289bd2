"""When studies call a difference clear: a t test with Holm's correction, and a size that matters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.blocks.frontier import at_most, half
from ghostpoi.audits.measures.gaps import PRACTICAL, SIGNIFICANCE, Spread, Verdict, against, holm, spread
from ghostpoi.study.labels import corrected, show


def of(p: float, mean: float = 0.01, n: int = 3) -> Verdict:
    """A difference of three seeds with a given p-value, by the closed form of t with two degrees of freedom."""
    t = (1 - p) / (p * (2 - p) / 2) ** 0.5
    found: Spread = {"mean": mean, "std": abs(mean) / t * n**0.5, "seeds": [mean] * n}
    return Verdict(found)


@pytest.mark.parametrize("p", [0.001, 0.04, 0.2, 0.9])
def test_p_is_that_of_the_t_test(p: float) -> None:
    assert of(p).p == pytest.approx(p)
    assert of(p, -0.01).p == pytest.approx(p)


def test_p_without_spread_or_without_difference() -> None:
    same, none, one = against([0.2] * 3, [0.1] * 3), against([0.1, 0.2], [0.2, 0.1]), against([0.2], [0.1])
    assert same
    assert none
    assert one
    assert (same.p, none.p, one.p) == (pytest.approx(0.0), 1.0, 1.0)


@pytest.mark.parametrize(
    ("p", "signs"),
    [
        ([0.04], [1]),
        ([0.04, 0.04], [0, 0]),  # .05 / 2
        ([0.024, 0.04], [1, 1]),  # .05 / 2, then .05
        ([0.04, 0.024], [1, 1]),  # in any order
        ([0.01, 0.03, 0.04], [1, 0, 0]),  # .03 > .05 / 2 ends it, though .04 < .05
        ([0.9, 0.016, 0.024], [0, 1, 1]),
    ],
)
def test_holm(p: list[float], signs: list[int]) -> None:
    found = holm([of(one) for one in p])
    assert [one.sign for one in found if one] == signs


def test_holm_gives_the_level_of_each_rank() -> None:
    found = holm([of(0.012), None, of(0.001), of(0.3), of(0.011)])
    assert [one and one.level for one in found] == [SIGNIFICANCE / 2, None, SIGNIFICANCE / 4, 0.0, SIGNIFICANCE / 3]


@given(st.lists(st.floats(1e-6, 0.999), max_size=12))
def test_holm_calls_no_more_clear_than_single_tests_and_no_less_than_bonferroni(p: list[float]) -> None:
    for one, after in zip(p, holm([of(one) for one in p]), strict=True):
        assert after
        assert not after.sign or one <= SIGNIFICANCE
        assert after.sign or one > SIGNIFICANCE / len(p) * (1 - 1e-6)


@pytest.mark.parametrize(("mean", "sign"), [(0.0019, 0), (0.002, 1), (-0.0021, -1), (-0.0019, 0)])
def test_a_certain_difference_must_also_matter(mean: float, sign: int) -> None:
    seeds = [mean - 1e-5, mean, mean + 1e-5]
    found, plain = against(seeds, [0.0] * 3, least=PRACTICAL), against(seeds, [0.0] * 3)
    assert found
    assert plain
    assert (found.sign, plain.sign) == (sign, 1 if mean > 0 else -1)


def test_the_differences_of_a_table_are_one_family() -> None:
    table = corrected([["a", of(0.024), None], ["b", of(0.04), 0.5]])
    assert [[show(cell)[-1] for cell in row] for row in table] == [["a", "↑", "-"], ["b", "↑", "0"]]
    more = corrected([["a", of(0.024)], ["b", of(0.04)], ["c", of(0.9)]])
    assert [show(row[1])[-1] == "↑" for row in more] == [False, False, False]


def test_the_interval_of_a_difference_counts_seeds_and_test_steps() -> None:
    seeds = Verdict(spread([0.01, 0.02, 0.03]))
    assert half(seeds) == pytest.approx(4.3027 * 0.01 / 3**0.5, rel=1e-4)
    steps = Verdict(spread([0.02, 0.02, 0.02]), sampling_error=0.003)
    assert half(steps) == pytest.approx(1.95996 * 0.003, rel=1e-4)
    both = Verdict(spread([0.01, 0.02, 0.03]), sampling_error=0.003)
    assert half(both) == pytest.approx(np.hypot(half(seeds), half(steps)))


def test_not_above_a_limit_is_shown_by_a_one_sided_test() -> None:
    steps = Verdict(spread([0.02] * 3), sampling_error=0.003)  # the upper end is .02 + 1.645 * .003 = .0249
    assert at_most(steps, 0.025)
    assert not at_most(steps, 0.0249)
    assert not at_most(steps, 0.025, level=0.01)
