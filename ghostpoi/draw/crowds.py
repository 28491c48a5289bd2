"""Crowds of nearby venues, the groups of categories inside which they may mix, and the weights of their draws.

Venues that a chain of short steps joins are divided into compact crowds of equal size. First, places are cut in two
across the axis of their widest spread, and each part again, so that all parts end up equally large. Then neighbouring
groups exchange places: each keeps as many as it had, of those that are closer to its own centre than to the other's.
This is k-means with fixed sizes. Places count by weight in spreads and centres, so heavy places end up close to the
centres. All parts are processed together, but no part influences another one. `halves` halves boxes instead.

Busy areas get narrow crowds and sparse areas wide ones. Every venue is in one crowd, and all venues of a crowd have
the same candidates in the same order: the whole crowd.

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


STEPS = 200  # at most
NEIGHBOURS = 6  # groups with which a group exchanges places
FAR = 4.0  # more than the distance of any two places on the unit sphere
LOOK_AGAIN = 6  # steps after which the neighbours are searched again: centres move
MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)  # odd numbers with irregular bits


def divide(point: Floats, weight: Floats, part: Longs, size: int) -> Longs:
    """Return the group of every place, (N,), numbered from 0, by part.

    `point` (N, D) are positions, `weight` (N,) is positive, and `part` (N,) is 0, 1, 2, ... A part of n places has
    n // size groups, but at least one, whose sizes differ by as little as possible. The order of places decides ties.
    """
    if not len(point):
        return np.empty(0, np.int64)
    order, bounds, home = _bisected(point, weight, part, size)
    member = np.full((len(home), int(np.diff(bounds).max(initial=0))), -1, np.int64)  # (G, K)
    number = np.repeat(np.arange(len(home)), np.diff(bounds))
    order = order[np.lexsort((order, number))]
    member[number, np.arange(len(order)) - bounds[number]] = order
    member = _exchanged(member, point, weight, home)
    row, column = np.nonzero(member >= 0)
    group = np.empty(len(point), np.int64)
    group[member[row, column]] = row
    return group


def _bisected(point: Floats, weight: Floats, part: Longs, size: int) -> tuple[Longs, Longs, Longs]:
    """Return places in the order of their groups, the bounds of the groups, (G+1,), and the part of each, (G,)."""
    order = np.argsort(part, kind="stable")
    count = np.bincount(part)
    bounds, home = np.append(0, np.cumsum(count)), np.arange(len(count))
    wanted = np.maximum(1, count // size)  # groups to be made of each piece
    while (wanted > 1).any():
        begin, length, cut = bounds[:-1], np.diff(bounds), wanted > 1
        piece = np.repeat(np.arange(len(begin)), length)
        order = order[np.lexsort((order, _along(point[order], weight[order], piece, begin), piece))]
        low = wanted // 2
        middle = begin + np.rint(length * low / wanted).astype(np.int64)
        bounds = np.sort(np.append(bounds, middle[cut]))
        home = np.repeat(home, 1 + cut)
        both = np.stack([np.where(cut, low, wanted), np.where(cut, wanted - low, 0)], axis=1).ravel()
        wanted = both[both > 0]
    return order, bounds, home


def _along(point: Floats, weight: Floats, piece: Longs, begin: Longs) -> Floats:
    """Return the position of each place (N,) on the principal axis of its piece."""
    total = np.add.reduceat(weight, begin)[:, None]
    away = point - (np.add.reduceat(weight[:, None] * point, begin) / total)[piece]
    spread = np.add.reduceat((weight[:, None] * away)[:, :, None] * away[:, None], begin)
    axis = np.linalg.eigh(spread)[1][:, :, -1]
    axis *= np.where(np.take_along_axis(axis, np.abs(axis).argmax(axis=1)[:, None], axis=1) < 0, -1, 1)
    return (away * axis[piece]).sum(axis=1)


def _exchanged(member: Longs, point: Floats, weight: Floats, home: Longs) -> Longs:
    """Let neighbouring groups of a part exchange places until none gain; `member` (G, K) is padded with -1."""
    groups = _Groups(member.copy(), point, weight, np.repeat(-1, len(point)), _centres(member, point, weight))
    row, column = np.nonzero(member >= 0)
    groups.owner[member[row, column]] = row
    first = np.searchsorted(home, home)  # of the part of each group
    pairs, tried = np.empty(0, np.int64), np.empty(0, np.int64)
    changed = np.zeros(len(home), np.int64)  # the step after which a group was as it is
    for step in range(1, STEPS + 1):
        if step % LOOK_AGAIN == 1:
            before, pairs = pairs, _neighbours(groups.centre, home)
            at = np.searchsorted(before, pairs)
            known = np.append(before, -1)[at] == pairs
            tried = np.where(known, np.append(tried, -1)[at], -1)  # the step in which each pair was tried last
        one, two = np.divmod(pairs, len(home))
        todo = np.flatnonzero(np.maximum(changed[one], changed[two]) > tried)  # others would exchange nothing
        if not len(todo):
            if step % LOOK_AGAIN == 1:
                break
            continue
        one, two = one[todo], two[todo]
        chosen = _matched(one, two, _mixed(one - first[one], two - first[two], step), len(home))
        tried[todo[chosen]] = step
        moved = groups.exchange(one[chosen], two[chosen])
        changed[one[chosen[moved]]] = changed[two[chosen[moved]]] = step
        tried[todo[chosen[moved]]] = step - 1  # their centres have moved
    return groups.member


@dataclass
class _Groups:
    """Groups of places, with the weighted mean position of each."""

    member: Longs  # (G, K), padded with -1
    point: Floats  # (N, D)
    weight: Floats  # (N,)
    owner: Longs  # (N,) the group of each place
    centre: Floats  # (G, D)

    def exchange(self, a: Longs, b: Longs) -> Bools:
        """Divide the places of each pair of groups between the two again; return which pairs (B,) changed."""
        rows = len(self.point)
        both = np.concatenate([self.member[a], self.member[b]], axis=1)  # (B, 2K)
        both = np.sort(np.where(both < 0, rows, both), axis=1)  # ties go by number; padding is last
        real, place = both < rows, np.minimum(both, rows - 1)
        middle, apart = (self.centre[a] + self.centre[b]) / 2, self.centre[b] - self.centre[a]
        # By how much more the groups would spread with a place in a than with it in b, up to a factor.
        cost = self.weight[place] * ((self.point[place] - middle[:, None]) * apart[:, None]).sum(axis=2)
        rank = np.argsort(np.where(real, cost, np.inf), axis=1, kind="stable")
        both = np.take_along_axis(np.where(real, both, -1), rank, axis=1)
        column = np.arange(self.member.shape[1])
        of_a, of_b = ((self.member[some] >= 0).sum(axis=1)[:, None] for some in (a, b))
        new_a = np.where(column < of_a, both[:, : len(column)], -1)
        new_b = np.where(column < of_b, np.take_along_axis(both, of_a + column, axis=1), -1)
        moved: Bools = ((new_a >= 0) & (self.owner[new_a] != a[:, None])).any(axis=1)
        for some, new in ((a[moved], new_a[moved]), (b[moved], new_b[moved])):
            self.member[some] = new
            self.owner[new[new >= 0]] = np.repeat(some, (new >= 0).sum(axis=1))
            self.centre[some] = _centres(new, self.point, self.weight)
        return moved


def _centres(member: Longs, point: Floats, weight: Floats) -> Floats:
    """Return the weighted mean position of each group, (G, D)."""
    share = np.where(member >= 0, weight[member], 0.0)
    return (share[:, :, None] * point[member]).sum(axis=1) / share.sum(axis=1, keepdims=True)


def _neighbours(centre: Floats, home: Longs) -> Longs:
    """Return the pairs of groups of which one is among the nearest ones of the other in the same part, as i G + j."""
    spaced = np.column_stack([centre, home * FAR])  # other parts are farther away than all of the own one
    near = scipy.spatial.cKDTree(spaced).query(spaced, k=np.arange(1, min(NEIGHBOURS + 1, len(home)) + 1))[1]
    own = np.broadcast_to(np.arange(len(home))[:, None], near.shape)
    pairs = np.minimum(own, near) * len(home) + np.maximum(own, near)
    return np.unique(pairs[(own != near) & (home[own] == home[near])])


def _mixed(one: Longs, two: Longs, step: int) -> Longs:
    """Rank pairs (B,) in an order that looks random, changes with every step and depends on nothing else."""
    # uint64 wraps around.
    number = one.astype(np.uint64) * np.uint64(MIX[0]) + two.astype(np.uint64) * np.uint64(MIX[1])
    number = (number ^ (number >> np.uint64(29))) * np.uint64(MIX[2]) + np.uint64(step * MIX[0] % 2**64)
    number = (number ^ (number >> np.uint64(32))) * np.uint64(MIX[1])
    number ^= number >> np.uint64(29)
    rank = np.empty(len(number), np.int64)
    rank[np.argsort(number, kind="stable")] = np.arange(len(number))
    return rank


def _matched(one: Longs, two: Longs, rank: Longs, groups: int) -> Longs:
    """Return the numbers of the pairs that outrank all other pairs of both their groups: none shares a group."""
    highest = np.full(groups, -1)
    np.maximum.at(highest, one, rank)
    np.maximum.at(highest, two, rank)
    return np.flatnonzero((highest[one] == rank) & (highest[two] == rank))


LONELY = 1.25  # how much farther than the reach of crowds a venue that is alone looks for a neighbour


def halves(members: Longs, point: Floats, size: int, reach: float) -> list[Longs]:
    """Divide venues of one kind into crowds by halving boxes: the crowds of earlier versions.

    They are cut in two along the axis of their widest spread, and each part again, while both parts keep `size` venues.
    Crowds that are too wide are cut at a wide gap. This is Mondrian, known from k-anonymity. A crowd is no wider than
    `reach`, until a venue that would be alone joins the crowd of its nearest neighbour.
    """
    todo, crowds = [members], []
    while todo:
        part = todo.pop()
        along = point[part, int(np.ptp(point[part], axis=0).argmax())]
        order = np.lexsort((part, along))  # venues at one position by number
        cut = len(part) // 2
        if len(part) < 2 * size:
            if _width(point[part]) <= reach:
                crowds.append(part)
                continue
            least = max(1, len(part) // 4)  # on either side, so that few venues end up alone
            cut = least + int(np.diff(along[order])[least - 1 : len(part) - least].argmax())  # at the widest gap
        todo += [part[order[:cut]], part[order[cut:]]]
    return _with_lonely(crowds, members, point, reach)


def _with_lonely(crowds: list[Longs], members: Longs, point: Floats, reach: float) -> list[Longs]:
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


def _width(point: Floats) -> float:
    """Return the largest straight-line distance between two of these points."""
    return float(np.sqrt(((point[:, None] - point[None]) ** 2).sum(axis=2).max()))
