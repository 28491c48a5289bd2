"""Plausibility: how far substitutions move a check-in, and what they change in category and speed."""

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.data.displacement import displacement
from ghostpoi.data.geo import over_limit
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.settings import SpeedSettings


def plausibility(clean: Sessions, released: Ints, vocabulary: Vocabulary, speed: SpeedSettings) -> dict[str, float]:
    """Compare clean sessions with the released POIs (N,) of the same positions; every POI lies in 1..P.

    Speed violations are the share of steps inside sessions that are faster than the limit.
    """
    if released.shape != clean.poi.shape:
        raise ValueError("the release needs one POI per clean position")
    return displacement(vocabulary, clean.poi, released) | {
        "speed_violations_clean": _violations(clean, clean.poi, vocabulary, speed),
        "speed_violations_released": _violations(clean, released, vocabulary, speed),
    }


def _violations(sessions: Sessions, poi: Ints, v: Vocabulary, speed: SpeedSettings) -> float:
    over = over_limit(v.lat[poi], v.lon[poi], sessions.time, speed.limit_kmh, speed.min_gap_s)
    inside = over[np.diff(sessions.session_of()) == 0]
    return float(inside.mean()) if len(inside) else 0.0
