"""The summary that `inspect` shows: counts, filters, sessions, candidate coverage, speed."""

from dataclasses import asdict
from typing import Any

import numpy as np

from ghostpoi.data import sessions
from ghostpoi.data.checkins import Checkins, duplicates
from ghostpoi.data.geo import over_limit
from ghostpoi.data.learned_candidates import candidate_sets
from ghostpoi.data.places import of_table, with_use
from ghostpoi.settings import Settings


def summarise(table: Checkins, settings: Settings) -> dict[str, Any]:
    """Summarise a table as plain numbers, ready for JSON."""
    data = sessions.build(table, settings.filters)
    vocabulary, poi, speed = data.vocabulary, data.all.poi, settings.speed
    places, rule = of_table(table), settings.candidates
    places = with_use(places, table) if rule.category == "learned" else places
    sets = candidate_sets(places.take(vocabulary.venue), rule)
    times = {"first": table.time.min(), "last": table.time.max()}
    parts = {"train": data.train, "val": data.val, "test": data.test}
    length = data.all.length
    steps = over_limit(vocabulary.lat[poi], vocabulary.lon[poi], data.all.time, speed.limit_kmh, speed.min_gap_s)
    fast = steps[np.diff(data.all.session_of()) == 0]  # inside sessions
    # A short file may have no training session, because a user's only session goes to the test part.
    trained = data.train.poi if data.train.positions else data.all.poi
    return {
        "checkins": len(table),
        "users": len(table.user_ids),
        "pois": len(table.venue_ids) - 1,
        "categories": len(table.category_ids) if table.category_field else 0,
        "duplicates": duplicates(table),
        "time": {name: f"{np.datetime64(int(t), 's')}Z" for name, t in times.items()},
        "pois_with_several_positions": _several_positions(table),
        "filters": [asdict(step) for step in data.steps],
        "after_filters": {
            "checkins": int(data.kept.sum()),
            "users": len(np.unique(table.user[data.kept])),
            "pois": len(vocabulary) - 1,
        },
        "sessions": {name: len(part) for name, part in parts.items()},
        "positions": {name: part.positions for name, part in parts.items()},
        "session_length": {
            "mean": float(length.mean()),
            "median": float(np.quantile(length, 0.5)),  # np.median would import masked arrays
            "p95": float(np.quantile(length, 0.95)),
            "max": int(length.max()),
        },
        "candidates": {
            "mean_size": float(sets.size[1:].mean()),
            "coverage": float((sets.size[trained] > 0).mean()),
            "widened": float((sets.radius_km[1:] > settings.candidates.radius_km).mean()),
            "empty": float((sets.size[1:] == 0).mean()),
            "min_candidates": settings.candidates.min_candidates,
            "category_field": table.category_field,
        },
        "speed": {"limit_kmh": speed.limit_kmh, "share_over": float(fast.mean()) if len(fast) else 0.0},
    }


def _several_positions(table: Checkins) -> int:
    """Count the venues whose rows do not all have the same coordinates."""
    venues, venue = table.venues, table.venue
    differs = (table.lat != venues.lat[venue]) | (table.lon != venues.lon[venue])
    return len(np.unique(venue[differs]))
