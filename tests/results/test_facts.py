"""Facts of prepared data that the page about the paper states: small candidate sets, far candidates, fast steps."""

import json
from dataclasses import replace

import numpy as np
import pytest
from builders import flat_sessions, sessions_of
from hypothesis import given
from hypothesis import strategies as st

from docs.rerun_facts import (
    RESULTS,
    RULES,
    THRESHOLDS,
    beyond_nominal,
    candidate_facts,
    data_facts,
    learned_facts,
    speed_facts,
    threshold_for,
)  # fmt: skip
from ghostpoi.data.candidates import Candidates, find
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.settings import CandidateSettings
from ghostpoi.study.results import NYC

DAY, HOUR = 86_400, 3600
KM = 1 / 111.195  # degrees of latitude


def vocabulary(*km: float) -> Vocabulary:
    """POIs of one category on a meridian; row 0 is padding."""
    rows = len(km) + 1
    lat, category = np.array([0, *km]) * KM, np.array([-1] + [0] * len(km), np.int32)
    return Vocabulary(lat, np.zeros(rows), category, np.arange(rows, dtype=np.int32))


def line() -> Prepared:
    """Five POIs within 1.2 km, and one far away that has no candidate."""
    v = vocabulary(0, 0.3, 0.6, 0.9, 1.2, 100)
    train = sessions_of([1, 5, 6], [6, 6, 1], gap_s=3600)
    sets = find(v.lat, v.lon, v.category, RULES["widened_below_6"])
    return Prepared(v, train, sessions_of([1]), sessions_of([1]), sets, "line")


def test_small_sets_are_counted_over_pois_and_over_visits() -> None:
    sets = Candidates(np.array([[0, 0, 0, 0], [2, 3, 4, 5], [1, 0, 0, 0], [0, 0, 0, 0]], np.int32), np.ones(4))
    found = candidate_facts(sets, np.array([1, 1, 1, 3]))
    assert (found["pois_few"], found["pois_none"]) == (2, 1)
    assert found["share_few"] == pytest.approx(2 / 3)
    assert found["share_none"] == pytest.approx(1 / 3)
    assert found["mean_size"] == pytest.approx(5 / 3)
    assert (found["visits_few"], found["visits_none"]) == (0.25, 0.25)


def test_a_city_tells_what_widening_does() -> None:
    found = data_facts(line())
    sizes = {rule: facts["mean_size"] for rule, facts in found["candidates"].items()}
    # Within 1 km the five see 3, 4, 4, 4 and 3 others. Too few for either rule are 3; below 6 are 4 too, to no avail.
    assert sizes == {"nominal": 18 / 6, "widened_below_4": 20 / 6, "widened_below_6": 20 / 6}
    assert [f["pois_few"] for f in found["candidates"].values()] == [3, 1, 1]
    assert (found["pois"], found["positions"], found["sessions"]) == (6, 6, {"train": 2, "val": 1, "test": 1})


def test_the_share_beyond_the_limit_is_that_of_an_even_draw() -> None:
    city = line()
    # POI 1 has one of four candidates beyond 1 km, POI 5 too; POI 2 has none; POI 6 is never substituted.
    assert beyond_nominal(city.candidates, city.vocabulary, np.array([1, 5, 2, 6])) == pytest.approx((0.25 + 0.25) / 3)
    assert beyond_nominal(city.candidates, city.vocabulary, np.array([6])) == 0


def test_speed_counts_steps_inside_sessions_alone() -> None:
    city = line()
    fast = speed_facts(city.train, city.vocabulary)
    assert fast == {"steps": 4, "over": 2, "share": 0.5}  # 5 -> 6 and 6 -> 1: 99 and 100 km in an hour; 6 | 6 no step
    slow = replace(city.train, time=city.train.time * 10)
    assert speed_facts(slow, city.vocabulary)["over"] == 0


@given(st.lists(st.floats(0, 12), min_size=1, max_size=30), st.integers(0, 1))
def test_few_candidates_remain_few_under_either_reading_of_the_widening(km: list[float], categories: int) -> None:
    """Both rules widen such a set to the end, so how many POIs have under four does not depend on the reading."""
    v = vocabulary(*km)
    v = replace(v, category=np.array([-1, *(i % (categories + 1) for i in range(len(km)))], np.int32))
    rules = [RULES[name] for name in ("widened_below_4", "widened_below_6")]
    four, six = (candidate_facts(find(v.lat, v.lon, v.category, rule, 1), np.array([1])) for rule in rules)
    assert (four["pois_few"], four["pois_none"]) == (six["pois_few"], six["pois_none"])


def town() -> Prepared:
    """Two cafés (1, 2: category 0) visited at 8, a bar at 20 (3: category 1) and a café that is used as a bar (4)."""
    rows = [(venue, day) for venue in (1, 2, 3, 4) for day in range(5)]
    time = np.array([(4 + day) * DAY + (8 if venue < 3 else 20) * HOUR for venue, day in rows])
    train = flat_sessions(np.array([venue for venue, _ in rows]), [5] * 4, [0, 1, 2, 3], time)
    lat, category = np.array([np.nan, 1, 1.001, 1.002, 1.003]), np.array([-1, 0, 0, 1, 0], np.int32)
    v = Vocabulary(lat, np.array([np.nan, 1, 1, 1, 1]), category, np.arange(5, dtype=np.int32))
    same = Candidates(np.array([[0, 0], [2, 4], [1, 4], [0, 0], [1, 2]], np.int32), np.ones(5))
    return Prepared(v, train, train, train, same, "town")


def test_facts_compare_the_sets_with_the_categories() -> None:
    found = learned_facts(town())
    assert list(found) == [f"{t:g}" for t in THRESHOLDS]
    # Of 12 ordered pairs, 6 are of two cafés; equal are (1, 2) and (3, 4), of which the first has one category.
    assert found["-1"]["near_precision"] == found["-1"]["precision"] == 6 / 12
    assert (found["-1"]["near_recall"], found["-1"]["mean_size"]) == (1, 3)
    assert found["0.6"]["near_precision"] == found["0.6"]["precision"] == 2 / 4
    assert found["0.6"]["near_recall"] == pytest.approx(2 / 6)
    assert (found["0.6"]["mean_size"], found["0.6"]["visits_none"]) == (1, 0)
    assert found["0.6"]["draws_same_category"] == found["0.6"]["draws_same_group"] == 1 / 2


def test_the_default_threshold_is_the_lowest_that_reaches_the_target() -> None:
    curve = {"-1": {"near_precision": 0.1}, "0.5": {"near_precision": 0.2}, "0.6": {"near_precision": 0.3}}
    assert [threshold_for(curve, target) for target in (0.05, 0.15, 0.2, 0.3)] == [-1, 0.5, 0.5, 0.6]
    assert threshold_for(json.loads(RESULTS.read_text("utf-8"))[NYC]["learned"]) == CandidateSettings().plausibility
