"""Candidate sets C0(p): venues of the same category, near; and the speed mask."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import chord, haversine_km, speed_kmh, unit_sphere
from ghostpoi.settings import CandidateSettings, SpeedSettings

CHUNK = 1 << 16  # anchors searched at once: bounds the memory of a search over millions of venues


@dataclass(frozen=True)
class Candidates:
    """The candidate set of every anchor, nearest first, padded with 0; and the radius that the anchor needed."""

    poi: Ints  # (P+1, K)
    radius_km: Floats  # (P+1,)

    @property
    def size(self) -> Longs:
        size: Longs = np.count_nonzero(self.poi, axis=1)
        return size  # (P+1,)


def find(lat: Floats, lon: Floats, category: Ints, rule: CandidateSettings, workers: int = -1) -> Candidates:
    """C0 of every POI; arguments are (P+1,) with row 0 as padding.

    Widening asks again with a larger radius while a set is too small. One search at the widest radius answers all of
    those questions at once: the K nearest within a smaller radius are a prefix of the K nearest within the widest.
    Which of several equally far venues takes the last of K places is left to the tree.
    """
    radii: Floats = rule.radius_km * rule.widen_factor ** np.arange(rule.max_widenings + 1.0)
    rows = len(lat)
    most = int(np.bincount(category[1:]).max()) - 1 if rows > 1 else 0  # no set is larger than its category
    poi = np.zeros((rows, max(1, min(rule.max_candidates, most))), np.int32)
    radius = np.full(rows, radii[0])
    by_category = np.argsort(category[1:], kind="stable") + 1
    bounds = np.flatnonzero(np.diff(category[by_category], prepend=-1, append=-1))
    for begin, end in pairwise(bounds):
        members = by_category[begin:end]
        tree = cKDTree(unit_sphere(lat[members], lon[members]))
        for at in range(0, len(members), CHUNK):
            anchors = members[at : at + CHUNK]
            _nearest(tree, members, anchors, lat, lon, radii, rule, workers, poi, radius)
    return Candidates(poi, radius)


def _nearest(
    tree: cKDTree, members: Longs, anchors: Longs, lat: Floats, lon: Floats, radii: Floats,
    rule: CandidateSettings, workers: int, poi: Ints, radius: Floats,
) -> None:  # fmt: skip
    """Fill the rows of `anchors`, all of one category with `members`, in poi and radius."""
    width = min(max(rule.max_candidates, rule.min_candidates) + 1, len(members))  # + 1: the anchor finds itself
    # A hair wider than asked for, so that rounding in the tree never loses a venue that the haversine keeps.
    reach = chord(float(radii[-1])) * (1 + 1e-9) + 1e-12
    _, found = tree.query(
        unit_sphere(lat[anchors], lon[anchors]), k=np.arange(1, width + 1), distance_upper_bound=reach, workers=workers
    )
    real = found < len(members)
    other = members[np.where(real, found, 0)]  # (anchors, width)
    km = haversine_km(lat[anchors, None], lon[anchors, None], lat[other], lon[other])
    km[~real | (other == anchors[:, None])] = np.inf
    # Where width venues share one spot the anchor may not find itself: the last of them is one too many.
    enough = (km[:, :, None] <= radii).sum(axis=1) >= rule.min_candidates  # (anchors, radii)
    order = np.lexsort((other, km), axis=1)[:, : poi.shape[1]]
    other, km = np.take_along_axis(other, order, 1), np.take_along_axis(km, order, 1)
    needed = np.where(enough.any(axis=1), enough.argmax(axis=1), len(radii) - 1)
    radius[anchors] = radii[needed]
    poi[anchors, : other.shape[1]] = np.where(km <= radii[needed][:, None], other, 0)


def speed_mask(
    lat: Floats, lon: Floats, previous: Ints, options: Ints, gap_s: Longs, rule: SpeedSettings
) -> NDArray[np.bool_]:
    """Which options (B, K) can be reached from the previous choice (B,) in the time gap (B,) within the limit.

    A gap counts as at least `rule.min_gap_s`, equal timestamps included. Padding (0) is never feasible; a previous
    choice of 0 (the first check-in) allows everything.
    """
    km = haversine_km(lat[previous][:, None], lon[previous][:, None], lat[options], lon[options])
    fast = speed_kmh(km, gap_s[:, None], rule.min_gap_s) > rule.limit_kmh
    return (options > 0) & ~(fast & (previous > 0)[:, None])
