"""Candidate sets that follow how venues are used: what is learned, the search, and what a higher threshold does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_candidates import rules as by_category

from ghostpoi.data.candidates import candidate_sets, find_alike
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.places import Places, learn_use
from ghostpoi.settings import CandidateSettings

HOUR, DAY = 3600, 86_400
Visits = tuple[np.ndarray, np.ndarray, np.ndarray]  # venue, time, user
City = tuple[np.ndarray, np.ndarray, np.ndarray]  # latitude, longitude, use


def visits(*rows: tuple[int, int, int]) -> Visits:
    venue, time, user = np.array(rows).T
    return venue.astype(np.int32), time, user.astype(np.int32)


def likeness(*rows: tuple[int, int, int]) -> np.ndarray:
    """The similarity of every two venues."""
    found = visits(*rows)
    use = learn_use(*found, int(found[0].max()) + 1)
    return use @ use.T


def days(venue: int, hour: int, user: int, first: int = 4) -> list[tuple[int, int, int]]:
    """Five weekdays from a Monday on, at one hour."""
    return [(venue, (first + day) * DAY + hour * HOUR, user) for day in range(5)]


def test_venues_with_the_same_hours_are_alike_and_those_with_others_are_not() -> None:
    found = likeness(*days(1, 8, 0), *days(2, 8, 1), *days(3, 9, 2), *days(4, 20, 3))
    assert found[1, 2] == pytest.approx(1)
    assert found[1, 2] > found[1, 3] > found[1, 4]
    assert found[1, 4] < 0


def test_weekends_and_weekdays_differ() -> None:
    found = likeness(*days(1, 12, 0), *days(2, 12, 1, first=11), *((3, (9 + 7 * w + d) * DAY + 12 * HOUR, 2)
                     for w in range(3) for d in range(2)))  # fmt: skip
    assert found[1, 2] == pytest.approx(1)
    assert found[1, 3] < 0


def test_the_wait_until_the_next_visit_tells_venues_of_the_same_hours_apart() -> None:
    rows = [*days(1, 8, 0), *days(2, 8, 1), *days(3, 8, 2)]
    rows += [(4, time + wait, user) for venue, time, user in rows for wait in (600 if venue < 3 else 5 * HOUR,)]
    found = likeness(*rows)
    assert found[1, 2] == pytest.approx(1)
    assert found[1, 3] < 0.9


many = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 14 * 24).map(lambda h: h * HOUR), st.integers(0, 3)))


@given(many, st.randoms(use_true_random=False))
def test_neither_the_order_of_the_rows_nor_the_numbers_of_users_matter(
    rows: list[tuple[int, int, int]], random: "object"
) -> None:
    rows = [*rows, (6, 0, 0)]
    mixed = [(venue, time, 3 - user) for venue, time, user in rows]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert learn_use(*visits(*mixed), 7) == pytest.approx(learn_use(*visits(*rows), 7), abs=1e-12)


@st.composite
def cities(draw: st.DrawFn) -> City:
    """Venues on a fine grid, so that many share a position, with a use in three dimensions; row 0 is padding."""
    step = st.integers(-5, 5).map(lambda n: n * 0.006)
    venue = st.tuples(step, step, st.integers(-3, 3), st.integers(-3, 3))
    north, east, *use = np.array(draw(st.lists(venue, min_size=1, max_size=30))).T
    vectors = np.stack([*use, np.ones(len(north))], axis=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.append(np.nan, 40.7 + north), np.append(np.nan, -74 + east), np.vstack([np.zeros(3), vectors])


rules = st.builds(
    replace, by_category, category=st.just("learned"), plausibility=st.sampled_from([-1.0, 0.0, 0.35, 0.8, 1.0])
)


@given(cities(), rules)
def test_candidates_are_the_nearest_that_are_alike_within_a_radius_that_widens(
    venues: City, rule: CandidateSettings
) -> None:
    lat, lon, use = venues
    found = find_alike(lat, lon, use, rule)
    assert (found.poi.dtype, found.poi[0].any()) == (np.int32, False)
    for p in range(1, len(lat)):
        alike = [q for q in range(1, len(lat)) if q != p and (use[p] @ use[q]).round(9) >= rule.plausibility]
        km = {q: float(haversine_km(lat[p], lon[p], lat[q], lon[q])) for q in alike}
        radii = [rule.radius_km * rule.widen_factor**n for n in range(rule.max_widenings + 1)]
        radius = next((r for r in radii if sum(d <= r for d in km.values()) >= rule.min_candidates), radii[-1])
        expected = sorted((d, q) for q, d in km.items() if d <= radius)[: rule.max_candidates]
        assert found.poi[p][found.poi[p] > 0].tolist() == [q for _, q in expected]
        assert found.radius_km[p] == pytest.approx(radius)


@given(cities(), st.floats(-1, 1), st.floats(-1, 1), st.sampled_from([0.5, 2.0]))
def test_a_higher_threshold_gives_subsets(venues: City, one: float, other: float, radius: float) -> None:
    """At a fixed radius: with fewer candidates, the rule may widen it."""
    low, high = (
        find_alike(*venues, CandidateSettings(radius, max_widenings=0, category="learned", plausibility=threshold))
        for threshold in sorted((one, other))
    )
    for p in range(1, len(venues[0])):
        assert {*high.poi[p].tolist()} - {0} <= {*low.poi[p].tolist()}


@pytest.mark.parametrize("pairs", [500, 5])  # fewer than one anchor has
def test_blocks_of_anchors_give_what_one_block_gives(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    lat, lon = (np.append(np.nan, at + draw.normal(0, 0.02, 300)) for at in (40.7, -74.0))
    use = np.vstack([np.zeros(3), (v := draw.normal(size=(300, 3))) / np.linalg.norm(v, axis=1, keepdims=True)])
    rule = CandidateSettings(category="learned", plausibility=0.5)
    whole = find_alike(lat, lon, use, rule)
    monkeypatch.setattr("ghostpoi.data.candidates.PAIRS", pairs)
    assert np.array_equal(find_alike(lat, lon, use, rule).poi, whole.poi)
    assert whole.size[1:].mean() > 5


def test_any_category_accepts_every_venue_nearby_and_learned_ones_ignore_categories() -> None:
    lat, lon = np.array([np.nan, 1, 1, 1.001]), np.array([np.nan, 1, 1, 1])
    use = np.array([[0, 0], [1, 0], [0, 1], [1, 0]], float)
    none = np.zeros((3, 42), np.int64)
    places = Places(lat, lon, np.array([-1, 0, 1, 1], np.int32), np.ones(4, int), none, np.arange(3), use)

    def sets(places: Places, category: str) -> list[list[int]]:
        rule = replace(CandidateSettings(), category=category)  # type: ignore[arg-type]
        return [sorted({*row.tolist()} - {0}) for row in candidate_sets(places, rule).poi[1:]]

    assert sets(places, "exact") == [[], [3], [2]]
    assert sets(places, "any") == [[2, 3], [1, 3], [1, 2]]
    assert sets(places, "learned") == [[3], [], [1]]
    hidden = replace(places, category=np.array([-1, 0, 0, 0], np.int32))
    assert sets(hidden, "learned") == [[3], [], [1]]
    with pytest.raises(ValueError, match="need places with their use"):
        sets(replace(places, use=None), "learned")
