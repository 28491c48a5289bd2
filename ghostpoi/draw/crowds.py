"""Crowds of nearby venues, the groups of categories inside which they may mix, and the weights of their draws.

Venues that a chain of short steps joins are divided into compact crowds of equal size (`partition`). Busy areas get
narrow crowds and sparse areas wide ones. Every venue is in one crowd, and all venues of a crowd have the same
candidates in the same order: the whole crowd.

Weights show how popular venues are, as far as a release may show it. A venue with few visits counts as having
`min_visits`, so that the visits of one person to a rare venue do not show. Hours come from the category, not from the
venue: the hours of one venue can be those of one person, and so can those of a category with few visits, which
therefore has the hours of all categories.
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from ghostpoi.data.candidates import Candidates, by_category
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import chord, unit_sphere
from ghostpoi.data.places import SLOTS, Places
from ghostpoi.data.regions import by_gap
from ghostpoi.draw.partition import divide, halves

Division = Literal["compact", "halves"]


@dataclass(frozen=True)
class Dividing:
    """How venues are divided into crowds."""

    size: int
    reach_km: float
    division: Division = "compact"

    def crowds(self, lat: Floats, lon: Floats, kind: Ints, weight: Floats | None = None) -> Longs:
        """Number the crowds of venues, (P,); arguments are (P+1,) with row 0 as padding, and crowds are of one kind."""
        point = np.zeros((len(lat), 3))
        point[1:] = unit_sphere(lat[1:], lon[1:])
        if self.division == "compact":
            part = _joined(lat, lon, kind, self.reach_km)
            return divide(point[1:], np.ones(len(part)) if weight is None else weight[1:], part, self.size)
        reach = chord(self.reach_km)
        every = [crowd for members in by_category(kind) for crowd in halves(members, point, self.size, reach)]
        number = np.zeros(len(lat), np.int64)
        for at, crowd in enumerate(every):
            number[crowd] = at
        return number[1:]


def find(
    lat: Floats, lon: Floats, category: Ints, rule: Dividing, known: Bools | None = None, weight: Floats | None = None
) -> Candidates:
    """Return the crowd of every venue as its candidate set; arguments are (P+1,) with row 0 as padding.

    Venues can share a crowd if a chain of venues with steps of at most `reach_km` joins them. If fewer than `size`
    venues are joined, they are one smaller crowd; a venue without another one in reach has no candidates. Venues that
    weigh more lie closer to the centre of their crowd; `weight` must not show more than the release does.

    Only `known` venues can be drawn inside sessions, and rows in and outside sessions must draw from the same crowd; so
    venues that models do not know form crowds of their own. Where too few of them are joined, each borrows the crowd of
    the nearest known venue in reach.
    """
    crowd = rule.crowds(lat, lon, category if known is None else 2 * category + known, weight)
    poi = _sets(crowd, lat, lon)
    if known is not None:
        enough = rule.size if rule.division == "compact" else 2
        few = np.append(False, np.bincount(crowd)[crowd] < enough) & ~known
        point = unit_sphere(np.nan_to_num(lat), np.nan_to_num(lon))
        for members in by_category(category):
            _borrow(members[few[members]], members[known[members]], poi, point, chord(rule.reach_km))
    return Candidates(poi, np.where(poi[:, 0] > 0, rule.reach_km, 0.0))


def _joined(lat: Floats, lon: Floats, kind: Ints, reach_km: float) -> Longs:
    """Number the venues (P,) of one kind that are joined by steps of at most `reach_km`."""
    part, count = np.zeros(len(lat), np.int64), 0
    for members in by_category(kind):
        found = np.unique(by_gap(lat[members], lon[members], reach_km), return_inverse=True)[1]
        part[members] = count + found
        count += int(found.max(initial=-1)) + 1
    return part[1:]


def _sets(crowd: Longs, lat: Floats, lon: Floats) -> Ints:
    """Return the members of the crowd of every venue, (P+1, K), padded with 0; nothing for one that is alone.

    The order inside a crowd, south to north, depends on positions, not on who went there. Venues at one position keep
    the order of the arguments, so the caller must order them by something that no visit decides.
    """
    size = np.bincount(crowd)
    members = np.zeros((len(size), int(size.max(initial=1))), np.int32)
    order = np.lexsort((lon[1:], lat[1:], crowd))
    number = crowd[order]
    members[number, np.arange(len(order)) - (np.cumsum(size) - size)[number]] = order + 1
    members[size == 1] = 0
    return np.concatenate([np.zeros((1, members.shape[1]), np.int32), members[crowd]])


def _borrow(guests: Longs, hosts: Longs, poi: Ints, point: Floats, reach: float) -> None:
    """Give each guest the crowd of the nearest host, or the host if that is alone."""
    if len(guests) and len(hosts):
        away, found = scipy.spatial.cKDTree(point[hosts]).query(point[guests], distance_upper_bound=reach)
        near = np.isfinite(away)
        nearest = hosts[found[near]]
        poi[guests[near]] = poi[nearest]
        poi[guests[near], 0] = np.where(poi[nearest, 0] > 0, poi[nearest, 0], nearest)


FEW = 5  # a category with fewer visits has no hours of its own
SMOOTHING = 50.0  # visits that the hours of all categories together count as in those of one category


def slot_weights(category: Ints, hours: Floats) -> Floats:
    """Return the weight of each venue in each slot of the week, (SLOTS, P+1), mean 1; `hours` are `category_hours`."""
    return np.concatenate([np.zeros((SLOTS, 1)), hours[category[1:]].T * SLOTS], axis=1)


def category_hours(places: Places) -> Floats:
    """Return the share of a category's visits in each slot of the week, smoothed, (categories, SLOTS)."""
    counts = places.category_visits.astype(float)
    everywhere = (counts.sum(axis=0) + 1) / (counts.sum() + SLOTS)
    counts[counts.sum(axis=1) < FEW] = 0
    return (counts + SMOOTHING * everywhere) / (counts.sum(axis=1, keepdims=True) + SMOOTHING)


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
