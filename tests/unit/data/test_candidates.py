"""Candidate sets against a brute-force implementation, and the speed mask."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from speed_rule import speed_mask

from ghostpoi.data import candidates
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.geo import EARTH_RADIUS_KM, chord, haversine_km, speed_kmh, unit_sphere
from ghostpoi.settings import CandidateSettings, SpeedSettings

City = tuple[np.ndarray, np.ndarray, np.ndarray]


def city(*venues: tuple[float, float, int]) -> City:
    """Latitude, longitude and category with a row of padding before them."""
    lat, lon, category = np.array(venues, float).reshape(-1, 3).T
    return np.append(np.nan, lat), np.append(np.nan, lon), np.append(-1, category).astype(np.int32)


def reference(
    lat: np.ndarray, lon: np.ndarray, category: np.ndarray, p: int, rule: CandidateSettings
) -> tuple[list[int], float]:
    """C0(p) by the paper's definition: same category, within a radius that widens while too few, the K nearest."""
    km = {
        q: float(haversine_km(lat[p], lon[p], lat[q], lon[q]))
        for q in range(1, len(lat))
        if q != p and category[q] == category[p]
    }
    radius, widened = rule.radius_km, 0
    near = [q for q in km if km[q] <= radius]
    while len(near) < rule.min_candidates and widened < rule.max_widenings:
        radius, widened = radius * rule.widen_factor, widened + 1
        near = [q for q in km if km[q] <= radius]
    return sorted(near, key=km.__getitem__)[: rule.max_candidates], radius


CENTRES = [(40.7, -74.0), (0.0, 180.0), (51.5, -179.99), (89.98, 10.0), (-89.99, 0.0), (90.0, 0.0)]


@st.composite
def cities(draw: st.DrawFn) -> City:
    """Venues on a fine grid around one or two centres, so that many share a position."""
    centres = draw(st.lists(st.sampled_from(CENTRES), min_size=1, max_size=2))
    step = st.integers(-6, 6).map(lambda n: n * 0.006)
    venue = st.tuples(st.sampled_from(centres), step, step, st.floats(0, 360), st.integers(0, 2))
    venues = []
    for (lat, lon), north, east, turn, category in draw(st.lists(venue, min_size=1, max_size=40)):
        lat, polar = max(-90.0, min(90.0, lat + north)), abs(lat) > 89
        venues.append((lat, (lon + (turn if polar else east) + 180) % 360 - 180, category))
    return city(*venues)


rules = st.builds(
    CandidateSettings,
    radius_km=st.sampled_from([0.3, 1.0, 2.5]),
    min_candidates=st.integers(0, 10),
    widen_factor=st.sampled_from([1.0, 1.5, 3.0]),
    max_widenings=st.integers(0, 4),
    max_candidates=st.integers(1, 8),
)


@given(cities(), rules)
@example(city(*[(1.0, 1.0, 0)] * 12), CandidateSettings(max_candidates=3))
@example(city(*[(1.0, 1.0, 0)] * 4), CandidateSettings(max_candidates=3))
def test_candidates_are_those_of_the_brute_force_reading(venues: City, rule: CandidateSettings) -> None:
    lat, lon, category = venues
    found = candidates.find(lat, lon, category, rule, workers=1)
    assert found.poi.dtype == np.int32
    largest = np.bincount(category[1:]).max() - 1
    assert found.poi.shape == (len(lat), max(1, min(rule.max_candidates, largest)))
    assert not found.poi[0].any()
    for p in range(1, len(lat)):
        expected, radius = reference(lat, lon, category, p, rule)
        got = found.poi[p][found.poi[p] > 0]
        assert found.radius_km[p] == pytest.approx(radius, rel=1e-12)
        assert len(got) == len(set(got.tolist())) == len(expected) == found.size[p]
        assert p not in got
        assert (category[got] == category[p]).all()
        # Compare distances, not venues: any of several equally distant venues may take the last of the K places.
        km = haversine_km(lat[p], lon[p], lat[got], lon[got])
        assert km.tolist() == sorted(km.tolist())
        assert km == pytest.approx(haversine_km(lat[p], lon[p], lat[expected], lon[expected]), abs=1e-6)


def test_names_are_exact_where_no_two_are_equally_far() -> None:
    rng = np.random.default_rng(3)
    venues = [(40 + rng.uniform(0, 0.1), -74 + rng.uniform(0, 0.1), rng.integers(3)) for _ in range(200)]
    lat, lon, category = city(*venues)
    found = candidates.find(lat, lon, category, CandidateSettings(max_candidates=9), workers=1)
    for p in range(1, len(lat)):
        expected, _ = reference(lat, lon, category, p, CandidateSettings(max_candidates=9))
        assert found.poi[p][found.poi[p] > 0].tolist() == expected


def north(km: float) -> float:
    return math.degrees(km / EARTH_RADIUS_KM)


def test_widening_by_hand() -> None:
    """Anchor 1 at the equator; others 0.5, 1.2, 2 and 9 km to the north of it."""
    lat, lon, category = city(*((north(km), 0.0, 0) for km in (0, 0.5, 1.2, 2.0, 9.0)))

    def sets(**rule: Any) -> tuple[list[int], float]:
        found = candidates.find(lat, lon, category, CandidateSettings(**rule), workers=1)
        return found.poi[1][found.poi[1] > 0].tolist(), float(found.radius_km[1])

    assert sets(min_candidates=0) == ([2], 1.0)
    assert sets(min_candidates=1) == ([2], 1.0)
    assert sets(min_candidates=2) == ([2, 3], 1.5)
    assert sets(min_candidates=3) == ([2, 3, 4], 2.25)
    assert sets(min_candidates=4) == ([2, 3, 4], 5.0625)
    assert sets(min_candidates=4, max_widenings=2) == ([2, 3, 4], 2.25)
    assert sets(min_candidates=4, widen_factor=2.0) == ([2, 3, 4, 5], 16.0)
    assert sets(min_candidates=3, max_candidates=1) == ([2], 2.25)  # widening counts all, K cuts afterwards
    assert sets(min_candidates=0, radius_km=0.1) == ([], 0.1)


def test_across_the_antimeridian_and_over_the_pole() -> None:
    lat, lon, category = city((0, 179.999, 0), (0, -179.999, 0), (89.999, 0, 1), (89.999, 180, 1), (-89.999, 0, 1))
    found = candidates.find(lat, lon, category, CandidateSettings(), workers=1)
    assert found.poi[1:, 0].tolist() == [2, 1, 4, 3, 0]


def test_a_category_of_one_and_no_venue_at_all() -> None:
    alone = candidates.find(*city((1, 1, 0), (1, 1, 1)), CandidateSettings(), workers=1)
    assert alone.size.tolist() == [0, 0, 0]
    assert alone.radius_km[1:].tolist() == [5.0625, 5.0625]
    assert candidates.find(*city(), CandidateSettings(), workers=1).size.tolist() == [0]


@pytest.mark.parametrize("widenings", [0, 1])
@pytest.mark.parametrize("learned", [False, True])
def test_a_venue_exactly_at_the_radius_is_found(widenings: int, learned: bool) -> None:
    """Among many more venues, so that a tree is searched, whose distances are rounded in another way."""
    rng = np.random.default_rng(2)
    for east, least in zip(rng.uniform(1e-5, 0.4, 40), rng.uniform(0, 0.3, 40), strict=True):
        lat, lon, category = city((least, -74, 0), (least + east / 2, -74 + east, 0), *((9, n, 0) for n in range(9)))
        radius = float(haversine_km(lat[1], lon[1], lat[2], lon[2]))
        rule = CandidateSettings(radius, min_candidates=widenings, max_widenings=widenings, max_candidates=1)
        alike = np.ones((len(lat), 1))
        found = (
            candidates.find_alike(lat, lon, alike, rule) if learned else candidates.find(lat, lon, category, rule, 1)
        )
        assert (found.poi[1].tolist(), found.radius_km[1]) == ([2], radius)


def test_renamed_sets_keep_their_weights() -> None:
    sets = Candidates(
        np.array([[0, 0], [1, 2], [1, 2], [3, 0]], np.int32), np.array([0.0, 1.0, 2.0, 3.0]),
        np.array([[0.0, 0.0], [5.0, 6.0], [7.0, 8.0], [9.0, 0.0]]), np.array([[0.0, 1, 2, 3], [0.0, 4, 5, 6]]),
        hidden=np.array([False, False, True, False]), borrows=np.array([False, False, False, True]),
    )  # fmt: skip
    found = sets.renumbered(np.array([0, 10, 20, 30]), np.array([3, 2]))
    assert found.poi.tolist() == [[30, 0], [10, 20]]
    assert found.poi.dtype == np.int32
    assert found.radius_km.tolist() == [3, 2]
    parts = (found.weight, found.slot_weight, found.hidden, found.borrows)
    assert [None if part is None else part.tolist() for part in parts] == [
        [[9, 0], [7, 8]], [[3, 2], [6, 5]], [False, True], [True, False]
    ]  # fmt: skip
    plain = Candidates(sets.poi, sets.radius_km, everywhere=True).renumbered(np.arange(4), np.arange(4))
    assert (plain.weight, plain.slot_weight, plain.hidden, plain.borrows) == (None,) * 4
    assert plain.everywhere


def test_the_weight_of_a_draw_is_that_of_the_candidate_times_that_of_its_slot() -> None:
    poi, weight = np.array([[0, 0], [1, 2], [2, 1]], np.int32), np.array([[0.0, 0.0], [5.0, 6.0], [7.0, 8.0]])
    by_slot = np.array([[0.0, 1.0, 2.0], [0.0, 3.0, 4.0]])
    anchor, slot = np.array([1, 2]), np.array([1, 0])

    def drawn(**given: Any) -> Any:
        found = Candidates(poi, np.ones(3), **given).draw_weights(anchor, slot)
        return None if found is None else found.tolist()

    assert drawn() is None
    assert drawn(weight=weight) == [[5, 6], [7, 8]]
    assert drawn(slot_weight=by_slot) == [[3, 4], [2, 1]]
    assert drawn(weight=weight, slot_weight=by_slot) == [[15, 24], [14, 8]]


def test_what_is_released_for_a_hidden_venue_is_the_nearest_shown_one() -> None:
    lat, lon = np.array([np.nan, 0, 1, 2, 3]), np.array([np.nan, 0, 0, 0, 0])

    def shown(*hidden: bool) -> list[int]:
        return Candidates(np.zeros((5, 1), np.int32), np.ones(5), hidden=np.array(hidden)).shown_for(lat, lon).tolist()

    assert shown(False, False, True, True, False) == [0, 1, 1, 4, 4]
    assert shown(False, False, True, True, True) == [0, 1, 1, 1, 1]
    assert shown(False, True, True, True, True) == shown(False, False, False, False, False) == [0, 1, 2, 3, 4]
    assert Candidates.anywhere(5).shown_for(lat, lon).tolist() == [0, 1, 2, 3, 4]


def test_many_anchors_are_searched_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    venues = city(*((40 + rng.uniform(0, 0.1), -74 + rng.uniform(0, 0.1), rng.integers(2)) for _ in range(50)))
    whole = candidates.find(*venues, CandidateSettings(), workers=1)
    monkeypatch.setattr(candidates, "CHUNK", 7)
    parts = candidates.find(*venues, CandidateSettings(), workers=1)
    assert np.array_equal(whole.poi, parts.poi)
    assert np.array_equal(whole.radius_km, parts.radius_km)


def test_the_speed_mask_by_hand() -> None:
    """Venues 2 and 3 lie 1 and 2 km from venue 1; 60 km/h is 1 km a minute."""
    lat, lon, _ = city((0, 0, 0), (north(0.9999), 0, 0), (north(2.0001), 0, 0))
    options = np.array([[1, 2, 3, 0]] * 6, np.int32)
    previous = np.array([1, 1, 1, 1, 1, 0], np.int32)
    gap = np.array([0, 59, 60, 120, 121, 0])
    mask = speed_mask(lat, lon, previous, options, gap, SpeedSettings())
    assert mask.tolist() == [
        [True, True, False, False],  # equal timestamps count as 60 s
        [True, True, False, False],
        [True, True, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, False],  # no previous venue: everything except padding
    ]
    strict = speed_mask(lat, lon, previous, options, gap, SpeedSettings(min_gap_s=1))
    assert strict.tolist()[:3] == [[True, False, False, False], [True, False, False, False], [True, True, False, False]]
    slow = speed_mask(lat, lon, previous, options, gap, SpeedSettings(limit_kmh=30))
    assert slow[3].tolist() == [True, True, False, False]
    assert slow[2].tolist() == [True, False, False, False]


def test_the_first_step_has_no_speed() -> None:
    lat, lon, _ = city((0, 0, 0), (north(1), 0, 0), (north(3), 0, 0))
    options = np.array([[1, 2], [2, 3]], np.int32)
    kmh = candidates.steps_kmh(lat, lon, np.array([0, 1], np.int32), options, np.array([0, 1800]), 60.0)
    assert kmh[0].tolist() == [0, 0]
    assert kmh[1] == pytest.approx([2, 6])


def test_speed() -> None:
    assert speed_kmh(np.array([1.0, 1.0, 30.0]), np.array([0, 60, 1800]), 60).tolist() == [60, 60, 60]


def test_distances() -> None:
    quarter = math.pi / 2 * EARTH_RADIUS_KM
    for there, km in (
        ((0, 90), quarter),
        ((90, 77), quarter),
        ((0, 180), 2 * quarter),
        ((0, -180), 2 * quarter),
        ((0, 0), 0),
    ):
        assert float(haversine_km(*map(np.array, (0.0, 0.0, *there)))) == pytest.approx(km, abs=1e-3)
    paris_london = haversine_km(*map(np.array, (48.8566, 2.3522, 51.5074, -0.1278)))
    assert float(paris_london) == pytest.approx(343.6, abs=0.1)


angles = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


@given(angles, angles)
def test_distance_agrees_with_the_angle_between_unit_vectors(
    one: tuple[float, float], two: tuple[float, float]
) -> None:
    a, b = (unit_sphere(np.array([lat]), np.array([lon]))[0] for lat, lon in (one, two))
    angle = math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))
    km = float(haversine_km(*map(np.array, (*one, *two))))
    assert km == pytest.approx(angle * EARTH_RADIUS_KM, abs=1e-3)
    assert chord(km) == pytest.approx(float(np.linalg.norm(a - b)), abs=1e-7)
