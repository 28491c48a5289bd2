"""Plausibility: how far substitutions move a check-in, and what they change in category and speed."""

import numpy as np

from ghostpoi.data.checkins import Bools, Ints
from ghostpoi.data.displacement import displacement
from ghostpoi.data.geo import over_limit
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.settings import SpeedSettings

PLAUSIBILITY_VERSION = 1  # raised whenever the same input gives other measures


def plausibility(clean: Sessions, released: Ints, vocabulary: Vocabulary, speed: SpeedSettings) -> dict[str, float]:
    """Compare clean sessions with the released POIs (N,) of the same positions; every POI lies in 1..P.

    Speed violations are the share of steps inside sessions that are faster than the limit.
    """
    if released.shape != clean.poi.shape:
        raise ValueError("the release needs one POI per clean position")
    found = displacement(vocabulary, clean.poi, released)
    for name, poi in (("clean", clean.poi), ("released", released)):
        over = steps_over_limit(clean, poi, vocabulary, speed)
        found[f"speed_violations_{name}"] = float(over.mean()) if len(over) else 0.0
    return found


def steps_over_limit(sessions: Sessions, poi: Ints, vocabulary: Vocabulary, speed: SpeedSettings) -> Bools:
    """Mark the steps inside sessions that are faster than the limit, if these POIs (N,) stand at their positions."""
    over: Bools = over_limit(vocabulary.lat[poi], vocabulary.lon[poi], sessions.time, speed.limit_kmh, speed.min_gap_s)
    inside: Bools = np.diff(sessions.session_of()) == 0
    return over[inside]
