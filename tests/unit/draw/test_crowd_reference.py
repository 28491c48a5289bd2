"""Crowds are those of a plain program that cuts and exchanges one pair of crowds at a time."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.geo import chord, haversine_km, unit_sphere
from ghostpoi.draw.crowds import Dividing, _bisected, divide, find

Point = np.ndarray


def cut(order: list[int], point: Point, weight: Point, wanted: int) -> list[list[int]]:
    """Cut places across their principal axis into `wanted` groups."""
    if wanted == 1:
        return [order]
    at, heavy = point[order], weight[order]
    away = at - (heavy @ at) / heavy.sum()
    axis = np.linalg.eigh((heavy[:, None] * away).T @ away)[1][:, -1]
    axis = axis * (-1 if axis[np.abs(axis).argmax()] < 0 else 1)
    ordered = [order[i] for i in np.argsort(away @ axis, kind="stable")]
    low = wanted // 2
    middle = round(len(order) * low / wanted)
    return [*cut(ordered[:middle], point, weight, low), *cut(ordered[middle:], point, weight, wanted - low)]


def spread(groups: list[list[int]], point: Point, weight: Point) -> float:
    """The weighted sum of squared distances of places from the centres of their groups."""
    total = 0.0
    for group in groups:
        at, heavy = point[group], weight[group]
        total += float((heavy * ((at - (heavy @ at) / heavy.sum()) ** 2).sum(axis=1)).sum())
    return total


def exchanged(one: list[int], two: list[int], point: Point, weight: Point) -> tuple[list[int], list[int]]:
    """Give the first group the places that are closest to its own centre, compared with the other's."""
    centre = [(weight[group] @ point[group]) / weight[group].sum() for group in (one, two)]

    def cost(place: int) -> float:
        away = [float(((point[place] - at) ** 2).sum()) for at in centre]
        return float(weight[place]) * (away[0] - away[1])

    ordered = sorted([*one, *two], key=lambda place: (cost(place), place))
    return ordered[: len(one)], ordered[len(one) :]


def mixed(one: int, two: int, step: int) -> int:
    """A number for a pair of groups that looks random."""
    number = (one * 0x9E3779B97F4A7C15 + two * 0xC2B2AE3D27D4EB4F) % 2**64
    number = ((number ^ number >> 29) * 0x165667B19E3779F9 + step * 0x9E3779B97F4A7C15) % 2**64
    number = (number ^ number >> 32) * 0xC2B2AE3D27D4EB4F % 2**64
    return number ^ number >> 29


def settled(groups: list[list[int]], point: Point, weight: Point) -> list[list[int]]:
    """Let pairs of the six nearest groups exchange places, again if one of both has changed; look around every 6 steps.

    In each step, a pair goes first that has a larger number than every other pair of both its groups.
    """
    groups, changed, tried = [sorted(group) for group in groups], [0] * len(groups), dict[tuple[int, int], int]()
    for step in range(1, 201):
        if step % 6 == 1:
            centre = np.array([weight[group] @ point[group] / weight[group].sum() for group in groups])
            near = np.linalg.norm(centre[:, None] - centre, axis=2).argsort(axis=1)[:, 1:7]
            pairs = {(min(one, two), max(one, two)) for one, some in enumerate(near.tolist()) for two in some}
            tried = {pair: tried.get(pair, -1) for pair in sorted(pairs)}
        todo = [(one, two) for (one, two), last in tried.items() if max(changed[one], changed[two]) > last]
        if not todo and step % 6 == 1:
            return groups
        number = {pair: mixed(*pair, step) for pair in todo}
        first = [pair for pair in todo if number[pair] == max(number[some] for some in todo if {*some} & {*pair})]
        for one, two in first:
            before, tried[one, two] = (groups[one], groups[two]), step
            groups[one], groups[two] = map(sorted, exchanged(*before, point, weight))
            if before != (groups[one], groups[two]):
                changed[one] = changed[two] = step
                tried[one, two] = step - 1
    return groups


def scattered(seed: int, count: int, dimensions: int = 2) -> tuple[Point, Point]:
    draw = np.random.default_rng(seed)
    return draw.random((count, dimensions)), draw.integers(1, 50, count).astype(float)


def groups_of(number: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(number == n).tolist() for n in range(int(number.max()) + 1)]


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(2, 6))
def test_groups_start_as_those_of_a_plain_program(seed: int, count: int, size: int) -> None:
    point, weight = scattered(seed, count)
    order, bounds, _ = _bisected(point, weight, np.zeros(count, np.int64), size)
    found = [sorted(order[a:b].tolist()) for a, b in pairwise(bounds)]
    assert found == [sorted(group) for group in cut(list(range(count)), point, weight, max(1, count // size))]


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(2, 6))
def test_two_groups_exchange_as_in_a_plain_program(seed: int, count: int, size: int) -> None:
    """Afterwards neither of two neighbours gains by another exchange, and the groups are more compact."""
    point, weight = scattered(seed, max(count, 2 * size))
    part = np.zeros(len(point), np.int64)
    order, bounds, _ = _bisected(point, weight, part, size)
    before = [order[a:b].tolist() for a, b in pairwise(bounds)]
    after = groups_of(divide(point, weight, part, size))
    assert sorted(map(len, before)) == sorted(map(len, after))
    assert spread(after, point, weight) <= spread(before, point, weight) + 1e-9
    if len(after) == 2:
        assert [sorted(group) for group in exchanged(after[0], after[1], point, weight)] == after


@given(st.integers(0, 2**32), st.integers(30, 120), st.integers(2, 6))
def test_many_groups_exchange_as_in_a_plain_program(seed: int, count: int, size: int) -> None:
    point, weight = scattered(seed, count)
    expected = settled(cut(list(range(count)), point, weight, count // size), point, weight)
    assert groups_of(divide(point, weight, np.zeros(count, np.int64), size)) == expected


def test_no_place_has_no_group() -> None:
    nothing = divide(np.zeros((0, 3)), np.zeros(0), np.zeros(0, np.int64), 2)
    assert (nothing.tolist(), nothing.dtype) == ([], np.int64)


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(2, 6))
def test_a_part_is_divided_the_same_way_when_it_is_alone(seed: int, parts: int, size: int) -> None:
    draw = np.random.default_rng(seed)
    point, weight = scattered(seed, 80, 3)
    part = np.unique(draw.integers(0, parts, 80), return_inverse=True)[1].reshape(-1)
    every = divide(point, weight, part, size)
    for number in range(int(part.max()) + 1):
        own = np.flatnonzero(part == number)
        alone = divide(point[own], weight[own], np.zeros(len(own), np.int64), size)
        assert (every[own] - every[own].min() == alone).all()


def test_groups_gather_around_four_corners() -> None:
    """Places around the corners of a square, which a cut along one axis after the other would mix."""
    corner = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    point = np.repeat(corner, 5, axis=0) + np.random.default_rng(1).uniform(-0.1, 0.1, (20, 2))
    assert sorted(groups_of(divide(point, np.ones(20), np.zeros(20, np.int64), 5))) == [
        list(range(begin, begin + 5)) for begin in (0, 5, 10, 15)
    ]


def linked(point: Point, reach: float) -> list[set[int]]:
    """Venues that steps of at most `reach` join, by visiting them one after the other."""
    left, parts = set(range(1, len(point))), []
    while left:
        part, todo = set(), [min(left)]
        while todo:
            venue = todo.pop()
            if venue in left:
                left.discard(venue)
                part.add(venue)
                todo += [other for other in left if np.linalg.norm(point[venue] - point[other]) <= reach]
        parts.append(part)
    return parts


@given(
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 4000)), min_size=1, max_size=50, unique=True),
    st.integers(2, 5), st.sampled_from([0.3, 1.0, 5.0, 40.0]), st.sampled_from([1e-4, 1e-3]),
)  # fmt: skip
def test_crowds_keep_their_size_wherever_enough_venues_are_joined(
    places: list[tuple[int, int]], size: int, reach_km: float, unit: float
) -> None:
    jitter = np.random.default_rng(0).random((len(places), 2))  # so that no two distances are equal
    lat, lon = np.concatenate([[[np.nan, np.nan]], [40.0, -74.0] + (np.array(places) + jitter) * unit]).T
    point = np.zeros((len(lat), 3))
    point[1:] = unit_sphere(lat[1:], lon[1:])
    found = find(lat, lon, np.append(-1, np.zeros(len(places))).astype(np.int32), Dividing(size, reach_km))
    for part in linked(point, chord(reach_km)):
        crowds = {tuple(row[row > 0].tolist()) or (venue,) for venue in part for row in [found.poi[venue]]}
        assert sorted(venue for crowd in crowds for venue in crowd) == sorted(part)  # a partition
        assert len(crowds) == max(1, len(part) // size)
        assert all(size <= len(crowd) < 2 * size for crowd in crowds) or len(part) < size
        for crowd in crowds:
            assert [lat[venue] for venue in crowd] == sorted(lat[venue] for venue in crowd)


@given(st.integers(0, 2**32), st.integers(2, 5))
def test_a_region_has_the_same_crowds_as_in_the_whole(seed: int, size: int) -> None:
    """Two towns 200 km apart, each divided alone and both together."""
    draw = np.random.default_rng(seed)
    lat = np.append(np.nan, draw.uniform(0, 0.1, 60))
    lon = np.append(np.nan, np.where(draw.random(60) < 0.5, 0, 2) + draw.uniform(0, 0.1, 60))
    category, weight = np.append(-1, np.zeros(60)).astype(np.int32), draw.integers(5, 90, 61).astype(float)
    assert haversine_km(0, 0.1, 0, 2) > 200
    whole = find(lat, lon, category, Dividing(size, 40.0), weight=weight).poi
    for east in (False, True):
        own = np.append(0, 1 + np.flatnonzero((lon[1:] > 1) == east))
        alone = find(lat[own], lon[own], category[own], Dividing(size, 40.0), weight=weight[own]).poi
        for number, venue in enumerate(own[1:], 1):
            assert own[alone[number][alone[number] > 0]].tolist() == whole[venue][whole[venue] > 0].tolist()


@given(st.integers(0, 2**32))
def test_the_order_of_venues_does_not_matter(seed: int) -> None:
    draw = np.random.default_rng(seed)
    lat, lon, weight = draw.uniform(0, 1, 50), draw.uniform(0, 1, 50), draw.integers(5, 90, 50).astype(float)
    category = np.append(-1, np.zeros(50)).astype(np.int32)

    def crowds(order: np.ndarray) -> set[frozenset[int]]:
        given = [np.append(np.nan, values[order]) for values in (lat, lon, weight)]
        poi = find(given[0], given[1], category, Dividing(4, 40.0), weight=given[2]).poi[1:]
        return {frozenset(order[row[row > 0] - 1].tolist()) for row in poi}

    assert crowds(np.arange(50)) == crowds(draw.permutation(50))


def test_venues_at_one_position_are_split_and_listed_by_number() -> None:
    lat, lon = np.append(np.nan, np.full(9, 40.0)), np.append(np.nan, np.full(9, -74.0))
    found = find(lat, lon, np.append(-1, np.zeros(9)).astype(np.int32), Dividing(2, 5.0))
    sets = {tuple(row[row > 0].tolist()) for row in found.poi[1:]}
    assert sorted(map(len, sets)) == [2, 2, 2, 3]
    assert sorted(venue for crowd in sets for venue in crowd) == list(range(1, 10))
    assert all(list(crowd) == sorted(crowd) for crowd in sets)
