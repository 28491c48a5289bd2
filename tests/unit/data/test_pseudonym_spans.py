"""Which rows share a pseudonym."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import checkins
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.pseudonyms import DAY_S, WEEK_S, of_rows, of_sessions, own_clock

MONDAY = 345_600  # 1970-01-05
HOUR = 3600
NEW_YORK = -74.0  # 5 hours behind Greenwich


def numbers(rows: list[tuple[int, float]], kind: str, lon: float = 0.0, gap_s: int = DAY_S) -> list[int]:
    """The pseudonyms of check-ins of (user, hours from Monday)."""
    table = checkins([(u, "a", MONDAY + round(h * HOUR), "c", 0.0, lon) for u, h in rows])
    return of_rows(table, kind, gap_s).tolist()  # type: ignore[arg-type]


def test_kept_ids_and_those_of_a_file_are_one_per_user() -> None:
    rows = [(7, 1.0), (3, 2.0), (7, 900.0)]
    assert numbers(rows, "keep") == numbers(rows, "file") == [0, 1, 0]


def test_a_session_ends_at_a_gap_and_at_four_in_the_morning() -> None:
    assert numbers([(0, 5), (0, 14), (0, 27), (0, 28), (0, 30)], "session") == [0, 0, 0, 1, 1]
    assert numbers([(0, 5), (0, 14), (0, 27)], "session", gap_s=8 * HOUR) == [0, 1, 2]
    assert numbers([(1, 9), (0, 5), (1, 3)], "session") == [1, 2, 0]  # numbers go by user and time, not by row


def test_the_day_begins_by_the_sun() -> None:
    assert numbers([(0, 8.9), (0, 9.1)], "session", NEW_YORK) == [0, 1]
    assert numbers([(0, 3.9), (0, 4.1)], "session", NEW_YORK) == [0, 0]


def test_a_week_begins_on_monday() -> None:
    assert numbers([(0, 3), (0, 5), (0, 7 * 24 + 3), (0, 7 * 24 + 5)], "week") == [0, 1, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**7)), min_size=1, max_size=60), st.floats(-180, 180))
def test_no_pseudonym_outlasts_its_day_or_week(rows: list[tuple[int, int]], lon: float) -> None:
    table = checkins([(u, "a", t, "c", 0.0, lon) for u, t in rows])
    for kind, longest in (("session", DAY_S), ("week", WEEK_S)):
        number = of_rows(table, kind, DAY_S)  # type: ignore[arg-type]
        assert set(number) == set(range(number.max() + 1))
        for one in range(number.max() + 1):
            at = number == one
            assert np.ptp(table.time[at]) < longest
            assert len(set(table.user[at])) == 1


def test_sessions_of_a_study_share_a_pseudonym_by_user_by_week_or_not_at_all() -> None:
    """Two users in three weeks: numbers of weeks must not run into those of the next user."""
    week = 7 * 86_400
    user, begins = np.array([0, 0, 0, 1, 1], np.int32), np.array([4, 5, 18, 4, 11]) * 86_400 + week
    sessions = SimpleNamespace(user=user, time=begins, start=np.arange(6))
    found = {kind: of_sessions(sessions, kind).tolist() for kind in ("keep", "file", "session", "week")}  # type: ignore[arg-type]
    assert found["keep"] == found["file"] == [0, 0, 0, 1, 1]
    assert found["session"] == [0, 1, 2, 3, 4]
    assert found["week"] == [0, 0, 1, 2, 3]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 400)), min_size=1, max_size=40),
    st.sampled_from([-180.0, -97.6, -97.4, -7.4, 0.0, 7.6, 139.0]), st.sampled_from([2, 8, 30]),
)  # fmt: skip
def test_pseudonyms_change_at_gaps_days_and_weeks(rows: list[tuple[int, int]], lon: float, gap_hours: int) -> None:
    """One row after the other, at full hours, so that many gaps are exactly as long as they may be."""
    ahead = round(lon / 15) - 4  # hours
    order = sorted(
        range(len(rows)), key=lambda i: (list(dict.fromkeys(u for u, _ in rows)).index(rows[i][0]), rows[i][1], i)
    )
    for kind, hours in (("session", 24), ("week", 7 * 24)):
        expected, number = [0] * len(rows), -1
        last: tuple[int, int] | None = None
        for i in order:
            user, hour = rows[i]
            same = last is not None and last[0] == user and (last[1] + ahead) // hours == (hour + ahead) // hours
            if last is None or not same or (kind == "session" and hour - last[1] > gap_hours):
                number += 1
            expected[i], last = number, (user, hour)
        assert numbers(rows, kind, lon, gap_hours * HOUR) == expected  # type: ignore[arg-type]


def test_no_rows_have_no_pseudonyms() -> None:
    table = checkins([(1, "a", MONDAY, "c", 0.0, 0.0)])
    empty = replace(
        table, **{name: getattr(table, name)[:0] for name in ("user", "venue", "category", "lat", "lon", "time")}
    )
    assert all(not len(of_rows(empty, kind, DAY_S)) for kind in ("keep", "file", "session", "week"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("lon", "hours"), [(10.0, 1), (7.4, 0), (-97.6, -7), (-97.4, -6), (139.0, 9), (180.0, 12)])
def test_one_clock_by_the_median_longitude(lon: float, hours: int) -> None:
    table = checkins([(0, "a", 5, "c", 0.0, one) for one in (-180.0, lon, 180.0)])
    assert own_clock(table).tolist() == [5 + 3600 * hours - 4 * 3600] * 3


@pytest.mark.parametrize("days", [1, 2, 9, 400, 4000])
def test_a_day_has_86400_seconds_and_a_week_seven_days(days: int) -> None:
    second = 1 / 3600
    assert numbers([(0, 24 * days + 4 - second), (0, 24 * days + 4)], "session") == [0, 1]
    assert numbers([(0, 24 * days + 4), (0, 24 * days + 28 - second)], "session") == [0, 0]
    assert numbers([(0, 168 * days + 4 - second), (0, 168 * days + 4)], "week") == [0, 1]
    assert numbers([(0, 168 * days + 4), (0, 168 * days + 172 - second)], "week") == [0, 0]
