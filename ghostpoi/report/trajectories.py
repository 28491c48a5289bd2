"""Example days for the map. They are chosen by the release alone, so that the choice tells nothing about clean rows."""

from datetime import UTC, datetime
from typing import Any

import numpy as np

from ghostpoi.data.checkins import Longs
from ghostpoi.data.geo import speed_kmh
from ghostpoi.data.sessions import by_user_and_time
from ghostpoi.report.collect import Collected
from ghostpoi.report.safe import plain

DAY_S = 86_400
DAWN_S = 4 * 3600  # a day on the map begins at about four in the morning, by the sun
EXAMPLES = 12
STOPS = (5, 9)  # venues, and check-ins at most, of a day that is easy to follow
SPAN_S = 4 * 3600  # and that is more than a few minutes
MOST_STOPS = 40
VENUES, NEAR = 3000, 150  # drawn behind the trajectories, and around each: more make the map slow and the page large


def map_data(found: Collected) -> dict[str, Any]:
    """Everything that the map shows, as plain values; positions in km to ten metres."""
    x, y = found.venues.xy
    days = examples(found)
    shown = _background(found, days)
    sides = [found.released, *found.compared]
    names = method_names(found)
    return {
        "venues": {"x": _rounded(x[shown]), "y": _rounded(y[shown])},
        "methods": names[: len(sides)],
        "examples": [_example(found, rows, sides) for rows in days],
        "clean": found.clean is not None,
    }


def method_names(found: Collected) -> list[str]:
    """The methods of all releases; two of one method are told apart by their folders."""
    releases = [found.main, *found.others]
    methods = [r.method for r in releases]
    return [
        plain(f"{r.method} ({r.folder})" if methods.count(r.method) > 1 else r.method) for r in releases
    ]  # fmt: skip


def examples(found: Collected) -> list[Longs]:
    """Rows of a few users' days in time order: days of some variety first, then whatever there is."""
    order = by_user_and_time(found.user, found.time)  # type: ignore[arg-type]
    solar = found.time + int(found.venues.middle[1] * DAY_S / 360) - DAWN_S
    user, date = found.user[order], (solar // DAY_S)[order]
    first = np.append(True, (np.diff(user) != 0) | (np.diff(date) != 0))
    start, day = np.flatnonzero(first), np.cumsum(first) - 1  # of every day of every user; the day of every row
    count = len(found.venues.name)
    stops = np.bincount(np.unique(day * count + found.released[order]) // count)
    length = np.bincount(day)
    span = found.time[order][start + length - 1] - found.time[order][start]
    rank = np.minimum(stops, STOPS[0]) + ((stops >= STOPS[0]) & (length <= STOPS[1]) & (span >= SPAN_S))
    by_rank = np.lexsort((np.arange(len(start)), -rank, user[start]))
    best = by_rank[np.append(True, np.diff(user[start][by_rank]) != 0)]  # one day of every user, the first of its best
    good = best[rank[best] > STOPS[0]]
    if len(good) >= EXAMPLES:
        chosen = good[np.linspace(0, len(good) - 1, EXAMPLES).astype(int)]
    else:
        chosen = best[np.argsort(-rank[best], kind="stable")][:EXAMPLES]
    return [order[start[d] : start[d] + min(int(length[d]), MOST_STOPS)] for d in chosen]


def _background(found: Collected, days: list[Longs]) -> Longs:
    """The venues around every example, then the most visited, of what the page may show, in order."""
    visits = np.bincount(found.released, minlength=len(found.venues.name))
    if found.clean is not None:
        visits += np.bincount(found.clean, minlength=len(visits))
    x, y = found.venues.xy
    first = np.zeros(len(visits), bool)
    for rows in days:
        middle = x[found.released[rows]].mean(), y[found.released[rows]].mean()
        km = np.hypot(x - middle[0], y - middle[1])
        first[np.argsort(np.where(visits > 0, km, np.inf), kind="stable")[:NEAR]] = True
    some = np.lexsort((-visits, ~first))[:VENUES]
    return np.sort(some[visits[some] > 0])


def _example(found: Collected, rows: Longs, sides: list[Longs]) -> dict[str, Any]:
    table = found.main.table
    when = [datetime.fromtimestamp(int(t), UTC) for t in found.time[rows]]
    n = len(rows)
    out: dict[str, Any] = {
        "label": plain(f"user {table.users[table.user[rows[0]]]}, {when[0]:%a %d %b %Y}, {n} check-in{'s'[: n > 1]}"),
        "times": [f"{w:%H:%M}" for w in when],
        "sides": [_side(found, side[rows], rows) for side in sides],
    }
    if found.clean is not None:
        out["clean"] = _side(found, found.clean[rows], rows)
        for shown, side in zip(out["sides"], sides, strict=True):
            here = side[rows] >= 0
            km = found.venues.km(found.clean[rows], np.where(here, side[rows], 0))
            shown["moved"] = [round(float(k), 2) if h else None for k, h in zip(km, here, strict=True)]
    return out


def _side(found: Collected, poi: Longs, rows: Longs) -> dict[str, Any]:
    """The stops of one side; where that side withholds the row, nothing."""
    x, y = found.venues.xy
    here = (poi >= 0).tolist()
    return {
        "x": [v if h else None for v, h in zip(_rounded(x[poi]), here, strict=True)],
        "y": [v if h else None for v, h in zip(_rounded(y[poi]), here, strict=True)],
        "venue": [plain(found.venues.name[p]) if h else "withheld" for p, h in zip(poi, here, strict=True)],
        "category": [plain(found.venues.category[p]) if h else "" for p, h in zip(poi, here, strict=True)],
        "speed": _speeds(found, poi, rows),
    }


def _speeds(found: Collected, poi: Longs, rows: Longs) -> list[float | None]:
    """km/h from the stop before; none at the first."""
    at = np.flatnonzero(poi >= 0)
    km = found.venues.km(poi[at[:-1]], poi[at[1:]])
    fast = speed_kmh(km, np.diff(found.time[rows][at]), float(found.main.manifest["speed"]["min_gap_s"]))
    out: list[float | None] = [None] * len(poi)
    for k, speed in zip(at[1:].tolist(), fast.tolist(), strict=True):
        out[k] = round(speed, 1)
    return out


def _rounded(values: Any) -> list[float]:
    return [round(float(v), 2) for v in values]
