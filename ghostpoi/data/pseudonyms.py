"""Pseudonyms: which rows share one. The ids themselves are drawn when a release is written."""

from typing import Literal

import numpy as np

from ghostpoi.data.checkins import Checkins, Longs, by_user_and_time
from ghostpoi.data.sessions import Sessions

Pseudonyms = Literal["keep", "file", "session", "week"]
CHANGING = ("session", "week")  # those of which a person has several
DAY_S, WEEK_S = 86_400, 7 * 86_400
DAY_BEGINS_S = 4 * 3600  # few are on their way then
MONDAY_S = 4 * 86_400  # 1970-01-05, the first Monday of Unix time


def of_rows(table: Checkins, pseudonyms: Pseudonyms, gap_s: int) -> Longs:
    """Number the pseudonyms of all rows, (N,), from 0, by user and time.

    A gap longer than `gap_s` between two check-ins of a user ends a session, and so does a new day; without a new
    day, people with a check-in every few hours would keep a pseudonym for months. With `week`, all rows of a user and
    a week, from Monday, share a pseudonym.
    """
    if pseudonyms not in CHANGING or not len(table):
        return table.user.astype(np.int64)
    order = by_user_and_time(table.user, table.time)
    user, time = table.user[order], own_clock(table)[order]
    week = pseudonyms == "week"
    first = np.append(True, (np.diff(user) != 0) | (np.diff((time - MONDAY_S) // (WEEK_S if week else DAY_S)) != 0))
    if not week:
        first[1:] |= np.diff(time) > gap_s
    number = np.empty(len(user), np.int64)
    number[order] = np.cumsum(first) - 1
    return number


def own_clock(table: Checkins) -> Longs:
    """Return the times of a table, (N,), in seconds of a clock whose days begin at 4 a.m. of its solar time.

    All rows have one clock, by the median longitude in steps of 15 degrees, so that files of one city agree.
    """
    return table.time + 3600 * round(float(np.median(table.lon)) / 15) - DAY_BEGINS_S


def of_sessions(sessions: Sessions, pseudonyms: Pseudonyms) -> Longs:
    """Number the pseudonyms of sessions, (S,), from 0. Sessions of a study are not cut."""
    if pseudonyms not in CHANGING:
        return sessions.user.astype(np.int64)
    user, key = sessions.user.astype(np.int64), sessions.start[:-1]
    if pseudonyms == "week":
        week = (sessions.time[key] - MONDAY_S) // WEEK_S
        key = user * (int(np.ptp(week)) + 1) + week
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
