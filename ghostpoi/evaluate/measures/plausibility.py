"""Plausibility: how far substitutions move a check-in, and what they change in category and speed."""

from collections.abc import Mapping

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.data.geo import haversine_km, speed_kmh
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.settings import SpeedSettings

NOMINAL_KM = 1.0  # the paper's geographic limit; widened candidate sets go beyond it


def plausibility(clean: Sessions, released: Ints, vocabulary: Vocabulary, rule: SpeedSettings) -> dict[str, float]:
    """Compare clean sessions with the released POIs (N,) of the same positions; every POI lies in 1..P.

    Category match, share beyond 1 km and displacements cover substituted positions only (1 and 0 if there are none).
    Speed violations are the share of steps inside sessions that are faster than the limit.
    """
    if released.shape != clean.poi.shape:
        raise ValueError("the release needs one POI per clean position")
    v = vocabulary
    before, after = clean.poi, released
    changed = before != after
    p, q = before[changed], after[changed]
    km = haversine_km(v.lat[p], v.lon[p], v.lat[q], v.lon[q])
    some = len(km) > 0
    return {
        "substitution_rate": float(changed.mean()) if len(changed) else 0.0,
        "category_match": float((v.category[p] == v.category[q]).mean()) if some else 1.0,
        "beyond_1km": float((km > NOMINAL_KM).mean()) if some else 0.0,
        "mean_km": float(km.mean()) if some else 0.0,
        "p95_km": float(np.percentile(km, 95)) if some else 0.0,
        "speed_violations_clean": _violations(clean, before, v, rule),
        "speed_violations_released": _violations(clean, after, v, rule),
    }


def _violations(sessions: Sessions, poi: Ints, v: Vocabulary, rule: SpeedSettings) -> float:
    at = np.flatnonzero(np.diff(sessions.session_of()) == 0)  # steps from `at` to `at` + 1
    if not len(at):
        return 0.0
    p, q = poi[at], poi[at + 1]
    km = haversine_km(v.lat[p], v.lon[p], v.lat[q], v.lon[q])
    gap = sessions.time[at + 1] - sessions.time[at]
    return float((speed_kmh(km, gap, rule.min_gap_s) > rule.limit_kmh).mean())


def published(measures: Mapping[str, float]) -> dict[str, float]:
    """Round measures for publication: kilometres to two digits, everything else to three.

    An exact quantile would give away the two venue pairs whose distances it lies between.
    """
    return {name: round(value, 2 if name.endswith("_km") else 3) for name, value in measures.items()}
