"""Crowds: the venues of each category are partitioned into groups of nearby venues.

The venues of a category are cut in two along the axis of their widest spread, and each part again, while both parts
keep `size` venues. Busy areas get narrow crowds and sparse areas wide ones. This is Mondrian, known from k-anonymity.
Every venue is in one crowd, and all venues of a crowd have the same candidates in the same order: the whole crowd.
"""

from collections.abc import Iterator

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data.candidates import Candidates, by_category
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import chord, unit_sphere

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
    # The order inside a crowd, south to north, depends on positions, not on who went there. Venues at one position keep
    # the order of the arguments, so the caller must order them by something that no visit decides.
    crowds = [
        crowd[np.lexsort((lon[crowd], lat[crowd]))]
        for members in by_category(category if known is None else 2 * category + known)
        for crowd in _joined(list(_partition(members, point, size, reach)), members, point, reach)
    ]
    poi, radius = np.zeros((len(lat), max(map(len, crowds), default=1)), np.int32), np.zeros(len(lat))
    for crowd in crowds:
        if len(crowd) > 1:
            poi[crowd[:, None], np.arange(len(crowd))] = crowd
            radius[crowd] = reach_km
    if known is not None:
        for alone in (int(crowd[0]) for crowd in crowds if len(crowd) == 1 and not known[crowd[0]]):
            hosts = np.flatnonzero(known & (category == category[alone]))
            borrowed = _borrow(alone, hosts, poi, point, reach)
            if len(borrowed):
                poi[alone, : len(borrowed)], radius[alone] = borrowed, reach_km
    return Candidates(poi, radius)


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
    todo = [members]
    while todo:
        part = todo.pop()
        along = point[part, int(np.ptp(point[part], axis=0).argmax())]  # coordinates on the axis of widest spread
        order = np.lexsort((part, along))
        if len(part) >= 2 * size:
            cut = len(part) // 2
        elif _width(point[part]) > reach:
            least = max(1, len(part) // 4)  # on either side, so that few venues end up alone
            cut = least + int(np.diff(along[order])[least - 1 : len(part) - least].argmax())  # at the widest gap
        else:
            yield part
            continue
        todo += [part[order[:cut]], part[order[cut:]]]


def _joined(crowds: list[Longs], members: Longs, point: Floats, reach: float) -> list[Longs]:
    """Let every venue that is alone join its nearest neighbour, which may be somewhat farther away than `reach`.

    It joins the neighbour's crowd if that stays narrow or has only two venues; otherwise the neighbour comes to it,
    unless those whom it leaves would be too far apart.
    """
    alone = [int(crowd[0]) for crowd in crowds if len(crowd) == 1]
    if not alone or len(members) == 1:
        return crowds
    away, found = scipy.spatial.cKDTree(point[members]).query(point[alone], k=2, distance_upper_bound=LONELY * reach)
    name = np.zeros(len(point), np.int64)  # of the crowd of each venue
    for number, crowd in enumerate(crowds):
        name[crowd] = number
    for venue, distances, nearest in zip(alone, away, found, strict=True):
        real = members[nearest[np.isfinite(distances)]]
        near = real[real != venue]
        if not len(near) or (name[members] == name[venue]).sum() > 1:  # another lonely venue has joined it already
            continue
        host = members[name[members] == name[near[0]]]
        wide = len(host) > 2 and _width(point[np.append(host, venue)]) > reach
        if wide and _loneliest(point[host[host != near[0]]]) <= LONELY * reach:
            name[near[0]] = name[venue]
        else:
            name[venue] = name[near[0]]
    return [members[name[members] == number] for number in np.unique(name[members])]


def _loneliest(point: Floats) -> float:
    """Return the largest distance of one of these points to the nearest other one."""
    apart = np.sqrt(((point[:, None] - point[None]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    return float(apart.min(axis=1).max())


def _width(point: Floats) -> float:
    """Return the largest straight-line distance between two of these points."""
    return float(np.sqrt(((point[:, None] - point[None]) ** 2).sum(axis=2).max()))
