"""Regions by single linkage: compared with a full distance matrix, anywhere on the globe and in any order."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from small_city import called

from ghostpoi.data import regions
from ghostpoi.data.checkins import Floats, Ints
from ghostpoi.data.geo import EARTH_RADIUS_KM, chord, haversine_km, unit_sphere
from ghostpoi.errors import InputError

DEGREE_KM = EARTH_RADIUS_KM * np.pi / 180
CENTRES = [(0.0, 0.0), (40.7, -74.0), (12.0, 180.0), (-33.0, -179.99), (90.0, 0.0), (-90.0, 50.0), (89.9, 180.0)]
Points = tuple[Floats, Floats]


def groups(label: Ints) -> set[frozenset[int]]:
    """The members of each group."""
    members = defaultdict(list)
    for point, of in enumerate(label.tolist()):
        members[of].append(point)
    return {frozenset(group) for group in members.values()}


def by_distance_matrix(lat: Floats, lon: Floats, gap_km: float) -> Ints:
    """The slow and obvious way."""
    km = haversine_km(lat[:, None], lon[:, None], lat, lon)
    assume(np.abs(km / gap_km - 1).min() > 1e-6)  # a distance that equals the gap is a matter of rounding
    label: Ints = connected_components(km <= gap_km)[1]
    return label


@st.composite
def clouds(draw: st.DrawFn) -> tuple[Points, float]:
    """Points around some centres, so dense that some pairs are within the gap, and the gap."""
    gap = draw(st.sampled_from([0.1, 3.0, 50.0, 700.0, 20_000.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 120))
    centre = np.array(CENTRES)[rng.integers(0, len(CENTRES), n) % draw(st.integers(1, len(CENTRES)))]
    spread = gap * draw(st.sampled_from([0.0, 0.5, 2.0, 6.0, 20.0])) / DEGREE_KM
    lat = centre[:, 0] + rng.uniform(-spread, spread, n)
    lon = centre[:, 1] + rng.uniform(-spread, spread, n) / np.maximum(0.01, np.cos(np.radians(centre[:, 0])))
    over = np.abs(lat) > 90  # beyond a pole: on the other side
    lat, lon = np.where(over, np.sign(lat) * 180 - lat, lat), np.where(over, lon + 180, lon)
    lat, lon = np.clip(lat, -90, 90), (lon + 180) % 360 - 180
    twice = rng.integers(0, n, n // 4)
    return (np.append(lat, lat[twice]), np.append(lon, lon[twice])), gap


@given(clouds(), st.sampled_from([1, 30, 1 << 20]))
def test_regions_are_those_of_the_distance_matrix(cloud: tuple[Points, float], pairs: int) -> None:
    (lat, lon), gap = cloud
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "MAX_PAIRS", pairs)  # 1: every undecided pair of cells goes to a tree
        found = regions.by_gap(lat, lon, gap)
    assert found.dtype == np.int32
    assert groups(found) == groups(by_distance_matrix(lat, lon, gap))


@pytest.mark.parametrize(
    ("points", "gap", "expected"),
    [
        ([(0, 179.9), (0, -179.9), (0, 0), (0, 178.9)], 50, [0, 0, 1, 2]),
        ([(89.9, 0), (89.9, 180), (89.9, 90), (89, 0)], 50, [0, 0, 0, 1]),
        ([(10, 20)], 50, [0]),
        ([(10, 20), (10, 20), (10.5, 20), (10, 20)], 50, [0, 0, 1, 0]),
        ([(0, 0), (0, 0.4), (0, 0.8), (0, 1.2), (0, 1.7)], 50, [0, 0, 0, 0, 1]),
        ([(0, 0), (0, 0.0008), (0, 0.0018)], 0.1, [0, 0, 1]),
        ([(0, 0), (0, 180), (90, 0), (-90, 0)], 20_000, [0, 0, 0, 0]),
        ([], 50, []),
    ],
)
def test_regions_of_a_few_points(points: list[tuple[float, float]], gap: float, expected: list[int]) -> None:
    lat, lon = np.array(points, float).reshape(-1, 2).T
    assert regions.numbered(regions.by_gap(lat, lon, gap), np.arange(len(lat))).tolist() == expected


@pytest.mark.parametrize("gap", [0.0, 0.09, -1.0, float("nan")])
def test_a_gap_without_meaning_is_refused(gap: float) -> None:
    with pytest.raises(InputError, match=r"regions\.gap_km must be at least 0\.1, not"):
        regions.by_gap(np.zeros(2), np.zeros(2), gap)


@pytest.mark.parametrize("share", [(0.9, 0.9999), (1.0001, 1.05)])
def test_a_pair_a_little_closer_or_farther_than_the_gap(share: tuple[float, float]) -> None:
    rng, side, gap = np.random.default_rng(0), 200, 0.1
    # Here and in this direction lie the diagonals of the cells, where two points of one cell are farthest apart.
    lat, lon = (of.ravel() for of in np.meshgrid(np.linspace(-5, 5, side), np.linspace(-50, -40, side)))
    pairs, angle = side**2, np.arctan(0.5**0.5) + rng.normal(0, 0.1, side**2)
    apart = rng.uniform(*share, pairs) * gap / DEGREE_KM
    near_lat = lat + apart * np.sin(angle)
    near_lon = lon + apart * np.cos(angle) / np.cos(np.radians(lat))
    km = haversine_km(lat, lon, near_lat, near_lon)
    label = regions.by_gap(np.append(lat, near_lat), np.append(lon, near_lon), gap)
    assert np.array_equal(label[:pairs] == label[pairs:], km <= gap)
    assert len(np.unique(label)) == pairs + (km > gap).sum()


@pytest.mark.parametrize("apart", [48, 52])
def test_two_towns_of_many_venues_are_joined_by_their_nearest_pair_only(apart: float) -> None:
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(0, 2 / DEGREE_KM, (2, 6000))
    lon[3000:] += (10 + apart) / DEGREE_KM
    lat[[0, 3000]], lon[[0, 3000]] = 0, np.array([5, 5 + apart]) / DEGREE_KM  # the only pair less than 50 km apart
    assert len(groups(regions.by_gap(lat, lon, 50))) == (1 if apart == 48 else 2)


@given(clouds(), st.integers(0, 2**32))
def test_all_cells_at_most_two_apart_are_compared(cloud: tuple[Points, float], seed: int) -> None:
    (lat, lon), gap = cloud
    cells = regions._Cells(unit_sphere(lat, lon), chord(gap * np.random.default_rng(seed).uniform(1, 5)))
    bits, last = regions.AXIS_BITS, (1 << regions.AXIS_BITS) - 1
    at = np.stack([cells.key >> 2 * bits, cells.key >> bits & last, cells.key & last])  # (3, C)
    expected = np.argwhere(np.triu(np.abs(at[:, :, None] - at[:, None]).max(axis=0) <= 2, 1))
    found = [pair for a, b in cells.neighbours() for pair in zip(a.tolist(), b.tolist(), strict=True)]
    assert sorted(map(list, found)) == expected.tolist()


@given(clouds(), st.integers(0, 2**32))
def test_numbers_do_not_depend_on_the_order_of_the_points(cloud: tuple[Points, float], seed: int) -> None:
    (lat, lon), gap = cloud
    rng = np.random.default_rng(seed)
    rank, order = rng.permutation(len(lat)), rng.permutation(len(lat))
    number = regions.numbered(regions.by_gap(lat, lon, gap), rank)
    again = regions.numbered(regions.by_gap(lat[order], lon[order], gap), rank[order])
    assert np.array_equal(again, number[order])


def test_regions_are_numbered_by_the_smallest_rank_of_their_members() -> None:
    label = np.array([7, 3, 7, 5, 3], np.int32)
    assert regions.numbered(label, np.array([40, 10, 0, 30, 20])).tolist() == [0, 1, 0, 2, 1]
    assert regions.numbered(label, np.array([40, 30, 20, 10, 0])).tolist() == [2, 0, 2, 1, 0]


def test_the_regions_of_a_synthetic_world_are_its_cities(tmp_path: Path) -> None:
    size = ("--cities", 40, "--users", 30, "--pois", 200, "--days", 20, "--seed", 8)
    assert called("synth", "-o", tmp_path / "world", *size).returncode == 0
    rows = pl.read_parquet(tmp_path / "world" / "*.parquet")
    venues = rows.unique("venue_id", maintain_order=True)
    found = regions.by_gap(venues["latitude"].to_numpy(), venues["longitude"].to_numpy(), 50.0)
    cities = venues["city"].rank("dense").to_numpy().astype(np.int32)
    assert groups(found) == groups(cities)
    assert len(groups(cities)) == 40
