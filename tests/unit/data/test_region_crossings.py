"""Sessions end where a user leaves a region, also if the first row in the new region is filtered out."""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from conftest import checkins
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.checkins import Bools, Checkins, Ints, Longs, concatenated
from ghostpoi.data.sessions import Sessions, build
from ghostpoi.regions.divide import crossing
from ghostpoi.settings import FilterSettings

DAY = 86_400
ANY = FilterSettings(1, 1, DAY, 1)


def rows(sessions: Sessions) -> list[list[int]]:
    """The rows of the table in each session."""
    return [part.tolist() for part in np.split(sessions.row, sessions.start[1:-1])]


def part_of(table: Checkins, region: Ints, r: int) -> Checkins:
    """The rows of one region as a table of its own."""
    here = np.flatnonzero(region == r)
    part = checkins([(table.user[i], table.venue[i], table.time[i]) for i in here])
    return replace(part, crossing=crossings(table.user, table.time, region)[here])


def crossings(user: Ints, time: Longs, region: Ints) -> Bools:
    """Mark the rows whose user was in another region in the row before."""
    rows = pl.DataFrame({"user": user, "time": time, "region": region}).with_row_index("row")
    return np.isin(np.arange(len(user)), crossing(rows)["row"])


def test_a_session_ends_where_a_region_ends() -> None:
    table = checkins([("u", "home", t) for t in range(4)] + [("v", "home", 9)])
    plain = build(table, ANY)
    assert rows(plain.all) == [[0, 1, 2, 3], [4]]
    cut = build(replace(table, crossing=np.array([False, False, True, False, False])), ANY)
    assert rows(cut.all) == [[0, 1], [2, 3], [4]]
    assert cut.all.user.tolist() == [0, 0, 1]
    none = build(replace(table, crossing=np.zeros(5, bool)), ANY)
    assert rows(none.all) == rows(plain.all)


def test_a_dropped_row_still_ends_the_session() -> None:
    table = checkins([("u", "p", 0), ("u", "p", 1), ("u", "rare", 2), ("u", "p", 3), ("u", "p", 4)])
    crossing = np.array([False, False, True, False, False])
    twice = FilterSettings(2, 1, DAY, 1)
    assert rows(build(table, twice).all) == [[0, 1, 3, 4]]
    assert rows(build(replace(table, crossing=crossing), twice).all) == [[0, 1], [3, 4]]


def test_tables_that_are_put_together_have_no_crossings() -> None:
    table = checkins([("u", "p", 0)])
    assert table.crossing is None
    assert concatenated([table, table], "both").crossing is None


@pytest.mark.parametrize(
    ("user", "time", "region", "expected"),
    [
        ("aaa", [0, 1, 2], [5, 5, 5], [0, 0, 0]),
        ("aaaa", [0, 1, 2, 3], [5, 6, 6, 5], [0, 1, 0, 1]),
        ("aaaa", [3, 2, 1, 0], [5, 6, 6, 5], [1, 0, 1, 0]),  # in the order of time, not of the file
        ("aaa", [7, 7, 7], [1, 2, 1], [0, 1, 1]),  # equal times keep the order of the file
        ("abab", [0, 1, 2, 3], [1, 2, 1, 2], [0, 0, 0, 0]),  # each user alone
        ("a", [0], [3], [0]),
        ("", [], [], []),
    ],
)
def test_crossings(user: str, time: list[int], region: list[int], expected: list[int]) -> None:
    who = np.array([ord(one) for one in user], np.int32)
    found = crossings(who, np.array(time, np.int64), np.array(region, np.int32))
    assert found.dtype == bool
    assert found.tolist() == expected


@st.composite
def travels(draw: st.DrawFn) -> tuple[Checkins, Ints]:
    row = st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 12).map(lambda step: step * DAY // 2))
    table = checkins(draw(st.lists(row, min_size=1, max_size=50)))
    return table, (table.venue % 3).astype(np.int32)  # the region of each row


@given(travels(), st.integers(1, 4))
def test_each_region_has_its_pieces_of_the_sessions(travel: tuple[Checkins, Ints], visits: int) -> None:
    table, region = travel
    often = Counter(table.venue.tolist())
    expected: dict[int, list[list[int]]] = {0: [], 1: [], 2: []}
    before, open_session = None, False
    for i in sorted(range(len(table)), key=lambda i: (table.user[i], table.time[i], i)):
        pieces = expected[int(region[i])]
        if before is None or table.user[before] != table.user[i] or region[before] != region[i]:
            open_session = False
        if often[int(table.venue[i])] >= visits:
            if not open_session or table.time[i] - table.time[pieces[-1][-1]] > DAY:
                pieces.append([])
            pieces[-1].append(i)
            open_session = True
        before = i
    for r, pieces in expected.items():
        if pieces:
            data = build(part_of(table, region, r), FilterSettings(visits, 1, DAY, 1))
            of_part = np.flatnonzero(region == r)
            assert sorted(of_part[session].tolist() for session in rows(data.all)) == sorted(pieces)
