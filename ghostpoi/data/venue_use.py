"""The use of venues, learned from the check-ins alone: the hours of visits, and the time before and after other visits.

In files without categories, two venues of similar use count as the same kind of venue. Ids of users and of neighbouring
venues are ignored: venues share them because they are near each other, not because they are similar. The embedding of
the trajectory LM agrees less with categories (docs/rerun_venue_use.py compares both).
"""

import numpy as np

from ghostpoi.data.checkins import Floats, Ints, Longs

HOURS, DAY_S = 24, 86_400
EPOCH_WEEKDAY = 3  # 1 January 1970 was a Thursday; Monday is 0
WAITS_S = (300, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 64_800, DAY_S)  # bounds; the last bin: a day or more
SPREAD_HOURS = 1.0  # standard deviation by which a visit is spread over the hours around it
PRIOR_VISITS = 5.0  # weight, in visits, of the mean of all venues in the shares of one venue
# The weight of each part. On NYC, the wait after a visit predicts the category better than the wait before it.
WEIGHTS = {"hours": 1.0, "before": 0.3, "after": 0.6}


def learn_use(venue: Ints, time: Longs, user: Ints, rows: int) -> Floats:
    """Describe venues (P+1 = rows) by visits (N,): unit vectors (rows, D); the cosine of two is their similarity.

    A vector holds, for every bin, the logarithm of the venue's share of visits divided by the share of all venues.
    """
    before, after = _waits(time, user)
    counts = {"hours": _hours(venue, time, rows), "before": _binned(venue, before, rows),
              "after": _binned(venue, after, rows)}  # fmt: skip
    parts = []
    for name, weight in WEIGHTS.items():
        part = _surprise(counts[name])
        length = np.linalg.norm(part[1:], axis=1).mean() if rows > 1 else 0.0
        parts.append(part * (weight / length if length else 0.0))
    use = np.concatenate(parts, axis=1)
    use[0] = 0
    unit: Floats = use / np.maximum(np.linalg.norm(use, axis=1, keepdims=True), 1e-12)
    return unit


def _waits(time: Longs, user: Ints) -> tuple[Longs, Longs]:
    """Seconds since the user's previous and until the next visit at another time; DAY_S if more or if there is none."""
    order = np.lexsort((time, user))
    moment = np.ones(len(order), bool)  # the first visit of a user at a time
    moment[1:] = (np.diff(user[order]) != 0) | (np.diff(time[order]) != 0)
    first = order[moment]
    gap = np.where(np.diff(user[first]) == 0, np.minimum(np.diff(time[first]), DAY_S), DAY_S)
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(moment) - 1
    return np.append(DAY_S, gap)[place], np.append(gap, DAY_S)[place]


def _hours(venue: Ints, time: Longs, rows: int) -> Floats:
    """Visits (rows, 2 x HOURS) by hour of the day (UTC), on weekdays and at weekends, spread over the hours around."""
    weekend = (time // DAY_S + EPOCH_WEEKDAY) % 7 >= 5
    column = weekend * HOURS + time // 3600 % HOURS
    counts = np.bincount(venue.astype(np.int64) * 2 * HOURS + column, minlength=rows * 2 * HOURS)
    hour = np.arange(HOURS)
    apart = np.abs(hour[:, None] - hour)
    kernel = np.exp(-0.5 * (np.minimum(apart, HOURS - apart) / SPREAD_HOURS) ** 2)
    spread: Floats = counts.reshape(rows, 2, HOURS) @ (kernel / kernel.sum(axis=1, keepdims=True))
    return spread.reshape(rows, 2 * HOURS)


def _binned(venue: Ints, wait: Longs, rows: int) -> Floats:
    """Visits (rows, bins) by the length of a wait."""
    bins = len(WAITS_S) + 1
    column = np.searchsorted(WAITS_S, wait, side="right")
    return np.bincount(venue.astype(np.int64) * bins + column, minlength=rows * bins).reshape(rows, bins).astype(float)


def _surprise(counts: Floats) -> Floats:
    """The log ratio of a venue's smoothed shares to those of all venues, (rows, bins); 0 in bins without visits."""
    everywhere = counts.sum(axis=0) / max(counts.sum(), 1)
    empty = everywhere == 0
    share = (counts + PRIOR_VISITS * everywhere) / (counts.sum(axis=1, keepdims=True) + PRIOR_VISITS)
    logs: Floats = np.log(np.where(empty, 1, share) / np.where(empty, 1, everywhere))
    return logs
