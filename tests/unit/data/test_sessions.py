"""Filters, segmentation, vocabulary and split, for tables that are small enough to check by hand."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from builders import sessions_of
from conftest import checkins
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.checkins import Checkins, by_user_and_time
from ghostpoi.data.sessions import Sessions, build, split
from ghostpoi.errors import InputError
from ghostpoi.settings import FilterSettings

DAY = 86_400
ANY = {"min_poi_checkins": 1, "min_user_checkins": 1, "min_session_length": 1}


def rows(sessions: Sessions) -> list[list[int]]:
    """The rows of the table in each session."""
    return [part.tolist() for part in np.split(sessions.row, sessions.start[1:-1])] if len(sessions) else []


def test_a_gap_of_exactly_a_day_does_not_split() -> None:
    table = checkins([("u", "p", 0), ("u", "q", DAY), ("u", "p", 2 * DAY + 1), ("u", "p", 2 * DAY + 2)])
    data = build(table, FilterSettings(**ANY))
    assert rows(data.all) == [[0, 1], [2, 3]]
    assert data.all.start.tolist() == [0, 2, 4]
    assert data.all.length.tolist() == [2, 2]
    assert data.all.session_of().tolist() == [0, 0, 1, 1]
    assert data.all.time.tolist() == [0, DAY, 2 * DAY + 1, 2 * DAY + 2]
    assert rows(build(table, FilterSettings(**ANY, session_gap_s=1)).all) == [[0], [1], [2, 3]]


def test_sessions_are_by_user_and_time_and_equal_times_keep_the_order_of_the_file() -> None:
    table = checkins([("b", "x", 9), ("a", "x", 5), ("b", "y", 5), ("a", "y", 5), ("a", "z", 4), ("b", "z", 5)])
    data = build(table, FilterSettings(**ANY))
    assert rows(data.all) == [[2, 5, 0], [4, 1, 3]]  # b appears first in the file
    assert [table.user_ids[u] for u in data.all.user] == ["b", "a"]


def test_the_vocabulary_numbers_kept_pois_from_1() -> None:
    table = checkins(
        [
            ("u", "rare", 0, "c1", 1.0, 1.0),
            ("u", "p", 5, "c2", 2.0, 3.0),
            ("u", "q", 2, "c1", 4.0, 5.0),
            ("u", "q", 1, "c3", 6.0, 7.0),  # the first in time: its attributes count
            ("u", "p", 6, "c2", 2.5, 3.5),
        ]
    )
    data = build(table, FilterSettings(2, 1, DAY, 1))
    vocabulary = data.vocabulary
    assert len(vocabulary) == 3
    assert vocabulary.venue.tolist() == [0, 2, 3]
    assert vocabulary.category.tolist() == [-1, 1, 2]  # c2, and c3, which is new here
    assert np.array_equal(vocabulary.lat, [np.nan, 2.0, 6.0], equal_nan=True)
    assert np.array_equal(vocabulary.lon, [np.nan, 3.0, 7.0], equal_nan=True)
    assert [a.dtype for a in (vocabulary.lat, vocabulary.category, vocabulary.venue)] == [
        np.float64,
        np.int32,
        np.int32,
    ]
    assert data.all.poi.tolist() == [2, 2, 1, 1]
    assert rows(data.all) == [[3, 2, 1, 4]]
    assert data.kept.tolist() == [False, True, True, True, True]


def test_venues_are_filtered_before_users_and_nothing_is_filtered_again() -> None:
    table = checkins(
        [
            ("a", "p", 0),
            ("a", "p", 1),
            ("a", "q", 2),
            ("b", "p", 3),
            ("b", "rare", 4),
            ("a", "q", 5),
            ("a", "q", 6 + DAY * 2),
        ]
    )
    data = build(table, FilterSettings(3, 2, DAY, 2))
    # Dropped: venue rare, then user b with one check-in left, then the last session. Venue p stays with two check-ins.
    assert [(s.step, s.rows_before, s.rows_after, s.why) for s in data.steps] == [
        ("min_poi_checkins", 7, 6, "venues with fewer than 3 check-ins"),
        ("min_user_checkins", 6, 5, "users with fewer than 2 check-ins left"),
        ("min_session_length", 5, 4, "sessions with fewer than 2 check-ins"),
    ]
    assert data.kept.tolist() == [True, True, True, False, False, True, True]
    assert rows(data.all) == [[0, 1, 2, 5]]
    assert len(data.vocabulary) == 3


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9, 10, 14, 15, 19, 20, 35])
def test_the_split_takes_whole_shares_in_time_order(n: int) -> None:
    table = checkins([("u", "p", 2 * DAY * s + i) for s in reversed(range(n)) for i in range(3)])
    data = build(table, FilterSettings(1, 1, DAY, 3))
    train, val = int(0.8 * n), int(0.1 * n)
    assert [len(part) for part in (data.train, data.val, data.test)] == [train, val, n - train - val]
    starts = np.concatenate([part.time[part.start[:-1]] for part in (data.train, data.val, data.test)])
    assert starts.tolist() == [2 * DAY * s for s in range(n)]
    assert data.train.positions == 3 * train


def test_each_user_is_split_alone() -> None:
    table = checkins([(u, "p", 2 * DAY * s) for u, n in (("a", 10), ("b", 1), ("c", 5)) for s in range(n)])
    data = build(table, FilterSettings(**ANY))
    assert [Counter(part.user.tolist()) for part in (data.train, data.val, data.test)] == [
        {0: 8, 2: 4}, {0: 1}, {0: 1, 1: 1, 2: 1},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"min_poi_checkins": 4},
            "'min_poi_checkins' leaves nothing of 3 check-ins (venues with fewer than 4 check-ins)"
            "; lower it with --set filters.min_poi_checkins=2",
        ),
        (
            {"min_poi_checkins": 4, "file": [("u", "p", 0), ("v", "q", 1)]},
            "'min_poi_checkins' leaves nothing of 2 check-ins (venues with fewer than 4 check-ins)"
            "; lower it with --set filters.min_poi_checkins=1",
        ),
        (
            {"min_user_checkins": 9},
            "'min_user_checkins' leaves nothing of 3 check-ins (users with fewer than 9 check-ins left)"
            "; lower it with --set filters.min_user_checkins=3",
        ),
        (
            {"min_session_length": 3},
            "'min_session_length' leaves nothing of 3 check-ins (sessions with fewer than 3 check-ins)"
            "; lower it with --set filters.min_session_length=2 or raise filters.session_gap_s",
        ),
    ],
)
def test_a_filter_that_leaves_nothing_says_which_and_what_to_change(settings: dict[str, Any], message: str) -> None:
    settings = dict(settings)
    table = checkins(settings.pop("file", [("u", "p", 0), ("u", "q", 1), ("u", "p", 3 * DAY)]))
    with pytest.raises(InputError) as error:
        build(table, FilterSettings(**ANY | settings))
    assert str(error.value) == f"the table: the filter {message}"
    name, value = message.split("--set filters.")[1].split()[0].split("=")
    assert build(table, FilterSettings(**ANY | {name: int(value)})).all.positions  # the remedy works


def test_shares_beyond_the_whole_are_refused() -> None:
    with pytest.raises(InputError, match=r"filters\.train_share and filters\.val_share add up to more than 1"):
        build(checkins([("u", "p", 0)]), FilterSettings(**ANY, val_share=0.3))
    assert not len(build(checkins([("u", "p", 0)]), FilterSettings(**ANY, val_share=0.2)).train)  # no test sessions


def test_far_times_and_many_users_sort_alike() -> None:
    rng = np.random.default_rng(0)
    user = rng.integers(0, 2**31 - 1, 500).astype(np.int32)
    user[1:400:2] = user[0]
    time = rng.choice(np.array([0, 1, -(2**60), 2**60]), 500)
    expected = sorted(range(500), key=lambda i: (user[i], time[i], i))
    assert by_user_and_time(user, time).tolist() == expected
    near = rng.integers(0, 9, 500)
    assert by_user_and_time(user, near).tolist() == sorted(range(500), key=lambda i: (user[i], near[i], i))


def test_taking_no_session_leaves_empty_arrays() -> None:
    data = build(checkins([("u", "p", 0)]), FilterSettings(**ANY))
    none = data.all.take(np.array([False]))
    assert (len(none), none.positions, none.start.tolist()) == (0, 0, [0])


def test_steps_lead_from_one_position_of_a_session_to_a_later_one() -> None:
    sessions = sessions_of([7, 8, 9], [5], [6, 6])
    assert sessions.steps().tolist() == [0, 1, 4]
    assert sessions.steps(2).tolist() == [0]
    assert sessions.steps(3).tolist() == []


def test_sessions_are_taken_in_the_order_that_is_asked_for() -> None:
    sessions = sessions_of([7, 8, 9], [5], [6, 4], user=[3, 4, 5])
    found = sessions.take(np.array([2, 0]))
    assert (found.user.tolist(), found.start.tolist()) == ([5, 3], [0, 2, 5])
    assert (found.poi.tolist(), found.row.tolist()) == ([6, 4, 7, 8, 9], [4, 5, 0, 1, 2])


@st.composite
def tables(draw: st.DrawFn) -> Checkins:
    time = st.integers(0, 40).map(lambda step: step * DAY // 3)
    return checkins(draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), time), min_size=1, max_size=60)))


@given(tables(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_sessions_keep_their_promises(table: Checkins, pois: int, users: int, length: int) -> None:
    visits = Counter(table.venue.tolist())
    kept = [i for i in range(len(table)) if visits[table.venue[i]] >= pois]
    left = Counter(table.user[kept].tolist())
    kept = [i for i in kept if left[table.user[i]] >= users]
    expected: list[list[int]] = []
    for i in sorted(kept, key=lambda i: (table.user[i], table.time[i], i)):
        last = expected[-1][-1] if expected else None
        if last is None or table.user[last] != table.user[i] or table.time[i] - table.time[last] > DAY:
            expected.append([])
        expected[-1].append(i)
    expected = [session for session in expected if len(session) >= length]
    if not expected:
        with pytest.raises(InputError, match="leaves nothing"):
            build(table, FilterSettings(pois, users, DAY, length))
        return
    data = build(table, FilterSettings(pois, users, DAY, length))
    assert rows(data.all) == expected
    assert sorted(rows(data.train) + rows(data.val) + rows(data.test)) == sorted(expected)
    for part in (data.train, data.val, data.test):
        assert np.array_equal(data.vocabulary.venue[part.poi], table.venue[part.row])
        assert np.array_equal(part.user[part.session_of()], table.user[part.row])
        assert np.array_equal(part.time, table.time[part.row])


def test_windows_test_disjoint_sessions_and_train_on_what_comes_before() -> None:
    """Ten sessions of user 0, four of user 1, two of user 2: by window, the parts of each."""
    user, settings = np.repeat([0, 1, 2], [10, 4, 2]), FilterSettings()
    expected = (
        "0000000012" + "0002" + "02",
        "0000000123" + "0023" + "33",  # user 2 has nothing left to train on
        "0000001233" + "0233" + "33",
        "0000012333" + "3333" + "33",
    )
    for window, parts in enumerate(expected):
        assert split(user, settings, window).tolist() == [int(part) for part in parts]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(0, 4))
def test_no_session_is_tested_in_two_windows(counts: list[int], windows: int) -> None:
    user = np.repeat(np.arange(len(counts)), counts)
    tested = sum((split(user, FilterSettings(), window) == 2).astype(int) for window in range(windows + 1))
    assert np.max(tested) <= 1
