"""Crowds: the venues of a category are parted among themselves, so that each hides among others near it.

The city is cut in two where the venues of a category spread widest, and each part again, as long as both sides keep
`size` venues: busy areas get narrow crowds, empty ones wide crowds. This is Mondrian, known from k-anonymity. Every
venue is in one crowd, and all venues of a crowd have the same candidates in the same order, themselves included.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import chord, unit_sphere

Bools = NDArray[np.bool_]


def find(
    lat: Floats, lon: Floats, category: Ints, size: int, reach_km: float, known: Bools | None = None
) -> Candidates:
    """The crowd of every venue as its candidates, from south to north; arguments are (P+1,) with row 0 as padding.

    No crowd is wider than `reach_km`: where fewer than `size` venues are that near, the crowd is smaller. A venue all
    alone has no candidates. Venues that models do not know are parted apart from the `known` ones: rows in and outside
    sessions must draw from one crowd, and inside sessions only known venues can be drawn. One that is left alone by
    that draws from the crowd of the nearest known venue.
    """
    at = np.zeros((len(lat), 3))
    at[1:] = unit_sphere(lat[1:], lon[1:])
    reach = chord(reach_km)
    group = category if known is None else 2 * category + known
    # In an order that depends on where venues lie alone: numbers tell which was visited first.
    crowds = [
        crowd[np.lexsort((lon[crowd], lat[crowd]))]
        for members in _categories(group)
        for crowd in _parted(members, at, size, reach)
    ]
    widest = max(map(len, crowds), default=1)
    poi, radius = np.zeros((len(lat), widest), np.int32), np.zeros(len(lat))
    for crowd in crowds:
        if len(crowd) > 1:
            poi[crowd[:, None], np.arange(len(crowd))] = crowd
            radius[crowd] = reach_km
    if known is not None:
        for alone in (int(crowd[0]) for crowd in crowds if len(crowd) == 1 and not known[crowd[0]]):
            if len(host := _host(alone, poi, at, np.flatnonzero(known & (category == category[alone])), reach)):
                poi[alone, : len(host)], radius[alone] = host, reach_km
    return Candidates(poi, radius)


def _host(alone: int, poi: Ints, at: Floats, others: Longs, reach: float) -> Ints:
    """The crowd of the nearest of these venues, if all of it is within reach; else nothing."""
    nobody = np.zeros(0, np.int32)
    if not len(others):
        return nobody
    nearest = others[((at[others] - at[alone]) ** 2).sum(axis=1).argmin()]
    crowd = poi[nearest][poi[nearest] > 0] if poi[nearest, 0] else np.array([nearest], np.int32)
    return crowd if _width(at[np.append(crowd, alone)]) <= reach else nobody


def _categories(category: Ints) -> Iterator[Longs]:
    """The venues of each category, in ascending order."""
    by_category = np.argsort(category[1:], kind="stable") + 1
    bounds = np.flatnonzero(np.diff(category[by_category], prepend=-1, append=-1))
    for begin, end in pairwise(bounds):
        yield by_category[begin:end]


def _parted(members: Longs, at: Floats, size: int, reach: float) -> Iterator[Longs]:
    """Crowds of the venues given. Which venues share one depends on where they lie alone."""
    todo = [members]
    while todo:
        some = todo.pop()
        along = at[some, int(np.ptp(at[some], axis=0).argmax())]  # the axis along which they spread widest
        order = np.lexsort((some, along))
        if len(some) >= 2 * size:
            cut = len(some) // 2
        elif _width(at[some]) > reach:
            cut = int(np.diff(along[order]).argmax()) + 1  # at the widest gap, though one side will be small
        else:
            yield some
            continue
        todo += [some[order[:cut]], some[order[cut:]]]


def _width(at: Floats) -> float:
    """The largest straight-line distance between two of these."""
    return float(np.sqrt(((at[:, None] - at[None]) ** 2).sum(axis=2).max()))
