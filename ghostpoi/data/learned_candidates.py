"""Candidate sets of nearby venues that are used alike, where no category says what is of the same kind."""

from collections.abc import Iterator

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data import candidates
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.geo import chord, haversine_km, unit_sphere
from ghostpoi.data.places import Places
from ghostpoi.settings import CandidateSettings

ANCHORS, PAIRS = 512, 1 << 22  # anchors per block, and pairs with venues around: they bound the memory
DECIMALS = 9  # of a similarity, so that the rounding of a machine decides nothing


def candidate_sets(places: Places, rule: CandidateSettings) -> Candidates:
    """Find C0 of every place by what the rule follows: its category, or how it is used."""
    if rule.category == "learned":
        if places.use is None:
            raise ValueError("learned candidate sets need places with their use")
        return find_alike(places.lat, places.lon, places.use, rule)
    return candidates.find(places.lat, places.lon, places.category, rule)


def find_alike(lat: Floats, lon: Floats, use: Floats, rule: CandidateSettings) -> Candidates:
    """Find C0 of every POI among those whose use is similar enough; arguments are (P+1, ...) with row 0 as padding.

    The rule widens the radius while a set is too small, as it does among venues of one category.
    """
    radii: Floats = rule.radius_km * rule.widen_factor ** np.arange(rule.max_widenings + 1.0)
    rows = len(lat)
    poi = np.zeros((rows, max(1, min(rule.max_candidates, rows - 2))), np.int32)
    radius = np.full(rows, radii[0])
    for anchors, others in _blocks(lat, lon, float(radii[-1])):
        alike = (use[anchors] @ use[others].T).round(DECIMALS) >= rule.plausibility
        a, b = np.nonzero(alike & (anchors[:, None] != others))
        km = haversine_km(lat[anchors[a]], lon[anchors[a]], lat[others[b]], lon[others[b]])
        within = (km[:, None] <= radii).astype(np.int64)  # (pairs, radii)
        count = np.stack([np.bincount(a, column, len(anchors)) for column in within.T], axis=1)
        enough = count >= rule.min_candidates
        needed = np.where(enough.any(axis=1), enough.argmax(axis=1), len(radii) - 1)
        radius[anchors] = radii[needed]
        near = km <= radii[needed][a]
        a, b, km = a[near], others[b[near]], km[near]
        order = np.lexsort((b, km, a))
        a, b = a[order], b[order]
        place = np.arange(len(a)) - np.searchsorted(a, a)  # 0 for the nearest of an anchor
        kept = place < poi.shape[1]
        poi[anchors[a[kept]], place[kept]] = b[kept]
    return Candidates(poi, radius)


def _blocks(lat: Floats, lon: Floats, reach_km: float) -> Iterator[tuple[Longs, Longs]]:
    """Yield venues that are near each other, and all venues within reach of one of them."""
    if len(lat) < 2:
        return
    point = unit_sphere(lat[1:], lon[1:])
    tree = scipy.spatial.cKDTree(point)
    todo = [tree.indices[i : i + ANCHORS] for i in range(0, len(point), ANCHORS)][::-1]
    while todo:
        anchors = todo.pop()
        middle = point[anchors].mean(axis=0)
        reach = float(np.linalg.norm(point[anchors] - middle, axis=1).max()) + chord(reach_km) * (1 + 1e-9) + 1e-12
        around = np.array(tree.query_ball_point(middle, reach))
        if len(anchors) > 1 and len(anchors) * len(around) > PAIRS:
            half = len(anchors) // 2
            todo += [anchors[half:], anchors[:half]]
            continue
        yield anchors + 1, np.sort(around) + 1
