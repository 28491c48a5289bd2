"""Check-ins that the speed limit cannot touch are drawn at once, and get what a walk from each to the next gives."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.candidates import Candidates, steps_kmh
from ghostpoi.data.checkins import Bools, Ints
from ghostpoi.data.places import SLOTS
from ghostpoi.draw import walks
from ghostpoi.draw.crowds import Dividing, find
from ghostpoi.draw.walks import Substitution, Trails, walk
from ghostpoi.settings import SpeedSettings


def city(draw: np.random.Generator, venues: int, kind: str) -> tuple[Candidates, np.ndarray, np.ndarray]:
    """Crowds or sets of any venues, with weights of venues and of slots or without."""
    lat, lon = (np.append(np.nan, at + draw.uniform(-0.1, 0.1, venues)) for at in (40.7, 179.95))
    lon = np.where(lon > 180, lon - 360, lon)
    crowds = find(lat, lon, np.append(-1, np.zeros(venues)).astype(np.int32), Dividing(4, 5.0))
    poi = crowds.poi if "crowds" in kind else draw.integers(0, venues + 1, crowds.poi.shape, np.int32)
    poi[0] = 0
    visits = draw.integers(1, 50, venues + 1)
    weight = np.where(poi > 0, visits[poi], 0.0) if "weights" in kind else None
    slots = np.append(0.0, draw.uniform(0.5, 2, venues)) * draw.uniform(0.5, 2, (SLOTS, 1)) if "slots" in kind else None
    return Candidates(poi, crowds.radius_km, weight, slots), lat, lon


def one_by_one(trails: Trails, chosen: Ints, uniform: np.ndarray, speed: SpeedSettings) -> Substitution:
    """Walk without draws at once."""

    def none(trails: Trails, decided: Ints, speed: SpeedSettings) -> Bools:
        return np.zeros(len(decided), bool)

    with mock.patch.object(walks, "free", none):
        return walk(trails, chosen, uniform, speed, keep_clean=True)


def made(seed: int, venues: int, kind: str) -> tuple[Trails, Ints, np.ndarray]:
    """Check-ins of five users within two days, some of which are decided."""
    draw = np.random.default_rng(seed)
    sets, lat, lon = city(draw, venues, kind)
    n = 60
    user, time = np.sort(draw.integers(0, 5, n)), draw.integers(0, 2 * 86_400, n)
    time = time[np.lexsort((time, user))]
    anchor = draw.integers(1, venues + 1, n).astype(np.int32)
    decided = np.where(draw.random(n) < 0.3, draw.integers(1, venues + 1, n), 0).astype(np.int32)
    return Trails(user, time, anchor, lat, lon, sets), decided, draw.random(n)


KINDS = ("crowds", "crowds, weights", "crowds, weights, slots", "any", "any, weights", "any, slots")


@given(
    st.integers(0, 2**32), st.integers(1, 40), st.sampled_from(KINDS), st.sampled_from([0.1, 5.0, 20.0, 60.0, 1e5]),
    st.sampled_from(["strict", "ignore"]),
)  # fmt: skip
def test_drawing_at_once_changes_no_draw(seed: int, venues: int, kind: str, limit: float, empty: str) -> None:
    trails, decided, uniform = made(seed, venues, kind)
    speed = SpeedSettings(limit_kmh=limit, empty=empty)  # type: ignore[arg-type]
    ours = walk(trails, decided, uniform, speed, keep_clean=True)
    slow = one_by_one(trails, decided, uniform, speed)
    assert ours.poi.tolist() == slow.poi.tolist()
    assert ours.mask_emptied.tolist() == slow.mask_emptied.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_free_check_in_reaches_all_that_its_neighbours_can_draw(kind: str) -> None:
    speed = SpeedSettings(limit_kmh=20.0)
    some = 0
    for seed in range(20):
        trails, decided, _ = made(seed, 30, kind)
        found = walks.free(trails, decided, speed)
        some += found.sum()
        assert not (found & (decided > 0)).any()
        for at in np.flatnonzero(found[1:]) + 1:
            before = at - 1
            if trails.trail[before] != trails.trail[at]:
                continue
            own = {int(trails.anchor[before]), *trails.sets.poi[trails.anchor[before]].tolist()}
            starts = np.array(sorted({int(decided[before])} if decided[before] else own - {0}), np.int32)
            options = np.append(trails.sets.poi[trails.anchor[at]], trails.anchor[at])
            gap = np.full(len(starts), trails.time[at] - trails.time[before])
            kmh = steps_kmh(trails.lat, trails.lon, starts, np.tile(options, (len(starts), 1)), gap, speed.min_gap_s)
            assert (kmh[:, options > 0] <= speed.limit_kmh).all()
    assert some > 50


def test_check_ins_far_apart_in_time_are_free_and_the_others_are_not() -> None:
    lat, lon = np.array([np.nan, 0.0, 0.0]), np.array([np.nan, 0.0, 0.01])  # 1.11 km apart
    sets = Candidates(np.array([[0, 0], [1, 2], [1, 2]], np.int32), np.array([0, 5.0, 5.0]))
    time = np.array([0, 60, 3600, 7200])
    trails = Trails(np.array([0, 0, 0, 1]), time, np.ones(4, np.int32), lat, lon, sets)
    undecided, last = np.zeros(4, np.int32), np.array([0, 0, 1, 0], np.int32)
    assert walks.free(trails, undecided, SpeedSettings()).tolist() == [True, False, True, True]
    assert walks.free(trails, last, SpeedSettings()).tolist() == [True, False, False, True]
    assert walks.free(trails, last, SpeedSettings(limit_kmh=1.0)).tolist() == [True, False, False, True]
