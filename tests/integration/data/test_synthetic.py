"""The synthetic city: deterministic, plausible, learnable, and similar at every size."""

import re
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from ghostpoi.data.geo import haversine_km
from ghostpoi.data.synthetic import START, City, hex_ids, make_city
from ghostpoi.errors import InputError

SMALL, MEDIUM, LARGER = (300, 800, 60), (1000, 5000, 300), (2000, 5500, 300)
Session = list[tuple[int, int]]  # (poi, time)


@cache
def city(users: int, pois: int, days: int, seed: int = 0) -> City:
    return make_city(users, pois, days, seed)


@cache
def filtered(size: tuple[int, int, int]) -> tuple[list[Session], list[Session], list[list[Session]]]:
    """Training sessions, test sessions and the sessions of every user, by a plain version of the filters."""
    c = city(*size)
    rows = list(zip(c.user.tolist(), c.poi.tolist(), c.time.tolist(), strict=True))
    visits = Counter(poi for _, poi, _ in rows)
    rows = [row for row in rows if visits[row[1]] >= 10]
    checkins = Counter(user for user, _, _ in rows)
    sessions: dict[int, list[Session]] = defaultdict(list)
    for user, poi, time in rows:
        if checkins[user] < 10:
            continue
        mine = sessions[user]
        if not mine or time - mine[-1][-1][1] > 86_400:
            mine.append([])
        mine[-1].append((poi, time))
    kept = [[s for s in mine if len(s) >= 3] for mine in sessions.values()]
    kept = [mine for mine in kept if mine]
    train, test = [], []
    for mine in kept:
        cut = int(0.8 * len(mine))
        train += mine[:cut]
        test += mine[cut + int(0.1 * len(mine)) :]
    return train, test, kept


@cache
def accuracy(size: tuple[int, int, int]) -> tuple[float, float]:
    """Acc@1 on test steps of a first-order Markov model and of always naming the most popular venue."""
    train, test, _ = filtered(size)
    follows: dict[int, Counter[int]] = defaultdict(Counter)
    for session in train:
        for (here, _), (there, _) in pairwise(session):
            follows[here][there] += 1
    popular = Counter(poi for session in train for poi, _ in session).most_common(1)[0][0]
    best = {here: counts.most_common(1)[0][0] for here, counts in follows.items()}
    steps = [(a, b) for session in test for (a, _), (b, _) in pairwise(session)]
    return (
        sum(best.get(a, popular) == b for a, b in steps) / len(steps),
        sum(popular == b for _, b in steps) / len(steps),
    )


def coverage(size: tuple[int, int, int]) -> float:
    """The share of training positions whose venue has another of its category within the widest radius."""
    c = city(*size)
    train, _, kept = filtered(size)
    vocabulary = np.unique([poi for mine in kept for session in mine for poi, _ in session])
    visits = Counter(poi for session in train for poi, _ in session)
    with_candidate = 0
    for poi, count in visits.items():
        others = vocabulary[(c.poi_category[vocabulary] == c.poi_category[poi]) & (vocabulary != poi)]
        km = haversine_km(c.poi_lat[poi], c.poi_lon[poi], c.poi_lat[others], c.poi_lon[others])
        with_candidate += count * bool((km <= 1.5**4).any())
    return with_candidate / sum(visits.values())


def measures(size: tuple[int, int, int]) -> dict[str, float]:
    _, _, kept = filtered(size)
    rows = len(city(*size).user)
    sessions = [session for mine in kept for session in mine]
    return {
        "markov": accuracy(size)[0],
        "coverage": coverage(size),
        "session length": sum(map(len, sessions)) / len(sessions),
        "sessions per user": len(sessions) / len(kept),
        "check-ins per user-day": rows / size[0] / size[2],
    }


def test_the_same_seed_gives_the_same_city() -> None:
    one, two, other = (make_city(50, 200, 30, seed) for seed in (7, 7, 8))
    for name in ("user", "poi", "time", "poi_lat", "poi_lon", "poi_category"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
        assert not np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("size", [SMALL, MEDIUM])
def test_arrays_are_well_formed(size: tuple[int, int, int]) -> None:
    users, pois, days = size
    c = city(*size)
    assert [str(a.dtype) for a in (c.user, c.poi, c.time, c.poi_category)] == ["int32", "int32", "int64", "int32"]
    assert len(c.user) == len(c.poi) == len(c.time)
    assert len(c.poi_lat) == len(c.poi_lon) == len(c.poi_category) == pois
    assert c.user.min() >= 0
    assert c.user.max() < users
    assert c.poi.min() >= 0
    assert c.poi.max() < pois
    assert (np.diff(c.time) >= 0).all()
    assert c.time[0] >= START
    assert c.time[-1] < START + days * 86_400
    assert len(set(c.category_name)) == len(c.category_name) >= 40
    assert set(c.poi_category.tolist()) <= set(range(len(c.category_name)))
    assert np.abs(c.poi_lat - 40.73).max() < 1
    assert np.abs(c.poi_lon + 73.99).max() < 1
    assert np.array_equal(c.poi_lat, np.round(c.poi_lat, 6))
    assert np.array_equal(c.poi_lon, np.round(c.poi_lon, 6))


@pytest.mark.parametrize("size", [SMALL, MEDIUM])
def test_people_move_at_feasible_speeds_and_check_in_as_on_foursquare(size: tuple[int, int, int]) -> None:
    c = city(*size)
    order = np.lexsort((c.time, c.user))
    user, poi, time = c.user[order], c.poi[order], c.time[order]
    km = haversine_km(c.poi_lat[poi[1:]], c.poi_lon[poi[1:]], c.poi_lat[poi[:-1]], c.poi_lon[poi[:-1]])
    gap = np.diff(time)
    step = (user[1:] == user[:-1]) & (gap >= 60)
    assert (km[step] / (gap[step] / 3600) > 60).mean() < 0.03
    assert (gap[step] > 86_400).mean() > 0.05
    assert 100 / 300 < len(user) / size[0] / size[2] < 210 / 300
    per_user, per_poi = np.bincount(user, minlength=size[0]), np.bincount(poi, minlength=size[1])
    for counts in (per_user, per_poi):
        assert np.quantile(counts, 0.95) > 2.5 * np.median(counts)  # both have a heavy tail


@pytest.mark.parametrize("size", [SMALL, MEDIUM])
def test_the_next_venue_can_be_learned_and_not_from_popularity_alone(size: tuple[int, int, int]) -> None:
    markov, popular = accuracy(size)
    assert markov >= 0.13
    assert popular <= min(markov / 2, 0.06)


@pytest.mark.parametrize("size", [SMALL, MEDIUM])
def test_filters_keep_most_rows_and_venues_have_stand_ins(size: tuple[int, int, int]) -> None:
    _, _, kept = filtered(size)
    assert sum(len(session) for mine in kept for session in mine) >= 0.6 * len(city(*size).user)
    assert coverage(size) >= 0.85


def test_measures_stay_alike_as_the_city_grows() -> None:
    medium, larger = measures(MEDIUM), measures(LARGER)
    for name, value in medium.items():
        assert 1 / 1.3 < larger[name] / value < 1.3, name


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 2, 1), (1, 2, 400), (3, 1, 9), (1, 5000, 3), (400, 2, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_tiny_cities(size: tuple[int, int, int], seed: int) -> None:
    c = make_city(*size, seed)
    assert len(c.user) == len(c.poi) == len(c.time)
    assert len(c.poi_lat) == size[1]
    assert np.isfinite(c.poi_lat).all()
    assert set(c.user.tolist()) <= set(range(size[0]))
    assert set(c.poi.tolist()) <= set(range(size[1]))


@pytest.mark.parametrize("flag", ["users", "pois", "days", "seed"])
def test_bad_sizes_name_their_flag(flag: str) -> None:
    arguments = {"users": 1, "pois": 1, "days": 1, "seed": 0, flag: -1}
    with pytest.raises(InputError, match=f"--{flag} must be at least [01], not -1"):
        make_city(**arguments)


def test_ids() -> None:
    one, other, categories = hex_ids("venue 1", 500), hex_ids("venue 2", 500), hex_ids("category", 40)
    for ids in (one, categories):
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch("[0-9a-f]{24}", text) for text in ids)
    assert not set(one) & set(other)
    assert hex_ids("venue 1", 3) == one[:3]
