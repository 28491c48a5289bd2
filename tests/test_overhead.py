"""The cost of the manifold term in the paper's terms: relative to an all-adversarial baseline."""

import json
from pathlib import Path

import pytest
from conftest import ROOT
from fake_results import Fabricated

from ghostpoi.study.overhead import manifold_overhead, release_overhead


def test_the_overhead_is_relative_to_a_pass_without_the_manifold_term() -> None:
    with_term, without = 12.0, 9.6
    assert manifold_overhead({"manifold_share": 1 - without / with_term}) == pytest.approx(with_term / without - 1)
    stored = json.loads((ROOT / "results" / "bench-scoring.json").read_text("utf-8"))
    assert manifold_overhead(stored) == pytest.approx(stored["manifold_share"] / (1 - stored["manifold_share"]))
    assert manifold_overhead(stored) > stored["manifold_share"]


def test_releases_compare_by_their_median_time(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path)
    cells.release("ghost", release_seconds=[11.0, 5.0, 6.0])  # the first one warms up
    assert release_overhead(cells.results()) is None
    cells.release("pgd", release_seconds=[4.0, 4.0, 5.0])
    assert release_overhead(cells.results()) == pytest.approx(6 / 4 - 1)
    assert release_overhead(cells.results(), "pgd", "ghost") == pytest.approx(4 / 6 - 1)
