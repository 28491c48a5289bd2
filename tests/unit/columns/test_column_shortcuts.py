"""Shortcuts of the tests of columns give what the plain computation gives."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.columns import harmless
from ghostpoi.columns.classify import constant_within
from ghostpoi.columns.dependence import value_codes
from ghostpoi.columns.harmless import FIRST, MOST_OFFSETS, MOST_SECONDS, OFFSETS, all_numbers, time_offsets
from ghostpoi.columns.related import RelatedVenues
from ghostpoi.columns.traces import numbers
from ghostpoi.data.checkins import Checkins, Floats, Longs

N = 2 * FIRST  # rows: the shortcuts look at half of them first
TIMES = np.sort(np.random.default_rng(0).integers(1_300_000_000, 1_400_000_000, N))


@given(st.lists(st.one_of(st.none(), st.text(max_size=3))), st.sampled_from([pl.String, pl.Categorical]))
def test_values_are_numbered_by_their_hashes(values: list[str | None], kind: type[pl.DataType]) -> None:
    column = pl.Series(values, dtype=pl.String).cast(kind)
    assert value_codes(column).tolist() == np.unique(column.hash().to_numpy(), return_inverse=True)[1].tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=8))
def test_a_column_isconstant_within_groups_if_no_group_has_two_values(rows: list[tuple[int, int]]) -> None:
    group, code = (np.array(column) for column in zip(*rows, strict=True))
    assert constant_within(code, group) == (len(set(rows)) == len(set(group.tolist())))


def slow_offsets(value: Sequence[float], time: Longs) -> list[int] | None:
    """Compare all rows with the times, in each unit."""
    array = np.array(value, float)
    for unit, whole in ((1, True), (1e3, True), (1e6, True), (1e9, True), (60, False), (3600, False), (86_400, False)):
        if whole and (array % unit != 0).any():
            continue
        found = (array / unit if whole else array * unit) - time
        different = set(found.tolist())
        if len(different) == 1 and abs(found[0]) < MOST_SECONDS:
            return found.astype(int).tolist()
        if len(different) <= MOST_OFFSETS and all(d % 900 == 0 and abs(d) <= OFFSETS[-1] for d in different):
            return found.astype(int).tolist()
    return None


@given(
    st.sampled_from([1, 10**3, 10**6, 10**9]), st.lists(st.integers(-60, 60), min_size=1, max_size=10),
    st.integers(0, N - 1), st.sampled_from([0, 1, 450, 900]),
)  # fmt: skip
def test_offsets_of_times_are_those_of_all_rows(unit: int, quarters: list[int], row: int, change: int) -> None:
    value = (TIMES + 900 * np.resize(quarters, N)) * unit
    value[row] += change
    found = time_offsets(pl.Series(value), TIMES)
    assert (None if found is None else found.tolist()) == slow_offsets(value.tolist(), TIMES)


@pytest.mark.parametrize("wrong", [0, FIRST - 1, FIRST, N - 1])
@pytest.mark.parametrize("text", ["nowhere", "", None])
def test_one_value_that_is_no_time_decides_wherever_it_is(wrong: int, text: str | None) -> None:
    times: list[str | None] = [datetime.fromtimestamp(int(t), UTC).isoformat() for t in TIMES]
    found = time_offsets(pl.Series(times), TIMES)
    assert found is not None
    assert not found.any()
    times[wrong] = text
    assert time_offsets(pl.Series(times, dtype=pl.String), TIMES) is None


@pytest.mark.parametrize("wrong", [0, FIRST - 1, FIRST, N - 1])
def test_one_text_among_numbers_decides_wherever_it_is(wrong: int) -> None:
    texts = [str(number) for number in range(N)]
    found = all_numbers(pl.Series(texts))
    assert found is not None
    assert found.tolist() == numbers(pl.Series(texts)).tolist()
    texts[wrong] = "many"
    assert all_numbers(pl.Series(texts)) is None


@pytest.mark.parametrize(("wrong", "told"), [(0, True), (4, True), (40, False)])
@pytest.mark.parametrize("unit", [1, 60, 3600])
def test_a_gap_is_found_unless_too_many_rows_differ(
    wrong: int, told: bool, unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harmless, "GAPS", 20)
    n = 5000
    zero = np.zeros(n, np.int32)
    time = np.cumsum(np.random.default_rng(1).integers(1, 99_999, n))
    ids = np.array(["", "a"], object)
    table = Checkins(zero, zero + 1, zero, zero + 0.5, zero + 0.5, time, ids[1:], ids, ids[1:])
    value = np.diff(time, prepend=0) / unit
    for start in (1, n - wrong):  # the rows that differ come first, or last
        changed = value.copy()
        changed[start : start + wrong] += 1e6
        assert harmless._gap(changed, RelatedVenues(table)) == told


@pytest.mark.parametrize("unit", [1, 60, 3600, 86_400])
@pytest.mark.parametrize(
    "form",
    [lambda x: x, np.floor, np.round, lambda x: np.floor(x + 0.5), lambda x: np.round(x, 1), lambda x: np.round(x, 2)],
    ids=["exact", "cut", "even", "up", "tenths", "hundredths"],
)
@pytest.mark.parametrize("first", [np.nan, -1])
def test_a_gap_is_found_in_any_unit_and_rounding(unit: int, form: Callable[[Floats], Floats], first: float) -> None:
    n, draw = 4000, np.random.default_rng(4)
    user, time = np.repeat(np.arange(40, dtype=np.int32), n // 40), np.cumsum(draw.integers(1, 99_999, n))
    ids = np.array(["", "a"], object)
    table = Checkins(
        user,
        user * 0 + 1,
        user * 0,
        user + 0.5,
        user + 0.5,
        time,
        np.arange(40).astype(str).astype(object),
        ids,
        ids[1:],
    )
    since = np.diff(time, prepend=0) / unit
    value = np.where(np.diff(user, prepend=-1) != 0, first, form(since))
    assert harmless._gap(value, RelatedVenues(table))
    assert harmless._gap(np.append(value[1:], first), RelatedVenues(table))  # until the next row
    assert not harmless._gap(value + draw.integers(0, 2, n) * 7, RelatedVenues(table))
