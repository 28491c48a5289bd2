"""Regions that are too large are cut: within the limits, only where needed, in any order of the venues."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.regions import cut
from ghostpoi.errors import InputError
from ghostpoi.settings import RegionSettings

MANY = 1 << 40


def on_the_equator(visits: list[int], most_venues: int, most_rows: int, region: list[int] | None = None) -> list[int]:
    """The parts of venues that lie on a line, 1 degree apart."""
    n = len(visits)
    of = np.zeros(n, np.int32) if region is None else np.array(region, np.int32)
    where = np.zeros(n), np.arange(n) * 1.0
    return cut(*where, np.array(visits), of, np.arange(n), most_venues, most_rows).tolist()


@pytest.mark.parametrize(
    ("visits", "most_venues", "most_rows", "parts"),
    [
        ([1] * 8, 8, 8, [0] * 8),
        ([1] * 8, 7, 8, [0, 0, 0, 0, 1, 1, 1, 1]),
        ([1] * 8, 8, 7, [0, 0, 0, 0, 1, 1, 1, 1]),
        ([1] * 8, 3, 8, [0, 0, 1, 1, 2, 2, 3, 3]),
        ([1] * 5, 2, MANY, [0, 0, 1, 2, 2]),
        ([9, 1, 1, 1, 1, 1], 8, 13, [0, 1, 1, 1, 1, 1]),  # at the median of visits
        ([9, 1, 1, 1, 1, 1], 5, 13, [0, 0, 0, 1, 1, 1]),  # at the median of venues, as there are too many
        ([1, 1, 1, 1, 1000, 1, 1], 9, 500, [0, 0, 0, 0, 1, 2, 2]),  # one venue with too many visits stays
        ([7], 1, 1, [0]),
        ([], 1, 1, []),
    ],
)
def test_cuts_on_a_line(visits: list[int], most_venues: int, most_rows: int, parts: list[int]) -> None:
    assert on_the_equator(visits, most_venues, most_rows) == parts


def test_parts_are_numbered_by_region() -> None:
    assert on_the_equator([1] * 6, 2, MANY, [1, 1, 1, 1, 0, 2]) == [1, 1, 2, 2, 0, 3]


def test_the_widest_axis_is_cut_and_ties_go_by_rank() -> None:
    lat, lon = np.array([[5.0, 0], [-5, 0], [5, 1], [-5, 1]]).T
    one, zero = np.ones(4, np.int64), np.zeros(4, np.int32)
    assert cut(lat, lon, one, zero, np.arange(4), 2, 4).tolist() == [1, 0, 1, 0]  # north and south
    same = np.full(4, 10.0)
    assert cut(same, same, one, zero, np.array([4, 1, 3, 2]), 2, 4).tolist() == [1, 0, 1, 0]


@dataclass(frozen=True)
class Drawn:
    lat: Floats
    lon: Floats
    visits: Longs
    region: Ints
    rank: Longs

    def take(self, order: Longs) -> "Drawn":
        return Drawn(self.lat[order], self.lon[order], self.visits[order], self.region[order], self.rank[order])

    def parts(self, most_venues: int, most_rows: int) -> Ints:
        return cut(self.lat, self.lon, self.visits, self.region, self.rank, most_venues, most_rows)


@st.composite
def venues(draw: st.DrawFn) -> Drawn:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 200))
    lat, lon = rng.integers(-3, 3, (2, n)) * 1.0 if draw(st.booleans()) else rng.uniform(-90, 90, (2, n))
    visits = rng.integers(0, 10, n) + (rng.random(n) < draw(st.sampled_from([0, 0.1]))) * 500
    _, region = np.unique(rng.integers(0, draw(st.integers(1, 6)), n), return_inverse=True)
    return Drawn(lat, lon, visits, region.astype(np.int32), rng.permutation(n))


limits = st.integers(1, 250)


@given(venues(), limits, st.integers(1, 1500), st.integers(0, 2**32))
def test_cuts_keep_their_promises(drawn: Drawn, most_venues: int, most_rows: int, seed: int) -> None:
    part = drawn.parts(most_venues, most_rows)
    assert part.dtype == np.int32
    assert set(part.tolist()) == set(range(part.max() + 1))
    size, rows = np.bincount(part), np.bincount(part, drawn.visits)
    assert (size <= most_venues).all()
    assert ((rows <= most_rows) | (size == 1)).all()
    region_of = dict(zip(part.tolist(), drawn.region.tolist(), strict=True))
    assert [region_of[p] for p in part.tolist()] == drawn.region.tolist()  # a part lies in one region
    assert [region_of[p] for p in range(len(size))] == sorted(region_of.values())
    for r in set(drawn.region.tolist()):
        members = drawn.region == r
        fits = members.sum() <= most_venues and drawn.visits[members].sum() <= most_rows
        assert len(set(part[members].tolist())) == 1 if fits or members.sum() == 1 else len(set(part[members])) > 1
    order = np.random.default_rng(seed).permutation(len(part))
    assert np.array_equal(drawn.take(order).parts(most_venues, most_rows), part[order])


@given(venues(), limits)
def test_parts_are_not_smaller_than_needed(drawn: Drawn, most_venues: int) -> None:
    part = drawn.parts(most_venues, MANY)
    whole = np.bincount(drawn.region)
    for p, size in enumerate(np.bincount(part).tolist()):
        region = int(drawn.region[part == p][0])
        assert size == whole[region] or size >= (most_venues + 1) // 2


def test_the_settings_of_regions() -> None:
    assert RegionSettings() == RegionSettings(gap_km=50.0, most_venues=30_000, most_rows=2_000_000)
    for name, bad in (("gap_km", 0.05), ("gap_km", 20_001.0), ("most_venues", 0), ("most_rows", 0)):
        with pytest.raises(InputError, match=f"{name} must be at least"):
            RegionSettings(**{name: bad})  # type: ignore[arg-type]
