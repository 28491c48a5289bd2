"""Pseudonyms that change with time: which rows share one. The ids themselves are drawn when a release is written."""

from typing import Literal

import numpy as np

from ghostpoi.data.checkins import Ints, Longs, by_user_and_time
from ghostpoi.data.sessions import Sessions

Pseudonyms = Literal["keep", "session", "week"]
WEEK_S = 7 * 86_400
MONDAY_S = 4 * 86_400  # 1970-01-05, the first Monday of Unix time


def of_rows(user: Ints, time: Longs, pseudonyms: Pseudonyms, gap_s: int) -> Longs:
    """Number the pseudonyms of all rows, (N,), from 0.

    A gap longer than `gap_s` between two check-ins of a user ends a session; with `week`, all sessions that begin in
    one week (UTC, from Monday) share a pseudonym. A session never changes its pseudonym.
    """
    if pseudonyms == "keep" or not len(user):
        return user.astype(np.int64)
    order = by_user_and_time(user, time)
    first = np.append(True, (np.diff(user[order]) != 0) | (np.diff(time[order]) > gap_s))
    begins = np.flatnonzero(first)[np.cumsum(first) - 1]  # of the session of each row, an index into `order`
    number = np.empty(len(user), np.int64)
    number[order] = _numbered(user[order], time[order][begins], begins, pseudonyms)
    return number


def of_sessions(sessions: Sessions, pseudonyms: Pseudonyms) -> Longs:
    """Number the pseudonyms of sessions, (S,), from 0."""
    if pseudonyms == "keep":
        return sessions.user.astype(np.int64)
    begins = sessions.start[:-1]
    return _numbered(sessions.user, sessions.time[begins], begins, pseudonyms)


def _numbered(user: Ints, begin_time: Longs, session: Longs, pseudonyms: Pseudonyms) -> Longs:
    week = (begin_time - MONDAY_S) // WEEK_S
    key = session if pseudonyms == "session" else user.astype(np.int64) * (int(np.ptp(week)) + 1) + week - week.min()
    number: Longs = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return number
