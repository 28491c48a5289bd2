"""Test what a kept column shows of the clean time, where a release has other times.

A column is harmless if it follows from the released time as it followed from the clean one, such as a date next to
times that are cut to the hour. Otherwise it must not follow the order of the clean times, nor predict them.
"""

from dataclasses import replace

import numpy as np
import polars as pl

from ghostpoi.columns.dependence import value_codes
from ghostpoi.columns.harmless import all_numbers, follows_from_time
from ghostpoi.columns.related import ERRORS, RelatedVenues
from ghostpoi.data.checkins import Checkins, Floats, Longs

FEWEST = 30  # pairs of rows
RISING = 0.1  # largest allowed excess of pairs in which time and value rise together
EXPLAINED = 0.01  # largest allowed share of the variance of hidden times that values explain beyond chance
RECURS = 5  # rows of a value
HOUR_S, DAY_S = 3600, 86_400
PAIRS = 20_000


def shows_time(column: pl.Series, table: Checkins, shown: Longs) -> str | None:
    """Return how a column shows the clean times of a table that is released with times `shown`, (N,), or None."""
    code = value_codes(column)
    if not code.max():
        return None
    before, after = (RelatedVenues(one) for one in (table, replace(table, time=shown)))
    if follows_from_time(column, table, before) and not follows_from_time(column, after.table, after):
        return "repeats the time"
    number = all_numbers(column)
    value = column.cast(pl.String).rank("dense").fill_null(0).to_numpy() if number is None else number
    if any(_rises(value.astype(float), table.time, pairs) for pairs in _pairs(table, shown)):
        return "follows the order of the clean times"
    hidden = table.time - shown
    if (np.abs(hidden) >= DAY_S).any():  # sessions moved; one row of a user's day is as good as all
        rows = np.unique(np.stack([table.user, table.time // DAY_S]), axis=1, return_index=True)[1]
        code, shown, hidden = code[rows], shown[rows], table.time[rows] // (7 * DAY_S)
    hours = (shown // HOUR_S % 24, shown // HOUR_S % (7 * 24))
    return "predicts the clean time" if any(_explains(code, hidden, hour) for hour in hours) else None


def _pairs(table: Checkins, shown: Longs) -> list[tuple[Longs, Longs]]:
    """Return pairs of rows whose order the released times hide: of all rows, and of the rows of each user."""
    draw, found = np.random.default_rng(0), []
    everybody = np.zeros(len(table), np.int64)
    for group in (everybody, table.user):
        if (np.abs(table.time - shown) >= DAY_S).any():  # sessions moved: any two days
            one, two = (np.lexsort((draw.random(len(group)), group)) for _ in range(2))
            hides = np.abs(table.time[one] - table.time[two]) >= DAY_S
        else:
            order = np.lexsort((table.time, group))
            one, two = order[:-1], order[1:]
            hides = shown[one] == shown[two]
        at = np.flatnonzero(hides & (group[one] == group[two]) & (table.time[one] != table.time[two]))
        at = draw.permutation(at)[:PAIRS]
        found.append((one[at], two[at]))
    return found


def _rises(value: Floats, time: Longs, pairs: tuple[Longs, Longs]) -> bool:
    """Return whether values rise with the time in far more pairs than they fall, or the reverse."""
    sign = np.sign(value[pairs[1]] - value[pairs[0]]) * np.sign(time[pairs[1]] - time[pairs[0]])
    sign = sign[np.isfinite(sign)]
    if np.count_nonzero(sign) < FEWEST:
        return False
    days = len(np.unique(time[np.concatenate(pairs)] // DAY_S))  # rows of one day are no further evidence
    return bool(abs(sign.mean()) > max(RISING, ERRORS / np.sqrt(days)))


def _explains(code: Longs, hidden: Longs, hour: Longs) -> bool:
    """Return whether values, at each hour, explain the hidden part of the time beyond chance.

    Next to UTC times, a local hour shows whether clocks were on summer time.
    """
    often = np.flatnonzero(np.bincount(code)[code] >= RECURS)
    if len(often) < FEWEST:
        return False
    code, hour, hidden = code[often], hour[often], hidden[often]
    order = np.lexsort((np.random.default_rng(0).random(len(often)), hour))
    shuffled = np.empty_like(code)
    shuffled[np.argsort(hour, kind="stable")] = code[order]
    rest = hidden - _mean(hour, hidden)
    total = float((rest**2).sum())
    if not total:
        return False
    own, chance = (float((_mean(hour * (int(code.max()) + 1) + one, rest) ** 2).sum()) / total
                   for one in (code, shuffled))  # fmt: skip
    error = np.sqrt(2 * len(np.unique(hour * (int(code.max()) + 1) + code))) / len(code)
    return bool(own - chance > max(EXPLAINED, ERRORS * error))


def _mean(group: Longs, value: Longs | Floats) -> Floats:
    """Return the mean of the values in each row's group, (N,)."""
    number = np.unique(group, return_inverse=True)[1]
    return (np.bincount(number, value) / np.bincount(number))[number]
