"""The summary that `inspect` shows: counts, filters, sessions, candidate coverage, speed.

It is computed from counts that add up, so the regions of a dataset are counted one by one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ghostpoi.data import sessions
from ghostpoi.data.candidates import candidate_sets
from ghostpoi.data.checkins import Checkins, Ints, Longs, duplicates
from ghostpoi.data.geo import over_limit
from ghostpoi.data.places import of_table, with_use
from ghostpoi.data.sessions import FilterStep
from ghostpoi.settings import Settings

PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class Counted:
    """The counts of a table or of one region of a dataset."""

    sums: Counter[str]
    users: int
    users_left: int  # after the filters
    time: tuple[int, int]  # of the first and the last check-in
    categories: frozenset[str]
    category_field: str
    steps: tuple[FilterStep, ...]
    lengths: Longs  # (L+1,) how many sessions have each length


def count(table: Checkins, settings: Settings, may_be_empty: bool = False) -> tuple[Counted, Ints]:
    """Count what a table contains; also return the users that pass the filters. In a region, there may be none."""
    data = sessions.build(table, settings.filters, may_be_empty)
    vocabulary, poi, speed = data.vocabulary, data.all.poi, settings.speed
    places, rule = of_table(table), settings.candidates
    places = with_use(places, table) if rule.category == "learned" else places
    sets = candidate_sets(places.take(vocabulary.venue), rule)
    steps = over_limit(vocabulary.lat[poi], vocabulary.lon[poi], data.all.time, speed.limit_kmh, speed.min_gap_s)
    fast = steps[np.diff(data.all.session_of()) == 0]  # inside sessions
    sums: Counter[str] = Counter(
        {
            "checkins": len(table),
            "pois": len(table.venue_ids) - 1,
            "duplicates": duplicates(table),
            "several_positions": _several_positions(table),
            "checkins_left": int(data.kept.sum()),
            "pois_left": len(vocabulary) - 1,
            "candidates": int(sets.size[1:].sum()),
            "widened": int((sets.radius_km[1:] > settings.candidates.radius_km).sum()),
            "empty": int((sets.size[1:] == 0).sum()),
            "covered": int((sets.size[data.train.poi] > 0).sum()),
            "covered_anywhere": int((sets.size[poi] > 0).sum()),
            "steps": len(fast),
            "fast_steps": int(fast.sum()),
        }
    )
    for name, part in zip(PARTS, (data.train, data.val, data.test), strict=True):
        sums |= Counter({f"sessions_{name}": len(part), f"positions_{name}": part.positions})
    left = np.unique(table.user[data.kept])
    counted = Counted(
        sums, len(table.user_ids), len(left), (int(table.time.min()), int(table.time.max())),
        frozenset(map(str, table.category_ids)), table.category_field, data.steps, np.bincount(data.all.length),
    )  # fmt: skip
    return counted, left


def added(each: Sequence[Counted], users: int, users_left: int) -> Counted:
    """Add up the counts of regions. A user may be in several, so the numbers of users are given."""
    sums: Counter[str] = Counter()
    for one in each:
        sums.update(one.sums)
    lengths = np.zeros(max(len(one.lengths) for one in each), np.int64)
    for one in each:
        lengths[: len(one.lengths)] += one.lengths
    steps = tuple(
        replace(same[0], rows_before=sum(s.rows_before for s in same), rows_after=sum(s.rows_after for s in same))
        for same in zip(*(one.steps for one in each), strict=True)
    )
    return Counted(
        sums, users, users_left, (min(one.time[0] for one in each), max(one.time[1] for one in each)),
        frozenset().union(*(one.categories for one in each)), each[0].category_field, steps, lengths,
    )  # fmt: skip


def summary(c: Counted, settings: Settings) -> dict[str, Any]:
    """Return the summary of what was counted."""
    n, first, last = c.sums, *(f"{np.datetime64(t, 's')}Z" for t in c.time)
    positions = {name: n[f"positions_{name}"] for name in PARTS}
    venues = max(1, n["pois_left"])
    # A short file may have no training session, because a user's only session goes to the test part.
    covered = ("covered", positions["train"]) if positions["train"] else ("covered_anywhere", sum(positions.values()))
    return {
        "checkins": n["checkins"],
        "users": c.users,
        "pois": n["pois"],
        "categories": len(c.categories) if c.category_field else 0,
        "duplicates": n["duplicates"],
        "time": {"first": first, "last": last},
        "pois_with_several_positions": n["several_positions"],
        "filters": [asdict(step) for step in c.steps],
        "after_filters": {"checkins": n["checkins_left"], "users": c.users_left, "pois": n["pois_left"]},
        "sessions": {name: n[f"sessions_{name}"] for name in PARTS},
        "positions": positions,
        "session_length": {
            "mean": sum(positions.values()) / int(c.lengths.sum()),
            "median": _quantile(c.lengths, 0.5),
            "p95": _quantile(c.lengths, 0.95),
            "max": len(c.lengths) - 1,
        },
        "candidates": {
            "mean_size": n["candidates"] / venues,
            "coverage": n[covered[0]] / covered[1],
            "widened": n["widened"] / venues,
            "empty": n["empty"] / venues,
            "min_candidates": settings.candidates.min_candidates,
            "category_field": c.category_field,
        },
        "speed": {"limit_kmh": settings.speed.limit_kmh, "share_over": n["fast_steps"] / max(1, n["steps"])},
    }


def _quantile(lengths: Longs, share: float) -> float:
    """Return an interpolated quantile from counts of lengths, because there may be billions of sessions."""
    place, until = share * (int(lengths.sum()) - 1), np.cumsum(lengths)
    low, high = (int(np.searchsorted(until, at, side="right")) for at in (int(place), int(np.ceil(place))))
    return low + (high - low) * (place - int(place))


def _several_positions(table: Checkins) -> int:
    """Count the venues whose rows do not all have the same coordinates."""
    venues, venue = table.venues, table.venue
    differs = (table.lat != venues.lat[venue]) | (table.lon != venues.lon[venue])
    return len(np.unique(venue[differs]))
