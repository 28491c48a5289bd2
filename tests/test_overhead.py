"""The cost of the manifold term in the paper's terms: relative to an all-adversarial baseline."""

import pytest

from ghostpoi.study.overhead import manifold_overhead


def test_the_overhead_is_relative_to_a_pass_without_the_manifold_term() -> None:
    with_term, without = 12.0, 9.6
    assert manifold_overhead({"manifold_share": 1 - without / with_term}) == pytest.approx(0.25)
