"""Example days for the map. The release alone decides which, so that the choice reveals nothing about clean rows."""

from datetime import UTC, datetime
from typing import Any

import numpy as np

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import plain

DAY_S = 86_400
DAWN_S = 4 * 3600  # a day on the map begins at about four in the morning, by the sun
EXAMPLES = 12
GOOD_VENUES, GOOD_CHECKINS, GOOD_SPAN_S = 5, 9, 4 * 3600  # a day that is easy to follow and longer than a few minutes
MOST_CHECKINS = 40
BACKGROUND, NEAR = 3000, 150  # venues drawn in all and around each example: more make the map slow and the page large


def map_data(data: PageData) -> dict[str, Any]:
    """Everything that the map shows, as plain values; positions in km, rounded to ten metres."""
    x, y = data.venues.xy
    days = example_days(data)
    shown = _background(data, days)
    sides = [data.released, *data.compared]
    return {
        "venues": {"x": _rounded(x[shown]), "y": _rounded(y[shown])},
        "methods": list(data.releases)[: len(sides)],
        "examples": [_example(data, rows, sides) for rows in days],
        "clean": data.clean is not None,
    }


def example_days(data: PageData) -> list[Longs]:
    """The rows of a few users' days in time order: days with several venues first, then any others."""
    order = data.by_user
    solar = data.time + int(data.venues.centre[1] * DAY_S / 360) - DAWN_S
    user, date = data.user[order], (solar // DAY_S)[order]
    first = np.append(True, (np.diff(user) != 0) | (np.diff(date) != 0))
    start, day = np.flatnonzero(first), np.cumsum(first) - 1  # of every day of every user; the day of every row
    count = len(data.venues.name)
    stops = np.bincount(np.unique(day * count + data.released[order]) // count)
    length = np.bincount(day)
    span = data.time[order][start + length - 1] - data.time[order][start]
    is_good = (stops >= GOOD_VENUES) & (length <= GOOD_CHECKINS) & (span >= GOOD_SPAN_S)
    rank = np.minimum(stops, GOOD_VENUES) + is_good
    by_rank = np.lexsort((np.arange(len(start)), -rank, user[start]))
    best = by_rank[np.append(True, np.diff(user[start][by_rank]) != 0)]  # the first of the best days of every user
    good = best[rank[best] > GOOD_VENUES]
    if len(good) >= EXAMPLES:
        chosen = good[np.linspace(0, len(good) - 1, EXAMPLES).astype(int)]
    else:
        chosen = best[np.argsort(-rank[best], kind="stable")][:EXAMPLES]
    return [order[start[d] : start[d] + min(int(length[d]), MOST_CHECKINS)] for d in chosen]


def _background(data: PageData, days: list[Longs]) -> Longs:
    """The venues around every example, then the most visited ones, in ascending order."""
    visits = np.bincount(data.released, minlength=len(data.venues.name))
    if data.clean is not None:
        visits += np.bincount(data.clean, minlength=len(visits))
    x, y = data.venues.xy
    first = np.zeros(len(visits), bool)
    for rows in days:
        km = np.hypot(x - x[data.released[rows]].mean(), y - y[data.released[rows]].mean())
        first[np.argsort(np.where(visits > 0, km, np.inf), kind="stable")[:NEAR]] = True
    some = np.lexsort((-visits, ~first))[:BACKGROUND]
    return np.sort(some[visits[some] > 0])


def _example(data: PageData, rows: Longs, sides: list[Ints]) -> dict[str, Any]:
    table = data.main.table
    when = [datetime.fromtimestamp(int(t), UTC) for t in data.time[rows]]
    n = len(rows)
    out: dict[str, Any] = {
        "label": plain(
            f"user {table.user_ids[table.user[rows[0]]]}, {when[0]:%a %d %b %Y}, {n} check-in{'s'[: n > 1]}"
        ),
        "times": [f"{w:%H:%M}" for w in when],
        "sides": [_side(data, side[rows], rows) for side in sides],
    }
    if data.clean is not None:
        out["clean"] = _side(data, data.clean[rows], rows)
        for shown, side in zip(out["sides"], sides, strict=True):
            km = data.venues.km(data.clean[rows], side[rows])
            shown["moved"] = [round(float(k), 2) if v else None for k, v in zip(km, side[rows], strict=True)]
    return out


def _side(data: PageData, venue: Ints, rows: Longs) -> dict[str, Any]:
    """The stops of one side; blanks where that side withholds the row."""
    x, y = data.venues.xy
    return {
        "x": [round(float(x[v]), 2) if v else None for v in venue],
        "y": [round(float(y[v]), 2) if v else None for v in venue],
        "venue": [plain(data.venues.name[v]) if v else "withheld" for v in venue],
        "category": [plain(data.venues.category[v]) if v else "" for v in venue],
        "speed": _speeds(data, venue, rows),
    }


def _speeds(data: PageData, venue: Ints, rows: Longs) -> list[float | None]:
    """km/h from the previous stop; None at the first one."""
    at = np.flatnonzero(venue)
    out: list[float | None] = [None] * len(venue)
    for k, speed in zip(at[1:].tolist(), data.kmh(venue[at], data.time[rows][at]).tolist(), strict=True):
        out[k] = round(speed, 1)
    return out


def _rounded(values: Floats) -> list[float]:
    return [round(float(v), 2) for v in values]
