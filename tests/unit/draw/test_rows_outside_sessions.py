"""Rows outside sessions: drawn uniformly from their candidates and reachable from both neighbours."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import checkins
from small_city import prepared, settings
from speed_rule import speed_mask

from ghostpoi.data import candidates
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.sessions import Dataset
from ghostpoi.draw import table as rows_outside_sessions
from ghostpoi.draw.walks import Substitution
from ghostpoi.draw.whole_table import WholeTable, count_rows, fast_steps, sessions_of
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings, FilterSettings, SpeedSettings

KM = 1 / 111.195  # degrees
LINE = [("a", 0.0), ("b", 1.0), ("c", 2.0), ("d", 40.0)]  # venues along a meridian, at this many km


def without_sessions(table: Checkins) -> Dataset:
    return sessions_of(table, FilterSettings(min_poi_checkins=len(table) + 1), may_be_empty=True)


def draw(
    rows: list[tuple[str, str, int]], released: dict[int, str], seed: int = 1, keep_clean: bool = True, **speed: object
) -> tuple[list[str], list[bool]]:
    """Draw rows (user, venue, time). Those in `released` are already decided."""
    km = dict(LINE)
    seen = [("z", v, 10**9 + i, "c", y * KM, 0.0) for i, (v, y) in enumerate(LINE)]  # so that every venue occurs
    table = checkins([*((u, v, t, "c", km[v] * KM, 0.0) for u, v, t in rows), *seen])
    code = {name: i for i, name in enumerate(table.venue_ids)}
    venues = table.venues
    sets = candidates.find(venues.lat, venues.lon, venues.category, CandidateSettings(radius_km=3, max_widenings=0))
    decided = np.zeros(len(table), np.int32)
    decided[len(rows) :] = table.venue[len(rows) :]
    for row, name in released.items():
        decided[row] = code[name]
    whole = WholeTable(table, without_sessions(table), sets, sets)
    noise, rule = whole.noise(Seed(seed)), replace(SpeedSettings(), **speed)
    found = rows_outside_sessions.draw(whole, decided, noise, rule, keep_clean=keep_clean)
    return [str(table.venue_ids[v]) for v in found.poi[: len(rows)]], found.mask_emptied[: len(rows)].tolist()


def test_decided_rows_stay_and_a_venue_alone_is_kept() -> None:
    got, emptied = draw([("u", "a", 0), ("u", "d", 9000), ("u", "b", 20000)], {0: "c"})
    assert got[0] == "c"
    assert got[1] == "d"  # nothing within 3 km
    assert got[2] in "ac"
    assert not any(emptied)


def test_draws_are_even() -> None:
    found = [draw([("u", "b", 0)], {}, seed)[0][0] for seed in range(300)]
    assert set(found) == {"a", "c"}
    assert abs(found.count("a") - 150) < 45


def test_a_draw_must_be_reachable_from_the_one_before_and_leave_time_for_the_one_after() -> None:
    for seed in range(20):
        # One km takes one minute: from a, only b can be reached, not c, in any order of the file.
        assert draw([("u", "b", 3660), ("u", "a", 3600)], {1: "a"}, seed)[0] == ["a", "a"]
        got, emptied = draw([("u", "b", 3600), ("u", "c", 3660)], {1: "c"}, seed)
        assert (got, emptied) == (["c", "c"], [False, False])


def test_another_user_is_no_neighbour() -> None:
    assert {draw([("u", "b", 60), ("w", "a", 0)], {1: "a"}, s)[0][0] for s in range(20)} == {"a", "c"}


def test_equal_times_count_as_a_minute_and_go_by_venue() -> None:
    for seed in range(20):
        assert draw([("u", "a", 5), ("u", "b", 5)], {0: "a"}, seed)[0] == ["a", "a"]


def test_strict_keeps_a_feasible_original_and_else_takes_the_slowest() -> None:
    # The candidates of a are b (1 km, 60 km/h) and c. In a minute at 30 km/h, only a itself can be reached.
    got, emptied = draw([("u", "a", 0), ("u", "a", 60)], {0: "a"}, limit_kmh=30.0)
    assert (got, emptied) == (["a", "a"], [False, True])
    # From d, at 40 km, nothing can be reached: the candidate of b with the lowest speed is c.
    got, emptied = draw([("u", "d", 0), ("u", "b", 60)], {0: "d"})
    assert (got, emptied) == (["d", "c"], [False, True])
    loose = {draw([("u", "d", 0), ("u", "b", 60)], {0: "d"}, s, empty="ignore")[0][1] for s in range(20)}
    assert loose == {"a", "c"}


@cache
def drawn(seed: int) -> Substitution:
    whole = prepared()
    released = np.where(whole.in_session, whole.table.venue, 0).astype(np.int32)
    return rows_outside_sessions.draw(whole, released, whole.noise(Seed(seed)), settings().speed, keep_clean=True)


def test_a_venue_that_hides_among_others_is_never_kept_for_speed() -> None:
    rows = [("u", "a", 0), ("u", "a", 60)]  # at 0.5 km/h nothing but a itself can be reached from a
    assert draw(rows, {0: "a"}, limit_kmh=0.5) == (["a", "a"], [False, True])
    assert draw(rows, {0: "a"}, keep_clean=False, limit_kmh=0.5) == (
        ["a", "b"],
        [False, True],
    )  # the slowest of its set


def test_contract_on_the_city() -> None:
    whole = prepared()
    table, venues, poi, emptied = whole.table, whole.table.venues, drawn(1).poi, drawn(1).mask_emptied
    rest = ~whole.in_session
    changed = poi != table.venue
    assert rest.any()
    assert not changed[~rest].any()
    assert changed[rest & whole.has_candidates & ~emptied].all()
    assert not changed[~whole.has_candidates].any()
    assert (whole.venue_sets.poi[table.venue[changed]] == poi[changed][:, None]).any(1).all()
    assert (venues.category[poi] == venues.category[table.venue])[~whole.borrows].all()
    order = whole.order.leading
    at = poi[order]
    same = np.append(False, np.diff(table.user[order]) == 0)
    previous, gap = np.where(same, np.append(0, at[:-1]), 0), np.append(0, np.diff(table.time[order]))
    slow = speed_mask(venues.lat, venues.lon, previous, at[:, None], gap, settings().speed)[:, 0]
    drawn_either = changed[order] | np.append(False, changed[order][:-1])  # steps into and out of a substitute
    excused = emptied[order] | np.append(False, emptied[order][:-1])
    assert slow[drawn_either & ~excused].all()
    assert (drawn.__wrapped__(1).poi == poi).all()
    assert (drawn(2).poi != poi).any()


def test_counts_add_up() -> None:
    whole = prepared()
    counts = count_rows(whole, drawn(1))
    assert sum(group["rows"] for group in counts.values()) == len(whole.table)
    for group in counts.values():
        parts = ("substituted", "no_candidate", "kept_by_speed", "kept_by_method")
        assert sum(group[part] for part in parts) == group["rows"]
        assert group["slowest_taken"] <= group["substituted"]


@pytest.mark.parametrize(("gap", "over"), [(60, 0), (59, 0), (0, 0), (3600, 0)])
def test_fast_steps_count_a_gap_as_a_minute(gap: int, over: int) -> None:
    near = checkins([("u", "a", 0, "c", 0.0, 0.0), ("u", "b", gap, "c", 0.99 * KM, 0.0)])
    far = checkins([("u", "a", 0, "c", 0.0, 0.0), ("u", "b", gap, "c", 61 * KM, 0.0)])
    assert fast_steps(near, 60.0, 60.0)["steps_over_limit"] == over
    assert fast_steps(far, 60.0, 60.0) == {"limit_kmh": 60.0, "min_gap_s": 60.0, "steps": 1, "steps_over_limit": 1}
    assert fast_steps(checkins([("u", "a", 0), ("w", "b", 0)]), 60.0, 60.0)["steps"] == 0
