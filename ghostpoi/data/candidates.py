"""Candidate sets C0(p) of nearby venues of the same category or, without categories, of similar use; speeds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import chord, haversine_km, speed_kmh, unit_sphere
from ghostpoi.data.places import Places
from ghostpoi.settings import CandidateSettings

CANDIDATES_VERSION = 1  # raised whenever the same input gives other candidate sets
CHUNK = 65_536  # anchors per search, to bound the memory for millions of venues
ANCHORS, PAIRS = 64, 4_000_000  # anchors per block, and their pairs with venues around: they bound the memory
DECIMALS = 9  # of a similarity, so that results do not depend on the rounding of a machine


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
    hidden: Bools | None = None  # (P+1,) venues that are never released, not even for themselves; None: there are none
    borrows: Bools | None = None  # (P+1,) of them, those that draw from the set of another venue

    @staticmethod
    def anywhere(rows: int) -> "Candidates":
        """Return the sets of a method that can release any of P = rows - 1 venues for any other."""
        return Candidates(np.zeros((rows, 1), np.int32), np.zeros(rows), everywhere=True)

    @property
    def size(self) -> Longs:
        size: Longs = np.count_nonzero(self.poi, axis=1)
        if self.everywhere:
            size[1:] = (~self.is_hidden[1:]).sum()
        return size  # (P+1,)

    @property
    def is_hidden(self) -> Bools:
        """(P+1,) whether a venue is never released."""
        return np.zeros(len(self.poi), bool) if self.hidden is None else self.hidden

    def without(self, places: Places, known: Bools | None = None) -> "Candidates":
        """Return the sets without hidden venues. A hidden venue keeps its own set of others.

        If nothing is left of that, it draws from the set of the nearest shown venue; all venues of a crowd of hidden
        ones draw from the same. A `known` venue (P+1,) borrows from a known one. Without any, the set stays empty.
        """
        hidden = places.hidden
        if hidden is None or not hidden.any():
            return self
        real = (self.poi > 0) & ~hidden[self.poi]
        order = np.argsort(~real, axis=1, kind="stable")  # padding last
        poi = np.take_along_axis(np.where(real, self.poi, 0).astype(np.int32), order, 1)
        weight = None if self.weight is None else np.take_along_axis(np.where(real, self.weight, 0.0), order, 1)
        first = self.poi[:, 0]
        together = np.where((self.poi == self.poi[first]).all(axis=1) & (first > 0), first, np.arange(len(first)))
        host, point = np.arange(len(poi)), unit_sphere(places.lat, places.lon)
        modelled = np.ones(len(poi), bool) if known is None else known
        empty, shown = hidden & (poi[:, 0] == 0), ~hidden & (poi[:, 0] > 0)
        for guest, may_host in ((empty & modelled[together], shown & modelled), (empty & ~modelled[together], shown)):
            needs, hosts = np.flatnonzero(guest), np.flatnonzero(may_host)
            if len(needs) and len(hosts):
                host[needs] = hosts[scipy.spatial.cKDTree(point[hosts]).query(point[together[needs]])[1]]
        return replace(
            self, poi=poi[host], weight=None if weight is None else weight[host], hidden=hidden,
            borrows=(host != np.arange(len(host))) | (False if self.borrows is None else self.borrows),
        )  # fmt: skip

    def shown_for(self, lat: Floats, lon: Floats) -> Ints:
        """Return the venue that is released instead of each, (P+1,): itself or, if it is hidden, the nearest shown."""
        venue = np.arange(len(self.poi), dtype=np.int32)
        hidden, shown = np.flatnonzero(self.is_hidden), np.flatnonzero(~self.is_hidden)[1:]
        if len(hidden) and len(shown):
            tree = scipy.spatial.cKDTree(unit_sphere(lat[shown], lon[shown]))
            venue[hidden] = shown[tree.query(unit_sphere(lat[hidden], lon[hidden]))[1]]
        return venue

    def renumbered(self, to: Longs, rows: Longs) -> "Candidates":
        """Return the sets with candidate p renamed to[p], and row i taken from rows[i]."""
        return Candidates(
            to[self.poi[rows]].astype(np.int32), self.radius_km[rows],
            None if self.weight is None else self.weight[rows],
            None if self.slot_weight is None else self.slot_weight[:, rows], self.everywhere,
            None if self.hidden is None else self.hidden[rows], None if self.borrows is None else self.borrows[rows],
        )  # fmt: skip

    def draw_weights(self, anchor: NDArray[np.integer], slot: Longs) -> Floats | None:
        """Return the weights (B, K) of the candidates of anchors (B,) in time slots (B,); None: all weigh the same."""
        found = None if self.weight is None else self.weight[anchor]
        if self.slot_weight is None:
            return found
        at_slot = self.slot_weight[slot[:, None], self.poi[anchor]]
        return at_slot if found is None else found * at_slot


def find(lat: Floats, lon: Floats, category: Ints, rule: CandidateSettings, workers: int = -1) -> Candidates:
    """Find C0 of every venue; arguments are (P+1,) with row 0 as padding.

    The rule widens the radius while a set is too small. A single search at the widest radius covers all of them,
    because the K nearest venues within a smaller radius are a prefix of the K nearest within the widest one. If several
    equally distant venues compete for the last of the K places, the tree decides.
    """
    radii: Floats = rule.radius_km * rule.widen_factor ** np.arange(rule.max_widenings + 1.0)
    rows = len(lat)
    largest = int(np.bincount(category[1:]).max()) - 1 if rows > 1 else 0  # of all candidate sets
    poi = np.zeros((rows, max(1, min(rule.max_candidates, largest))), np.int32)
    radius = np.full(rows, radii[0])
    for members in by_category(category):
        width = max(rule.max_candidates, rule.min_candidates) + 1  # + 1: an anchor finds itself
        search = _nearest(lat[members], lon[members], width, _reach(float(radii[-1])), workers)
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


def _reach(km: float) -> float:
    """Return a chord for a tree, slightly too long: rounding loses no venue that the haversine distance keeps."""
    return chord(km) * (1 + 1e-9) + 1e-12


def _nearest(lat: Floats, lon: Floats, width: int, reach: float, workers: int) -> Callable[[int, int], Longs]:
    """Return a search for the nearest venues within reach of venues first to last; len(lat) stands for none."""
    if len(lat) <= width:  # all of them: the caller drops those out of reach
        return lambda first, last: np.tile(np.arange(len(lat)), (last - first, 1))
    point = unit_sphere(lat, lon)
    tree, nearest = scipy.spatial.cKDTree(point), np.arange(1, width + 1)
    return lambda first, last: tree.query(point[first:last], k=nearest, distance_upper_bound=reach, workers=workers)[1]


def by_category(category: Ints) -> Iterator[Longs]:
    """Yield the rows of each category in ascending order; row 0 is padding."""
    rows = np.argsort(category[1:], kind="stable") + 1
    bounds = np.flatnonzero(np.diff(category[rows], prepend=-1, append=-1))
    for begin, end in pairwise(bounds):
        yield rows[begin:end]


def candidate_sets(places: Places, rule: CandidateSettings) -> Candidates:
    """Find C0 of every place by its category, by its use or by neither, as the rule demands."""
    if rule.category != "learned":
        return find(places.lat, places.lon, places.kind(rule.category), rule)
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
        wide = float(np.linalg.norm(own[some] - middle, axis=1).max())
        around = np.array(tree.query_ball_point(middle, wide + _reach(reach_km)))
        if len(some) > 1 and len(some) * len(around) > PAIRS:
            todo += [some[len(some) // 2 :], some[: len(some) // 2]]
        else:
            yield anchors[some], np.sort(around) + 1


def steps_kmh(lat: Floats, lon: Floats, previous: Ints, options: Ints, gap_s: Longs, min_gap_s: float) -> Floats:
    """Return the speed (B, K) from the previous venue (B,) to each option (B, K); 0 if there is no previous venue."""
    km = haversine_km(lat[previous][:, None], lon[previous][:, None], lat[options], lon[options])
    return np.where(previous[:, None] > 0, speed_kmh(km, gap_s[:, None], min_gap_s), 0.0)
