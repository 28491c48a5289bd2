"""Groups of categories, inside which a crowd may change the category.

They come from a taxonomy (a file, or a column of the check-ins), or are learned: categories that are visited at the
same hours of the week fall into one group.
"""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.cluster.vq import kmeans2

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.places import Places
from ghostpoi.publish.popularity import category_hours

GROUPS = 40  # to learn at most
ROUNDS = 100  # of k-means at most


def by_hours(places: Places, groups: int = GROUPS) -> Ints:
    """Group categories by k-means on the square roots of their hours, (categories,). It uses no random numbers."""
    point = np.sqrt(category_hours(places))
    start = _spread_out(point, places.category_visits.sum(axis=1), min(groups, len(point)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a group may end up empty
        _, group = kmeans2(point, point[start], iter=ROUNDS, minit="matrix")
    return np.unique(group, return_inverse=True)[1].astype(np.int32)


def by_name(category_ids: Sequence[str], groups: Mapping[str, str]) -> Ints:
    """Number the groups of categories, (categories,). A category that `groups` lacks is a group of its own."""
    names = [groups.get(name, f"\0{name}") for name in category_ids]
    return np.unique(np.array(names, str), return_inverse=True)[1].astype(np.int32)


def _spread_out(point: Floats, weight: Longs, count: int) -> list[int]:
    """Start with the most visited category, then always take the one that lies farthest from all that were taken."""
    taken = [int(np.argmax(weight))]
    nearest = _distances(point, point[taken]).min(axis=1)
    while len(taken) < count:
        taken.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, _distances(point, point[taken[-1:]])[:, 0])
    return taken


def _distances(point: Floats, centre: Floats) -> Floats:
    squared: Floats = ((point[:, None] - centre[None]) ** 2).sum(axis=2)
    return squared
