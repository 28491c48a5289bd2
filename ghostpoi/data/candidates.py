"""Candidate sets C0(p) of nearby venues, by default of the same category, and the speed mask."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import chord, haversine_km, speed_kmh, unit_sphere
from ghostpoi.settings import CandidateSettings, SpeedSettings

CANDIDATES_VERSION = 1  # raised whenever the same input gives other candidate sets
CHUNK = 1 << 16  # anchors per search, to bound the memory for millions of venues


@dataclass(frozen=True)
class Candidates:
    """The candidate set of every anchor, padded with 0, the search radius of the anchor, and the candidates' weights.

    A candidate is drawn with probability proportional to its weight, times its weight in the slot of the week.
    """

    poi: Ints  # (P+1, K)
    radius_km: Floats  # (P+1,)
    weight: Floats | None = None  # (P+1, K) of each candidate of an anchor; None: all weigh the same
    slot_weight: Floats | None = None  # (SLOTS, P+1) of each venue; None: the time does not matter
    everywhere: bool = False  # every venue is a candidate of every other, and `poi` lists none

    @staticmethod
    def anywhere(rows: int) -> "Candidates":
        """Return the sets of a method that can release any of P = rows - 1 venues for any other."""
        return Candidates(np.zeros((rows, 1), np.int32), np.zeros(rows), everywhere=True)

    @property
    def size(self) -> Longs:
        size: Longs = np.count_nonzero(self.poi, axis=1)
        if self.everywhere:
            size[1:] = len(size) - 1
        return size  # (P+1,)

    def renumbered(self, to: Longs, rows: Longs) -> "Candidates":
        """Return the sets with candidate p renamed to[p], and row i taken from rows[i]."""
        return Candidates(
            to[self.poi[rows]].astype(np.int32), self.radius_km[rows],
            None if self.weight is None else self.weight[rows],
            None if self.slot_weight is None else self.slot_weight[:, rows], self.everywhere,
        )  # fmt: skip

    def draw_weights(self, anchor: NDArray[np.integer], slot: Longs) -> Floats | None:
        """Return the weights (B, K) of the candidates of anchors (B,) in time slots (B,); None: all weigh the same."""
        found = None if self.weight is None else self.weight[anchor]
        if self.slot_weight is None:
            return found
        at_slot = self.slot_weight[slot[:, None], self.poi[anchor]]
        weight: Floats = at_slot if found is None else found * at_slot
        return weight


def find(lat: Floats, lon: Floats, category: Ints, rule: CandidateSettings, workers: int = -1) -> Candidates:
    """Find C0 of every venue; arguments are (P+1,) with row 0 as padding.

    The rule widens the radius while a set is too small. A single search at the widest radius covers all of them,
    because the K nearest venues within a smaller radius are a prefix of the K nearest within the widest one. If several
    equally distant venues compete for the last of the K places, the tree decides.
    """
    radii: Floats = rule.radius_km * rule.widen_factor ** np.arange(rule.max_widenings + 1.0)
    # Slightly wider than the radius, so that rounding in the tree loses no venue that the haversine distance keeps.
    reach = chord(float(radii[-1])) * (1 + 1e-9) + 1e-12
    rows = len(lat)
    largest = int(np.bincount(category[1:]).max()) - 1 if rows > 1 else 0  # of all candidate sets
    poi = np.zeros((rows, max(1, min(rule.max_candidates, largest))), np.int32)
    radius = np.full(rows, radii[0])
    for members in by_category(category):
        width = max(rule.max_candidates, rule.min_candidates) + 1  # + 1: an anchor finds itself
        search = _nearest(lat[members], lon[members], width, reach, workers)
        for at in range(0, len(members), CHUNK):
            anchors = members[at : at + CHUNK]
            found = search(at, at + len(anchors))
            real = found < len(members)
            other = members[np.where(real, found, 0)]  # (anchors, width)
            km = haversine_km(lat[anchors, None], lon[anchors, None], lat[other], lon[other])
            km[~real | (other == anchors[:, None])] = np.inf
            enough = (km[:, :, None] <= radii).sum(axis=1) >= rule.min_candidates  # (anchors, radii)
            # If `width` venues share the anchor's position, it may not find itself; the slice drops the surplus venue.
            order = np.lexsort((other, km), axis=1)[:, : poi.shape[1]]
            other, km = np.take_along_axis(other, order, 1), np.take_along_axis(km, order, 1)
            needed = np.where(enough.any(axis=1), enough.argmax(axis=1), len(radii) - 1)
            radius[anchors] = radii[needed]
            poi[anchors, : other.shape[1]] = np.where(km <= radii[needed][:, None], other, 0)
    return Candidates(poi, radius)


def _nearest(lat: Floats, lon: Floats, width: int, reach: float, workers: int) -> Callable[[int, int], Longs]:
    """Return a search for the nearest venues within reach of venues first to last; len(lat) stands for none."""
    if len(lat) <= width:  # all of them: the caller drops those out of reach
        return lambda first, last: np.tile(np.arange(len(lat)), (last - first, 1))
    point = unit_sphere(lat, lon)
    tree, nearest = scipy.spatial.cKDTree(point), np.arange(1, width + 1)

    def search(first: int, last: int) -> Longs:
        found: Longs = tree.query(point[first:last], k=nearest, distance_upper_bound=reach, workers=workers)[1]
        return found

    return search


def by_category(category: Ints) -> Iterator[Longs]:
    """Yield the rows of each category in ascending order; row 0 is padding."""
    rows = np.argsort(category[1:], kind="stable") + 1
    bounds = np.flatnonzero(np.diff(category[rows], prepend=-1, append=-1))
    for begin, end in pairwise(bounds):
        yield rows[begin:end]


def steps_kmh(lat: Floats, lon: Floats, previous: Ints, options: Ints, gap_s: Longs, min_gap_s: float) -> Floats:
    """Return the speed (B, K) from the previous venue (B,) to each option (B, K); 0 if there is no previous venue."""
    km = haversine_km(lat[previous][:, None], lon[previous][:, None], lat[options], lon[options])
    return np.where(previous[:, None] > 0, speed_kmh(km, gap_s[:, None], min_gap_s), 0.0)


def speed_mask(lat: Floats, lon: Floats, previous: Ints, options: Ints, gap_s: Longs, rule: SpeedSettings) -> Bools:
    """Mark the options (B, K) that can be reached from the previous venue (B,) within the speed limit.

    Padding (0) is never feasible. A previous venue of 0 (the first check-in) makes all options feasible.
    """
    return (options > 0) & (steps_kmh(lat, lon, previous, options, gap_s, rule.min_gap_s) <= rule.limit_kmh)
