"""Halves are those of a plain program that splits parts one by one and compares each lone venue with all others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.geo import chord, unit_sphere
from ghostpoi.draw.crowds import Dividing, find

LONELY = 1.25  # times the reach


def apart(point: np.ndarray) -> np.ndarray:
    distance: np.ndarray = np.sqrt(((point[:, None] - point[None]) ** 2).sum(axis=2))
    return distance


def split(part: list[int], point: np.ndarray, size: int, reach: float) -> list[list[int]]:
    axis = np.ptp(point[part], axis=0).argmax()
    part = sorted(part, key=lambda venue: (point[venue, axis], venue))
    if len(part) >= 2 * size:
        cut = len(part) // 2
    elif apart(point[part]).max() > reach:
        least = max(1, len(part) // 4)
        gaps = np.diff(point[part, axis])
        cut = 1 + max(range(least - 1, len(part) - least), key=lambda at: (gaps[at], -at))
    else:
        return [part]
    return [*split(part[cut:], point, size, reach), *split(part[:cut], point, size, reach)]


def joined(crowds: list[list[int]], point: np.ndarray, reach: float) -> list[list[int]]:
    venues = sorted(venue for crowd in crowds for venue in crowd)
    away = apart(point)
    name = {venue: number for number, crowd in enumerate(crowds) for venue in crowd}
    for venue in [crowd[0] for crowd in crowds if len(crowd) == 1]:
        others = [other for other in venues if other != venue and away[venue, other] < LONELY * reach]
        if not others or sum(number == name[venue] for number in name.values()) > 1:
            continue
        near = min(others, key=lambda other: away[venue, other])
        host = [other for other in venues if name[other] == name[near]]
        left = [other for other in host if other != near]
        moves = near if len(host) > 2 and away[np.ix_([*host, venue], [*host, venue])].max() > reach else venue
        if moves == near and max(min(away[one, two] for two in left if two != one) for one in left) > LONELY * reach:
            moves = venue
        name[moves] = name[venue] if moves == near else name[near]
    return [[venue for venue in venues if name[venue] == number] for number in sorted(set(name.values()))]


@given(
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 4000)), min_size=1, max_size=50, unique=True),
    st.integers(2, 5), st.sampled_from([0.3, 1.0, 5.0, 40.0]), st.sampled_from([1e-4, 1e-3]),
)  # fmt: skip
def test_halves_are_those_of_a_plain_program(
    places: list[tuple[int, int]], size: int, reach_km: float, unit: float
) -> None:
    jitter = np.random.default_rng(0).random((len(places), 2))  # so that no two distances are equal
    lat, lon = np.concatenate([[[np.nan, np.nan]], [40.0, -74.0] + (np.array(places) + jitter) * unit]).T
    point = np.zeros((len(lat), 3))
    point[1:] = unit_sphere(lat[1:], lon[1:])
    reach = chord(reach_km)
    crowds = joined(split(list(range(1, len(lat))), point, size, reach), point, reach)
    found = find(lat, lon, np.append(-1, np.zeros(len(places))).astype(np.int32), Dividing(size, reach_km, "halves"))
    for crowd in crowds:
        ordered = sorted(crowd, key=lambda venue: lat[venue])
        for venue in crowd:
            row = found.poi[venue]
            assert row[row > 0].tolist() == (ordered if len(crowd) > 1 else [])


def test_venues_at_one_position_are_split_and_listed_by_number() -> None:
    lat, lon = np.append(np.nan, np.full(9, 40.0)), np.append(np.nan, np.full(9, -74.0))
    found = find(lat, lon, np.append(-1, np.zeros(9)).astype(np.int32), Dividing(2, 5.0, "halves"))
    sets = {tuple(row[row > 0].tolist()) for row in found.poi[1:]}
    assert sets == {(1, 2), (3, 4), (5, 6), (7, 8, 9)}
