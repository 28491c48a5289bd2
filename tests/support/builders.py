"""Sessions made by hand, for all tests."""

from collections.abc import Sequence

import numpy as np

from ghostpoi.data.sessions import Sessions


def flat_sessions(
    poi: np.ndarray, lengths: Sequence[int], user: Sequence[int] | np.ndarray | None = None,
    time: np.ndarray | None = None,
) -> Sessions:  # fmt: skip
    """Sessions of these lengths end to end; by default all of user 0, a second between check-ins."""
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(start[-1])
    who = np.zeros(len(lengths), np.int32) if user is None else np.asarray(user, np.int32)
    return Sessions(who, start, poi[:n].astype(np.int32), np.arange(n) if time is None else time, np.arange(n))


def sessions_of(*pois: Sequence[int], user: Sequence[int] | None = None, gap_s: int = 3600) -> Sessions:
    """One session per argument, `gap_s` between check-ins; each of its own user by default."""
    flat = np.array([p for session in pois for p in session], np.int32)
    who = np.arange(len(pois)) if user is None else user
    return flat_sessions(flat, [len(p) for p in pois], who, np.arange(len(flat)) * gap_s)
