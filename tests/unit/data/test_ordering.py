"""Orders of rows are those of numpy's stable sorts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.checkins import by_user_and_time, stable_order

NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 2**16 + 2), st.integers(2**31, 2**34), st.integers(0, 2**62))


@given(st.lists(NUMBERS))
def test_numbers_of_any_size_are_ordered_as_numpy_does(numbers: list[int]) -> None:
    array = np.array(numbers, np.int64)
    assert stable_order(array).tolist() == np.argsort(array, kind="stable").tolist()


@given(st.lists(st.integers(0, 2**31 - 1)))
def test_small_types_are_ordered_as_well(numbers: list[int]) -> None:
    array = np.array(numbers, np.int32)
    assert stable_order(array).tolist() == np.argsort(array, kind="stable").tolist()


@given(st.lists(st.tuples(st.integers(0, 70_000), st.integers(-(10**11), 10**11))), st.booleans())
def test_rows_are_ordered_by_user_then_time_then_row(rows: list[tuple[int, int]], in_time: bool) -> None:
    rows = sorted(rows, key=lambda row: row[1]) if in_time else rows
    user, time = np.array([u for u, _ in rows], np.int32), np.array([t for _, t in rows], np.int64)
    assert by_user_and_time(user, time).tolist() == sorted(range(len(rows)), key=lambda i: (*rows[i], i))
