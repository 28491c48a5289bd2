"""The cost of the manifold term in the paper's terms: relative to an all-adversarial baseline."""

import pytest

from ghostpoi.study.overhead import manifold_overhead


def test_the_overhead_is_relative_to_a_pass_without_the_manifold_term() -> None:
    shares = [1 - without / 12 for without in (9.6, 12, 8)]
    assert manifold_overhead({"manifold_shares": shares}) == pytest.approx((0.25, 0, 0.5))
