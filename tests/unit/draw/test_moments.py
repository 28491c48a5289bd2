"""The order of rows, and rows that are released at one venue."""

from dataclasses import replace

import numpy as np
from conftest import checkins
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Checkins, duplicates
from ghostpoi.draw.whole_table import RowOrder, sessions_of
from ghostpoi.settings import FilterSettings

VENUES = "abcdef"
SHARED = ("abc", "de")  # crowds; f is alone
ROWS = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(VENUES), st.integers(0, 3)), min_size=1, max_size=30)
Row = tuple[str, str, int]


def table(rows: list[Row]) -> Checkins:
    return checkins([(user, venue, time, "c", float(ord(venue) - 97), 0.0) for user, venue, time in rows])


def crowds(table: Checkins) -> Candidates:
    number = {name: v for v, name in enumerate(table.venue_ids)}
    poi = np.zeros((len(number), 3), np.int32)
    for crowd in SHARED:
        members = [number[name] for name in crowd if name in number]
        for venue in members:
            poi[venue, : len(members)] = members if len(members) > 1 else 0
    return Candidates(poi, np.zeros(len(poi)))


def crowd_of(venue: str) -> str:
    return next((crowd for crowd in SHARED if venue in crowd), venue)


@given(ROWS)
def test_rows_of_one_user_time_and_set_follow_one_of_them(rows: list[Row]) -> None:
    asked = table(rows)
    found = RowOrder.of(asked, crowds(asked), np.zeros(len(rows), bool))
    moments = [(user, time, crowd_of(venue)) for user, venue, time in rows]
    assert sorted(found.row.tolist()) == list(range(len(rows)))
    assert [moments[row] for row in found.first] == moments
    assert len(set(found.first.tolist())) == len(set(moments)) == len(found.leading)
    ordered = [moments[row][:2] for row in found.row]
    assert ordered == sorted(ordered)


@given(ROWS, st.randoms())
def test_the_order_of_the_file_does_not_matter(rows: list[Row], random: object) -> None:
    other = list(rows)
    random.shuffle(other)  # type: ignore[attr-defined]

    def content(rows: list[Row]) -> tuple[list[Row], list[Row], set[tuple[Row, Row]]]:
        asked = table(rows)
        found = RowOrder.of(asked, crowds(asked), np.zeros(len(rows), bool))
        follows = {(row, rows[first]) for row, first in zip(rows, found.first, strict=True)}
        data = sessions_of(asked, FilterSettings(1, 1, 86_400, 1), may_be_empty=False)
        return [rows[row] for row in found.row], [rows[row] for row in found.arranged(data.all).row], follows

    assert content(rows) == content(other)


@given(ROWS)
def test_sessions_keep_their_meaning_in_another_order(rows: list[Row]) -> None:
    asked = table(rows)
    data = sessions_of(asked, FilterSettings(1, 1, 1, 1), may_be_empty=False)
    found = RowOrder.of(asked, crowds(asked), np.zeros(len(rows), bool)).arranged(data.all)
    assert (data.vocabulary.venue[found.poi] == asked.venue[found.row]).all()
    assert (asked.user[found.row] == np.repeat(found.user, found.length)).all()
    assert (asked.time[found.row] == found.time).all()
    assert (np.nan_to_num(data.vocabulary.lat)[1:] == asked.venues.lat[data.vocabulary.venue[1:]]).all()


def test_a_decided_row_decides_for_the_others() -> None:
    asked = table([("x", "a", 1), ("x", "b", 1), ("x", "a", 1), ("x", "d", 1), ("x", "b", 2)])
    decided = np.array([False, True, False, False, False])
    found = RowOrder.of(asked, crowds(asked), decided)
    assert found.first.tolist() == [1, 1, 1, 3, 4]
    assert found.leading.tolist() == [1, 3, 4]


def test_sessions_lose_rows_that_follow_and_not_their_ends() -> None:
    asked = table([("x", "a", 1), ("x", "a", 1), ("x", "f", 2), ("y", "d", 1), ("y", "d", 1)])
    data = sessions_of(asked, FilterSettings(1, 1, 10, 1), may_be_empty=False)
    found = RowOrder.of(asked, crowds(asked), np.zeros(5, bool)).without_followers(data.all)
    assert found.row.tolist() == [0, 2, 3]
    assert found.start.tolist() == [0, 2, 3]
    assert asked.user_ids[found.user].tolist() == ["x", "y"]
    nothing = replace(data.all, row=data.all.row)
    order = RowOrder(np.arange(5), np.arange(5))
    assert order.without_followers(nothing) is nothing


@given(ROWS)
def test_duplicates_are_counted(rows: list[Row]) -> None:
    assert duplicates(table(rows)) == len(rows) - len(set(rows))
