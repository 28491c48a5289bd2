"""Crowds of nearby venues, the groups of categories inside which they may mix, and the weights of their draws.

The venues of a category are cut in two along the axis of their widest spread, and each part again, while both parts
keep `size` venues. Busy areas get narrow crowds and sparse areas wide ones. This is Mondrian, known from k-anonymity.
Every venue is in one crowd, and all venues of a crowd have the same candidates in the same order: the whole crowd.

Weights show how popular venues are, as far as a release may show it. A venue with few visits counts as having
`min_visits`, so that the visits of one person to a rare venue do not show. Hours come from the category, not from the
venue: the hours of one venue can be those of one person, and so can those of a category with few visits, which
therefore has the hours of all categories.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import scipy

from ghostpoi.data.candidates import Candidates, by_category
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import chord, unit_sphere
from ghostpoi.data.places import SLOTS, Places

LONELY = 1.25  # how much farther than the reach of crowds a venue that is alone looks for a neighbour


def find(
    lat: Floats, lon: Floats, category: Ints, size: int, reach_km: float, known: Bools | None = None
) -> Candidates:
    """Return the crowd of every venue as its candidate set; arguments are (P+1,) with row 0 as padding.

    A crowd is smaller than `size` where fewer venues are close. It is no wider than `reach_km`, until a venue that
    would be alone joins the crowd of its nearest neighbour. Without a neighbour in reach, it has no candidates.

    Only `known` venues can be drawn inside sessions, and rows in and outside sessions must draw from the same crowd; so
    venues that models do not know form crowds of their own. If such a venue is still alone, it borrows the crowd of the
    nearest known venue.
    """
    point = np.zeros((len(lat), 3))
    point[1:] = unit_sphere(lat[1:], lon[1:])
    reach = chord(reach_km)
    crowds = [
        crowd
        for members in by_category(category if known is None else 2 * category + known)
        for crowd in _joined(list(_partition(members, point, size, reach)), members, point, reach)
    ]
    poi = _sets(crowds, lat, lon)
    radius = np.where(poi[:, 0] > 0, reach_km, 0.0)
    if known is not None:
        for alone in (int(crowd[0]) for crowd in crowds if len(crowd) == 1 and not known[crowd[0]]):
            hosts = np.flatnonzero(known & (category == category[alone]))
            borrowed = _borrow(alone, hosts, poi, point, reach)
            if len(borrowed):
                poi[alone, : len(borrowed)], radius[alone] = borrowed, reach_km
    return Candidates(poi, radius)


def _sets(crowds: list[Longs], lat: Floats, lon: Floats) -> Ints:
    """Return the members of the crowd of every venue, (P+1, K), padded with 0; nothing for one that is alone.

    The order inside a crowd, south to north, depends on positions, not on who went there. Venues at one position keep
    the order of the arguments, so the caller must order them by something that no visit decides.
    """
    size = np.array([len(crowd) for crowd in crowds], np.int64)
    poi = np.zeros((len(lat), int(size.max(initial=1))), np.int32)
    if not len(crowds):
        return poi
    venue, number = np.concatenate(crowds), np.repeat(np.arange(len(crowds)), size)
    order = np.lexsort((lon[venue], lat[venue], number))
    members = np.zeros((len(crowds), poi.shape[1]), np.int32)
    members[number, np.arange(len(venue)) - np.repeat(np.cumsum(size) - size, size)] = venue[order]
    members[size == 1] = 0
    poi[venue] = members[number]
    return poi


def _borrow(alone: int, hosts: Longs, poi: Ints, point: Floats, reach: float) -> Ints:
    """Return the crowd of the nearest host, or nothing if the crowd would be wider than `reach` with its guest."""
    nothing = np.zeros(0, np.int32)
    if not len(hosts):
        return nothing
    nearest = hosts[((point[hosts] - point[alone]) ** 2).sum(axis=1).argmin()]
    crowd = poi[nearest][poi[nearest] > 0] if poi[nearest, 0] else np.array([nearest], np.int32)
    return crowd if _width(point[np.append(crowd, alone)]) <= reach else nothing


def _partition(members: Longs, point: Floats, size: int, reach: float) -> Iterator[Longs]:
    """Split venues into crowds by position and, where positions are equal, by number."""
    todo = _halved(members, point, size)
    while todo:
        part = todo.pop()
        spread = np.ptp(point[part], axis=0)
        if not _wider(point[part], reach, spread):
            yield part
            continue
        along = point[part, int(spread.argmax())]  # coordinates on the axis of widest spread
        order = np.lexsort((part, along))
        least = max(1, len(part) // 4)  # on either side, so that few venues end up alone
        cut = least + int(np.diff(along[order])[least - 1 : len(part) - least].argmax())  # at the widest gap
        todo += [part[order[:cut]], part[order[cut:]]]


def _halved(members: Longs, point: Floats, size: int) -> list[Longs]:
    """Cut venues in two along the axis of their widest spread, and each part again while both halves keep `size`."""
    at, bounds = point[members], np.array([0, len(members)])
    place = np.empty((3, len(members)), np.int64)  # of each venue on each axis; at one coordinate, by number
    for axis in range(3):
        place[axis, np.lexsort((members, at[:, axis]))] = np.arange(len(members))
    now = np.arange(len(members))  # the members in the order of their parts
    while len(cut := np.flatnonzero(np.diff(bounds) >= 2 * size)):
        begin, length = bounds[:-1], np.diff(bounds)
        spread = np.maximum.reduceat(at[now], begin) - np.minimum.reduceat(at[now], begin)
        part = np.repeat(np.arange(len(begin)), length)
        now = now[np.argsort(part * len(members) + place[spread.argmax(axis=1)[part], now])]
        bounds = np.sort(np.append(bounds, (begin + length // 2)[cut]))
    return np.split(members[now], bounds[1:-1])


def _joined(crowds: list[Longs], members: Longs, point: Floats, reach: float) -> list[Longs]:
    """Let every venue that is alone join its nearest neighbour, which may be somewhat farther away than `reach`.

    It joins the neighbour's crowd if that stays narrow or has only two venues; otherwise the neighbour comes to it,
    unless those whom it leaves would be too far apart.
    """
    alone = [int(crowd[0]) for crowd in crowds if len(crowd) == 1]
    if not alone or len(members) == 1:
        return crowds
    away, found = scipy.spatial.cKDTree(point[members]).query(point[alone], k=2, distance_upper_bound=LONELY * reach)
    crowd_of = dict(enumerate(map(np.ndarray.tolist, crowds)))
    name = {venue: number for number, crowd in crowd_of.items() for venue in crowd}
    for venue, distances, nearest in zip(alone, away, found, strict=True):
        near = [other for other in members[nearest[np.isfinite(distances)]].tolist() if other != venue]
        if not near or len(crowd_of[name[venue]]) > 1:  # another lonely venue has joined it already
            continue
        host = crowd_of[name[near[0]]]
        wide = len(host) > 2 and _width(point[[*host, venue]]) > reach
        comes = wide and _loneliest(point[[other for other in host if other != near[0]]]) <= LONELY * reach
        moves, to = (near[0], name[venue]) if comes else (venue, name[near[0]])
        crowd_of[name[moves]].remove(moves)
        crowd_of[to].append(moves)
        name[moves] = to
    return [np.array(sorted(crowd)) for crowd in crowd_of.values() if crowd]


def _loneliest(point: Floats) -> float:
    """Return the largest distance of one of these points to the nearest other one."""
    apart = np.sqrt(((point[:, None] - point[None]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    return float(apart.min(axis=1).max())


def _wider(point: Floats, reach: float, spread: Floats) -> bool:
    """Return whether two of these points are farther apart than `reach`. Most crowds lie in a narrower box."""
    return float(np.sqrt((spread**2).sum())) * (1 + 1e-9) > reach and _width(point) > reach


def _width(point: Floats) -> float:
    """Return the largest straight-line distance between two of these points."""
    return float(np.sqrt(((point[:, None] - point[None]) ** 2).sum(axis=2).max()))


FEW = 5  # a category with fewer visits has no hours of its own
SMOOTHING = 50.0  # visits that the hours of all categories together count as in those of one category


def weighted(sets: Candidates, places: Places, min_visits: int, by_hour: bool) -> Candidates:
    """Return the same sets with popular venues weighing more, in every slot of the week by the hours of categories."""
    visits = np.maximum(places.visits, min_visits).astype(float)
    weight = np.where(sets.poi > 0, visits[sets.poi], 0.0)
    return replace(sets, weight=weight, slot_weight=slot_weights(places) if by_hour else None)


def slot_weights(places: Places) -> Floats:
    """Return the weight of each venue in each slot of the week by the hours of its category, (SLOTS, P+1), mean 1."""
    hours = category_hours(places)[places.category[1:]] * SLOTS  # (P, SLOTS)
    return np.concatenate([np.zeros((SLOTS, 1)), hours.T], axis=1)


def category_hours(places: Places) -> Floats:
    """Return the share of a category's visits in each slot of the week, smoothed, (categories, SLOTS)."""
    counts = places.category_visits.astype(float)
    everywhere = (counts.sum(axis=0) + 1) / (counts.sum() + SLOTS)
    counts[counts.sum(axis=1) < FEW] = 0
    smoothed: Floats = (counts + SMOOTHING * everywhere) / (counts.sum(axis=1, keepdims=True) + SMOOTHING)
    return smoothed


GROUPS = 10  # to learn: taxonomies of venues have about as many at the top
STARTS, ROUNDS = 5, 100  # of k-means
LEARNED = re.compile(r"group \d+")  # the name of a group that was learned


def learned_name(number: int) -> str:
    """Return the name of a learned group, numbered from 0."""
    return f"group {number + 1}"


def by_hours(places: Places) -> Ints:
    """Group categories by k-means on the square roots of their hours, (categories,). The same data, the same groups."""
    point = np.sqrt(category_hours(places))
    best, least = np.zeros(len(point), np.int64), np.inf
    for start in range(STARTS):
        first = np.random.default_rng(start).permutation(len(point))[:GROUPS]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a group may end up empty
            centre, group = scipy.cluster.vq.kmeans2(point, point[first], iter=ROUNDS, minit="matrix")
        spread = float(((point - centre[group]) ** 2).sum())
        if spread < least:
            best, least = group, spread
    return np.unique(best, return_inverse=True)[1].astype(np.int32)


def by_name(category_ids: Sequence[str], groups: Mapping[str, str]) -> Ints:
    """Number the groups of categories, (categories,). A category that `groups` lacks is a group of its own."""
    names = [groups.get(name, f"\0{name}") for name in category_ids]
    return np.unique(np.array(names, str), return_inverse=True)[1].astype(np.int32)
