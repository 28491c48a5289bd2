"""Regions: groups of venues so far from all others that they can be protected separately."""

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import chord, unit_sphere
from ghostpoi.errors import InputError
from ghostpoi.settings import LEAST_GAP_KM

AXIS_BITS = 21  # of a cell's key, for each of three axes; enough for cells of `LEAST_GAP_KM`
MAX_PAIRS = 1 << 20  # pairs of points that are compared at once
Pairs = tuple[Longs, Longs]


def by_gap(lat: Floats, lon: Floats, gap_km: float) -> Ints:
    """Return the region of each point, (V,), by single linkage.

    Two points lie in one region if a chain of points with steps of at most `gap_km` joins them. The numbers are
    arbitrary; `numbered` orders them.
    """
    if not gap_km >= LEAST_GAP_KM:
        raise InputError(f"regions.gap_km must be at least {LEAST_GAP_KM}, not {gap_km}")
    if len(lat) < 2:
        return np.zeros(len(lat), np.int32)
    cells = _Cells(unit_sphere(lat, lon), chord(gap_km))
    label = np.arange(len(cells.size), dtype=np.int32)
    open_pairs = [(np.empty(0, np.int64),) * 2]
    for a, b in cells.neighbours():
        label = _joined(label, a, b, cells.near(cells.start[a], cells.start[b]))
        apart = np.maximum(cells.low[a] - cells.high[b], cells.low[b] - cells.high[a])  # from box to box
        undecided = (cells.size[a] * cells.size[b] > 1) & (label[a] != label[b]) & cells.within(np.maximum(0, apart))
        open_pairs.append((a[undecided], b[undecided]))
    a, b = (np.concatenate(side) for side in zip(*open_pairs, strict=True))
    few_first = np.argsort(cells.size[a] * cells.size[b], kind="stable")
    a, b = a[few_first], b[few_first]
    while len(a):
        still = label[a] != label[b]
        a, b = a[still], b[still]
        count = max(1, int(np.searchsorted(np.cumsum(cells.size[a] * cells.size[b]), MAX_PAIRS, side="right")))
        label = _joined(label, a[:count], b[:count], cells.linked(a[:count], b[:count]))
        a, b = a[count:], b[count:]
    region = np.empty(len(lat), np.int32)
    region[cells.order] = np.repeat(label, cells.size)
    return region


class _Cells:
    """Points sorted into cubes so small that all points of a cube are within reach of each other."""

    def __init__(self, point: Floats, reach: float) -> None:
        self.reach = reach
        edge = reach / 3**0.5 * (1 - 1e-9)  # a little less, against rounding
        key = np.zeros(len(point), np.int64)
        for axis in point.T:
            key = (key << AXIS_BITS) + ((axis + 1) / edge).astype(np.int64) + 2  # from 2: two neighbours on each side
        self.order: Longs = np.argsort(key)
        self.point = point[self.order]  # (V, 3)
        key = key[self.order]
        self.start: Longs = np.flatnonzero(np.append(True, key[1:] != key[:-1]))  # (C,) first point of each cell
        self.key = key[self.start]  # (C,)
        self.size: Longs = np.diff(np.append(self.start, len(point)))  # (C,)
        self.low = np.minimum.reduceat(self.point, self.start)  # (C, 3)
        self.high = np.maximum.reduceat(self.point, self.start)

    def neighbours(self) -> Iterator[Pairs]:
        """Yield every pair of cells that can hold points within reach, once each: those at most two cells apart."""
        for dx, dy in product(range(3), range(-2, 3)):
            if (dx, dy) >= (0, 0):
                # Cells that differ only on the third axis are neighbours in the order of keys.
                centre = self.key + (dx << 2 * AXIS_BITS) + dy * (1 << AXIS_BITS)
                first = np.searchsorted(self.key, centre - 2 if dx or dy else centre + 1)
                end = np.searchsorted(self.key, centre + 2, side="right")
                for step in range(int((end - first).max())):
                    a = np.flatnonzero(first + step < end)
                    yield a, first[a] + step

    def near(self, i: Longs, j: Longs) -> Bools:
        """Return whether points i and j are within reach of each other."""
        return self.within(self.point[i] - self.point[j])

    def linked(self, a: Longs, b: Longs) -> Bools:
        """Return whether cells a and b have two points within reach of each other."""
        width, pairs = self.size[b], self.size[a] * self.size[b]
        if int(pairs.sum()) > MAX_PAIRS:
            return np.array([self._linked_by_tree(*both) for both in zip(a, b, strict=True)])
        pair = np.repeat(np.arange(len(a)), pairs)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        found = self.near(self.start[a[pair]] + within // width[pair], self.start[b[pair]] + within % width[pair])
        return np.bincount(pair[found], minlength=len(a)) > 0

    def _linked_by_tree(self, a: np.int64, b: np.int64) -> bool:
        one, two = (self.point[self.start[c] : self.start[c] + self.size[c]] for c in (a, b))
        found, _ = scipy.spatial.cKDTree(two).query(one, distance_upper_bound=np.nextafter(self.reach, 3))
        return bool(found.min() <= self.reach)

    def within(self, difference: Floats) -> Bools:
        """Return whether vectors, (N, 3), are no longer than the reach."""
        x, y, z = difference.T
        return x * x + y * y + z * z <= self.reach**2


def _joined(label: Ints, a: Longs, b: Longs, link: Bools) -> Ints:
    """Give the groups of a and b one label wherever they are linked."""
    if not link.any():
        return label
    one, two = label[a[link]], label[b[link]]
    groups = int(label.max()) + 1
    graph = scipy.sparse.coo_array((np.ones(len(one), bool), (one, two)), (groups, groups))
    return scipy.sparse.csgraph.connected_components(graph, directed=False)[1].astype(np.int32)[label]


def numbered(label: Ints, rank: Longs) -> Ints:
    """Number groups from 0 by the smallest rank of their members, so that the order of the points does not matter."""
    order = np.argsort(rank, kind="stable")
    _, first, group = np.unique(label[order], return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    number[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    result = np.empty(len(label), np.int32)
    result[order] = number[group]
    return result


def cut(
    lat: Floats, lon: Floats, visits: Longs, region: Ints, rank: Longs, most_venues: int, most_rows: int
) -> Ints:  # fmt: skip
    """Cut regions with too many venues or visits into parts; return the part of each venue, (V,).

    A region is halved along its widest axis, at the median of its venues or, if only its visits are too many, of its
    visits, until every part is within the limits. A venue that alone has too many visits is a part of its own. `rank`
    orders the venues and decides ties. Parts are numbered from 0, by region: without a cut, regions 0, 1, 2, ... stay.
    """
    by_rank = np.argsort(rank, kind="stable")
    order = by_rank[np.argsort(region[by_rank], kind="stable")]  # by region, then by rank
    point, visits, region = unit_sphere(lat[order], lon[order]), visits[order], region[order]
    start = np.flatnonzero(np.append(True, region[1:] != region[:-1])[: len(region)])
    part, count = np.empty(len(region), np.int32), 0
    for begin, end in pairwise([*start, len(region)]):
        for members in _halves(np.arange(begin, end), point, visits, most_venues, most_rows):
            part[order[members]] = count
            count += 1
    return part


def _halves(members: Longs, point: Floats, visits: Longs, most_venues: int, most_rows: int) -> Iterator[Longs]:
    """Yield the parts of these venues. Members stay in the order of their ranks, so a stable sort decides ties."""
    waiting = [members]
    while waiting:
        members = waiting.pop()
        n, here = len(members), visits[members]
        if n <= most_venues and (n == 1 or here.sum() <= most_rows):
            yield members
            continue
        at = point[members]
        order = np.argsort(at[:, np.argmax(np.ptp(at, axis=0))], kind="stable")
        middle = n // 2
        if n <= most_venues:
            before = np.cumsum(here[order])[:-1]
            middle = 1 + int(np.argmin(np.abs(2 * before - here.sum())))
        low = np.zeros(n, bool)
        low[order[:middle]] = True
        waiting += [members[~low], members[low]]
