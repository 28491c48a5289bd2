"""Groups of categories, inside which a crowd may change the category.

They come from a taxonomy (a file, or a column of the check-ins), or are learned: categories that are visited at the
same hours of the week fall into one group.
"""

import re
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data.checkins import Ints
from ghostpoi.data.places import Places
from ghostpoi.publish.popularity import category_hours

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
