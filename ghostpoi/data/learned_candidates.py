"""Candidate sets of nearby venues that are used similarly, for files without categories."""

from collections.abc import Iterator

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data import candidates
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.geo import chord, haversine_km, unit_sphere
from ghostpoi.data.places import Places
from ghostpoi.settings import CandidateSettings

ANCHORS, PAIRS = 64, 1 << 22  # anchors per block, and their pairs with venues around: they bound the memory
DECIMALS = 9  # of a similarity, so that results do not depend on the rounding of a machine


def candidate_sets(places: Places, rule: CandidateSettings) -> Candidates:
    """Find C0 of every place by its category, by its use or by neither, as the rule demands."""
    if rule.category != "learned":
        return candidates.find(places.lat, places.lon, places.kind(rule.category), rule)
    if places.use is None:
        raise ValueError("learned candidate sets need places with their use")
    return find_alike(places.lat, places.lon, places.use, rule)


def find_alike(lat: Floats, lon: Floats, use: Floats, rule: CandidateSettings) -> Candidates:
    """Find C0 of every venue among those of similar use; arguments are (P+1, ...) with row 0 as padding.

    The rule widens the radius while a set is too small, as it does among venues of one category.
    """
    rows = len(lat)
    poi = np.zeros((rows, max(1, min(rule.max_candidates, rows - 2))), np.int32)
    radius, todo = np.full(rows, rule.radius_km), np.arange(1, rows)
    for widened in range(rule.max_widenings + 1):
        reach, few = rule.radius_km * rule.widen_factor**widened, [todo[:0]]
        radius[todo] = reach
        for anchors, others in _blocks(lat, lon, todo, reach):
            alike = (use[anchors] @ use[others].T).round(DECIMALS) >= rule.plausibility
            a, b = np.nonzero(alike & (anchors[:, None] != others))
            km = haversine_km(lat[anchors[a]], lon[anchors[a]], lat[others[b]], lon[others[b]])
            a, b, km = a[km <= reach], others[b[km <= reach]], km[km <= reach]
            order = np.lexsort((b, km, a))
            a, b = a[order], b[order]
            place = np.arange(len(a)) - np.searchsorted(a, a)  # 0 for the nearest of an anchor
            kept = place < poi.shape[1]
            poi[anchors[a[kept]], place[kept]] = b[kept]
            few.append(anchors[np.bincount(a, minlength=len(anchors)) < rule.min_candidates])
        todo = np.concatenate(few)
    return Candidates(poi, radius)


def _blocks(lat: Floats, lon: Floats, anchors: Longs, reach_km: float) -> Iterator[tuple[Longs, Longs]]:
    """Yield some of the anchors that are near each other, and all venues within reach of one of them."""
    if not len(anchors):
        return
    point, own = unit_sphere(lat[1:], lon[1:]), unit_sphere(lat[anchors], lon[anchors])
    tree, near = scipy.spatial.cKDTree(point), scipy.spatial.cKDTree(own).indices
    todo = [near[i : i + ANCHORS] for i in range(0, len(near), ANCHORS)][::-1]
    while todo:
        some = todo.pop()
        middle = own[some].mean(axis=0)
        reach = float(np.linalg.norm(own[some] - middle, axis=1).max()) + chord(reach_km) * (1 + 1e-9) + 1e-12
        around = np.array(tree.query_ball_point(middle, reach))
        if len(some) > 1 and len(some) * len(around) > PAIRS:
            todo += [some[len(some) // 2 :], some[: len(some) // 2]]
        else:
            yield anchors[some], np.sort(around) + 1
