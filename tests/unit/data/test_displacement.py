"""Counted distances give the measures of the distances themselves, whichever way the rows are divided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.displacement import Moves

DISTANCES = st.lists(st.floats(0, 20_000, allow_subnormal=False), max_size=30)


def moved(km: list[float], rows: int, same_category: int) -> Moves:
    at, far = np.array(km, np.float64), sum(one > 1 for one in km)
    return Moves(rows, same_category, far, float(at.sum()), *np.unique(at, return_counts=True))


def test_measures_of_five_substitutions() -> None:
    found = moved([0.5, 1.0, 1.0004, 2.0, 10.0], 20, 4).to_the_metre.measures
    assert found == {
        "substitution_rate": 0.25, "category_match": 0.8, "beyond_1km": 0.6, "mean_km": pytest.approx(2.90008),
        "p95_km": pytest.approx(2 + 8 * 0.8),
    }  # fmt: skip


@given(st.lists(DISTANCES, min_size=1, max_size=5), st.integers(0, 9))
def test_counts_of_parts_are_the_distances_of_the_whole(parts: list[list[float]], kept: int) -> None:
    each = [moved(km, len(km) + kept, len(km) // 2) for km in parts]
    joint = Moves.added([one.to_the_metre for one in each]).measures
    km = [one for part in parts for one in part]
    exact = moved(km, len(km) + kept * len(parts), sum(len(part) // 2 for part in parts)).measures
    assert joint == {
        name: pytest.approx(value, abs=6e-4 if name == "p95_km" else 1e-9) for name, value in exact.items()
    }
    assert Moves.added(each).measures == {name: pytest.approx(value) for name, value in exact.items()}


@given(DISTANCES.filter(bool))
def test_the_quantile_is_that_of_numpy(km: list[float]) -> None:
    assert moved(km, len(km), 0).measures["p95_km"] == np.quantile(np.array(km), 0.95)
