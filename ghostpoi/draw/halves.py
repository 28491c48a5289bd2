"""Divide venues by halving boxes, no wider than a limit: the crowds of earlier versions.

The venues of a kind are cut in two along the axis of their widest spread, and each part again, while both parts keep
`size` venues. Crowds that are too wide are cut at a wide gap. This is Mondrian, known from k-anonymity.
"""

from collections.abc import Iterator

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data.checkins import Floats, Longs

LONELY = 1.25  # how much farther than the reach of crowds a venue that is alone looks for a neighbour


def halves(members: Longs, point: Floats, size: int, reach: float) -> list[Longs]:
    """Divide venues of one kind into crowds.

    A crowd is no wider than `reach`, until a venue that would be alone joins the crowd of its nearest neighbour.
    """
    return _joined(list(_partition(members, point, size, reach)), members, point, reach)


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
