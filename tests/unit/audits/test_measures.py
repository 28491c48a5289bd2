"""Measures: each on a tiny case worked out by hand, and what must hold for any data."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from builders import sessions_of
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.audits.measures.accuracy import (
    accuracy,
    floor_hits,
    in_one,
    markov,
    metrics,
    popularity,
    recovery,
    rounded,
    stay,
    step,
    steps,
)
from ghostpoi.audits.measures.gaps import Spread, against, gaps, spread, strongest
from ghostpoi.audits.measures.utility import plausibility, profile, utility
from ghostpoi.data.checkins import Ints
from ghostpoi.data.geo import EARTH_RADIUS_KM
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.settings import SpeedSettings

DEGREE_KM = np.pi / 180 * EARTH_RADIUS_KM  # one degree on a great circle, 111.195 km


def equator(*km: float, category: Sequence[int] | None = None) -> Vocabulary:
    """POIs on the equator, this many km east of the meridian."""
    lon = np.array([np.nan, *km]) / DEGREE_KM
    lat = np.where(np.isnan(lon), np.nan, 0.0)
    kinds = np.array([-1, *(category or [0] * len(km))], np.int32)
    return Vocabulary(lat, lon, kinds, np.arange(-1, len(km), dtype=np.int32))


def row(*poi: int) -> Ints:
    return np.array(poi, np.int32)


def values(measures: dict[str, float]) -> tuple[float, ...]:
    """acc@1, acc@5, acc@10 and MRR."""
    return tuple(measures[name] for name in ("acc@1", "acc@5", "acc@10", "mrr"))


class TestAccuracy:
    def test_by_hand(self) -> None:
        # Two sessions of three check-ins: the targets' ranks are 1 2 | 5 11.
        found = accuracy(np.array([1.0, 2, 5, 11]), sessions_of([1, 12, 11], [3, 8, 2]))
        assert values(found["all"]) == pytest.approx((0.25, 0.75, 0.75, (1 + 1 / 2 + 1 / 5 + 1 / 11) / 4))
        assert values(found["last"]) == pytest.approx((0.0, 0.5, 0.5, (1 / 2 + 1 / 11) / 2))

    def test_moves_by_hand(self) -> None:
        # Steps 1-1 | 2-3 3-3 | 0-4: the second and the last one lead to another POI. Their ranks are 2 and 7.
        found = accuracy(np.array([1.0, 2, 1, 7]), sessions_of([1, 1], [2, 3, 3], [0, 4]))
        assert values(found["moves"]) == pytest.approx((0.0, 0.5, 1.0, (1 / 2 + 1 / 7) / 2))
        assert values(found["all"])[0] == 0.5
        one = in_one(found)
        assert (one["acc@1"], one["acc@1_moves"], one["acc@1_last"]) == (0.5, 0.0, 2 / 3)

    def test_unknown_pois_are_wrong(self) -> None:
        found = accuracy(np.array([1.0, np.inf, np.inf, 1.0]), sessions_of([0, 12, 13], [13, 0, 12]))
        assert values(found["all"]) == values(found["last"]) == (0.5, 0.5, 0.5, 0.5)

    def test_a_session_of_one_check_in_has_no_next_poi(self) -> None:
        found = accuracy(np.array([1.0, 3, 2]), sessions_of([1, 3, 2], [1], [2, 3]))
        assert values(found["last"]) == pytest.approx((0.0, 1.0, 1.0, (1 / 3 + 1 / 2) / 2))

    def test_nothing_to_predict(self) -> None:
        assert metrics(np.zeros(0)) == {"acc@1": 0.0, "acc@5": 0.0, "acc@10": 0.0, "mrr": 0.0}

    def test_steps(self) -> None:
        here, there = steps(sessions_of([1, 2, 3], [4], [5, 6]))
        assert (here.tolist(), there.tolist()) == ([1, 2, 5], [2, 3, 6])


def slow_ranks(train: list[list[int]], test: list[list[int]], rows: int, order: int) -> list[float]:
    """Popularity (order 0) and Markov (order 1) with dictionaries and whole rankings."""
    visits = Counter(p for s in train for p in s if 1 <= p < rows)
    follows: dict[int, Counter[int]] = defaultdict(Counter)
    for s in train:
        for a, b in pairwise(s):
            if 1 <= a < rows and 1 <= b < rows:
                follows[a][b] += 1
    out = []
    for s in test:
        for a, b in pairwise(s):
            seen = follows[a] if order else Counter[int]()
            ranking = sorted(range(1, rows), key=lambda p: (-seen[p], -visits[p], p))
            out.append(ranking.index(b) + 1 if b in ranking else np.inf)
    return out


pois = st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=6), min_size=1, max_size=6)


class TestFloors:
    TRAIN = sessions_of([1, 2, 3], [1, 2, 2], [1, 4])  # visits: 1 three, 2 three, 3 one, 4 one, 5 none
    TEST = sessions_of([1, 2, 4], [3, 1, 5])

    def test_popularity_by_hand(self) -> None:
        # Ranking 1 2 3 4 5; targets 2 4 | 1 5.
        found = popularity(self.TRAIN, self.TEST, 6)
        assert values(found["all"]) == pytest.approx((0.25, 1.0, 1.0, (1 / 2 + 1 / 4 + 1 + 1 / 5) / 4))
        assert values(found["last"]) == pytest.approx((0.0, 1.0, 1.0, (1 / 4 + 1 / 5) / 2))

    def test_stay_by_hand(self) -> None:
        # Ranking 1 2 3 4 5 with the present POI in front. Steps 1-2: 2; 2-4: 4; 3-1: 2; 1-5: 5; 4-4: 1; 5-0: unknown.
        test = sessions_of([1, 2, 4], [3, 1, 5], [4, 4], [5, 0])
        found = stay(self.TRAIN, test, 6)
        mrr = (1 / 2 + 1 / 4 + 1 / 2 + 1 / 5 + 1) / 6
        assert values(found["all"]) == pytest.approx((1 / 6, 5 / 6, 5 / 6, mrr))
        assert values(found["moves"]) == pytest.approx((0.0, 4 / 5, 4 / 5, (mrr * 6 - 1) / 5))

    def test_markov_by_hand(self) -> None:
        # After 1: 2 twice, 4 once, then 1 3 5. After 2: 2 (popular) and 3 once each, then 1 4 5. After 3: nothing.
        # Steps 1-2: 1; 2-4: 4; 3-1: 1; 1-5: 5.
        found = markov(self.TRAIN, self.TEST, 6)
        assert values(found["all"]) == pytest.approx((0.5, 1.0, 1.0, (1 + 1 / 4 + 1 + 1 / 5) / 4))
        assert values(found["last"]) == pytest.approx((0.0, 1.0, 1.0, (1 / 4 + 1 / 5) / 2))

    @given(pois, pois, st.integers(2, 9))
    def test_against_whole_rankings(self, train: list[list[int]], test: list[list[int]], rows: int) -> None:
        a, b = sessions_of(*train), sessions_of(*test)
        for order, fast in enumerate((popularity, markov)):
            assert fast(a, b, rows) == accuracy(np.array(slow_ranks(train, test, rows, order), float), b)

    def test_where_floors_are_right(self) -> None:
        # POI 1 is the most popular one; 0 and 9 are unknown.
        test = sessions_of([1, 2, 1], [4, 4], [0, 0], [9, 9], [9, 1])
        found = floor_hits(self.TRAIN, test, 6)
        assert {name: hits.tolist() for name, hits in found.items()} == {
            "popularity": [False, True, False, False, False, True],
            "stay": [False, False, True, False, False, False],
        }

    def test_one_step_to_learn_from(self) -> None:
        found = markov(sessions_of([2, 3]), sessions_of([2, 3, 2, 1], [3, 3]), 4)
        assert values(found["all"]) == pytest.approx((0.5, 1.0, 1.0, (1 + 1 + 1 / 3 + 1 / 2) / 4))

    def test_the_last_of_the_steps_to_learn_from(self) -> None:
        found = markov(sessions_of([1, 2], [2, 3]), sessions_of([2, 3], [1, 2]), 4)
        assert values(found["all"]) == (1.0, 1.0, 1.0, 1.0)

    def test_no_training_sessions(self) -> None:
        empty = sessions_of()
        assert markov(empty, self.TEST, 6) == popularity(empty, self.TEST, 6)


class TestRounding:
    @pytest.mark.parametrize("positions", [*range(1, 300), 2499, 2500, 2501, 5000, 5001, 25_000, 10**6, 10**7])
    def test_a_step_is_the_least_round_number_that_five_positions_do_not_exceed(self, positions: int) -> None:
        sizes = [m * Fraction(10) ** power for power in range(-9, 2) for m in (1, 2, 5)]
        least = next(size for size in sizes if size >= Fraction(5, positions))
        assert step(positions) == pytest.approx(float(least), rel=1e-12)

    def test_no_positions_have_the_step_of_one(self) -> None:
        assert step(0) == step(1) == 5

    def test_values_are_rounded_to_the_step(self) -> None:
        assert rounded([0.1, 0.3, 0.123, -0.1, 0.301], 100) == [0.1, 0.3, 0.1, -0.1, 0.3]
        assert rounded([0.0129, 0.0131], 2500) == [0.012, 0.014]


def seeds(measure: Spread | None) -> list[float]:
    assert measure is not None
    return measure["seeds"]


class TestGaps:
    CLEAN = (0.20, 0.18)
    RAN: ClassVar[dict[str, tuple[float, float]]] = {
        "none": (0.10, 0.06),
        "bridge": (0.12, 0.05),
        "frequency": (0.11, 0.10),
        "bigram": (0.13, 0.10),
    }

    def test_by_hand(self) -> None:
        found = gaps(self.CLEAN, self.RAN)
        assert seeds(found["prot"]) == pytest.approx([0.10, 0.12])
        assert seeds(found["mean"]) == pytest.approx([0.20 - 0.11, 0.18 - 0.07])
        assert seeds(found["worst"]) == pytest.approx([0.08, 0.08])  # bridge under one seed, frequency under the other
        assert seeds(found["worst_all"]) == pytest.approx([0.07, 0.08])
        assert {a: s["seeds"] for a, s in found["surv"].items()} == {
            "bridge": pytest.approx([0.02, -0.01]),
            "frequency": pytest.approx([0.01, 0.04]),
            "bigram": pytest.approx([0.03, 0.04]),
        }
        assert strongest(self.RAN) == "bigram"
        json.dumps(found)

    def test_spread(self) -> None:
        assert spread([1.0, 3.0]) == {"mean": 2.0, "std": pytest.approx(np.sqrt(2)), "seeds": [1.0, 3.0]}
        assert spread([0.5]) == {"mean": 0.5, "std": 0.0, "seeds": [0.5]}
        with pytest.raises(ValueError, match="at least one seed"):
            spread([])

    def test_what_did_not_run_is_none(self) -> None:
        found = gaps([0.2], {"none": [0.1], "bigram": [0.15]})
        assert (found["mean"], found["worst"]) == (None, None)
        assert found["worst_all"] == spread([0.2 - 0.15])
        found = gaps([0.2], {"bridge": [0.1]})
        assert (found["prot"], found["surv"]) == (None, {})
        assert gaps([0.2], {})["worst_all"] is None

    def test_seeds_must_match(self) -> None:
        with pytest.raises(ValueError, match="same seeds"):
            gaps([0.2, 0.1], {"none": [0.1]})

    def test_of_equals_the_first_is_the_strongest(self) -> None:
        assert strongest({"none": [0.1, 0.3], "bridge": [0.2, 0.2], "frequency": [0.1, 0.1]}) == "none"

    acc = st.lists(st.floats(0, 1), min_size=3, max_size=3)

    @given(acc, acc, acc, acc)
    def test_order(self, clean: list[float], a: list[float], b: list[float], c: list[float]) -> None:
        found = gaps(clean, {"none": a, "bridge": b, "frequency": c})
        prot, mean, worst = found["prot"], found["mean"], found["worst"]
        assert prot is not None
        assert mean is not None
        assert worst is not None
        assert worst == found["worst_all"]
        assert worst["mean"] <= mean["mean"] + 1e-9
        assert worst["mean"] <= prot["mean"] + 1e-9


class TestPlausibility:
    # At 0, 0.5, 2, 4 and 10 km; the last is of another category.
    CITY = equator(0, 0.5, 2, 4, 10, category=[0, 0, 0, 0, 1])
    SESSIONS = sessions_of([1, 2, 3, 4], [1, 1], gap_s=120)  # 60 km/h is 2 km in 120 s

    def test_by_hand(self) -> None:
        # 2 -> 1 (0.5 km), 3 -> 1 (2 km), 4 -> 5 (6 km, other category), the last 1 -> 4 (4 km).
        found = plausibility(self.SESSIONS, row(1, 1, 1, 5, 1, 4), self.CITY, SpeedSettings(limit_kmh=60.5))
        assert found == pytest.approx(
            {
                "substitution_rate": 4 / 6,
                "category_match": 3 / 4,
                "beyond_1km": 3 / 4,
                "mean_km": (0.5 + 2 + 6 + 4) / 4,
                "p95_km": 4 + 0.85 * 2,  # between the last two of 0.5 2 4 6, at 0.95 x 3 = 2.85
                "speed_violations_clean": 0,  # 0.5, 1.5, 2 | 0 km in 120 s
                "speed_violations_released": 2 / 4,  # 0, 0, 10 | 4 km
            }
        )

    def test_equal_times_count_as_the_least_gap(self) -> None:
        sessions = sessions_of([1, 2], [1, 3], gap_s=0)  # 0.5 and 2 km in 60 s: 30 and 120 km/h
        assert plausibility(sessions, sessions.poi, self.CITY, SpeedSettings())["speed_violations_clean"] == 0.5

    def test_the_step_between_sessions_does_not_count(self) -> None:
        sessions = sessions_of([1, 1], [5, 5], gap_s=60)
        assert plausibility(sessions, sessions.poi, self.CITY, SpeedSettings())["speed_violations_clean"] == 0

    def test_other_positions_are_refused(self) -> None:
        with pytest.raises(ValueError, match="one POI per clean position"):
            plausibility(self.SESSIONS, row(1), self.CITY, SpeedSettings())


class TestRecovery:
    def test_by_hand(self) -> None:
        clean, released, restored = row(1, 2, 3, 4, 5, 6), row(1, 2, 9, 9, 9, 9), row(1, 8, 3, 9, 8, 6)
        leaked = np.array([False] * 5 + [True])
        # Of five: 1 stays right, 2 is spoiled, 3 is put back, 4 and 5 are not.
        found = recovery(clean, released, restored, leaked)
        assert found == pytest.approx({"restored": 2 / 5, "of_substituted": 1 / 3, "spoiled": 1 / 2})
        assert recovery(clean, released, restored, ~np.zeros(6, bool)) == {
            "restored": 0.0,
            "of_substituted": 0.0,
            "spoiled": 0.0,
        }


def js(p: Sequence[float], q: Sequence[float]) -> float:
    return float(sum(x * np.log2(2 * x / (a + b)) / 2 for a, b in zip(p, q, strict=True) for x in (a, b) if x))


class TestUtility:
    # Squares of 1 km: POIs 1 and 2 in the first, 3 in the third, 4 in the fifth. Categories 0 0 1 1.
    CITY = equator(0.25, 0.75, 2.5, 4.5, category=[0, 0, 1, 1])

    def test_popularity_by_hand(self) -> None:
        before = sessions_of([1, 1, 2, 3])
        found = utility(before, row(1, 1, 3, 3), self.CITY)["popularity"]
        # POIs (1/2, 1/4, 1/4) and (1/2, 0, 1/2); categories (3/4, 1/4) and (1/2, 1/2).
        assert found["poi_js"] == pytest.approx(js((0.5, 0.25, 0.25), (0.5, 0, 0.5)))
        assert found["category_js"] == pytest.approx(js((0.75, 0.25), (0.5, 0.5)))
        # By hand once: (1/4 log2 2 + 1/4 log2 2/3 + 1/2 log2 4/3) / 2.
        assert found["poi_js"] == pytest.approx((0.25 + 0.25 * np.log2(2 / 3) + 0.5 * np.log2(4 / 3)) / 2)

    def test_nothing_in_common(self) -> None:
        found = utility(sessions_of([1, 1, 1]), row(3, 3, 3), self.CITY)
        assert found["popularity"] == {"poi_js": 1.0, "category_js": 1.0}
        assert found["flows"] == {
            "common_part": 0.0,
            "common_part_between": 1.0,
        }  # nobody leaves a square on either side
        assert found["hours"] == {"category_hour_js": 1.0, "cell_hour_js": 1.0}

    def test_flows_by_hand(self) -> None:
        # Before, in squares a c e: a-a, a-c, c-e | e-a. After: a-a, a-c, c-c | e-a.
        before = sessions_of([1, 2, 3, 4], [4, 1])
        found = utility(before, row(2, 1, 3, 3, 4, 2), self.CITY)["flows"]
        assert found["common_part"] == pytest.approx(3 / 4)
        assert found["common_part_between"] == pytest.approx(2 * 2 / (3 + 2))

    def test_the_grid_is_square_at_the_mean_latitude(self) -> None:
        # At 60 degrees north a degree of longitude is half as long: 0.4 and 1.4 km east are other squares, as north.
        lat = np.array([np.nan, 60, 60, 60, 60 + 1.1 / DEGREE_KM, 60 - 1.1 / DEGREE_KM])
        lon = np.array([np.nan, 0.4, 0.6, 1.4, 0.4, 0.4]) / (DEGREE_KM / 2)
        city = Vocabulary(lat, lon, np.zeros(6, np.int32), np.zeros(6, np.int32))
        squares = profile(sessions_of([1, 2, 3, 4, 5], gap_s=0), row(1, 2, 3, 4, 5), city).square_hour // 24
        assert squares[0] == squares[1]
        assert len(np.unique(squares)) == 4

    def test_hours_by_hand(self) -> None:
        # The same categories, at swapped hours; POI popularity and category popularity see nothing.
        before = sessions_of([1, 3])
        found = utility(before, row(3, 1), self.CITY)
        assert found["popularity"] == {"poi_js": 0.0, "category_js": 0.0}
        assert found["hours"] == {"category_hour_js": 1.0, "cell_hour_js": 1.0}
        # A day later is the same hour.
        day = sessions_of([1, 3], gap_s=86_400)
        assert utility(day, row(3, 1), self.CITY)["hours"] == {"category_hour_js": 0.0, "cell_hour_js": 0.0}

    def test_gyration_by_hand(self) -> None:
        # User 0 at 0.25 and 4.5 km: centre 2.375, radius 2.125. User 1 never moves. After: 0.25 and 2.5, radius 1.125;
        # user 1 at 0.25 and 0.75, radius 0.25.
        before = sessions_of([1, 4], [1, 1])
        found = utility(before, row(1, 3, 1, 2), self.CITY)["gyration"]
        assert found == pytest.approx(
            {
                "mean_km_before": 2.125 / 2,
                "mean_km_after": (1.125 + 0.25) / 2,
                "wasserstein_km": ((2.125 - 1.125) + (0.25 - 0)) / 2,
                "relative_change": 1 / 2.125,
            },
            rel=1e-6,
        )

    def test_gyration_counts_visits_and_all_sessions_of_a_user(self) -> None:
        # At 0.25 three times and 4.5 once: mean 1.3125, variance 3.38671875.
        before = sessions_of([1, 1], [1, 4], user=[5, 5])
        assert profile(before, before.poi, self.CITY).gyration_km == pytest.approx([np.sqrt(3.38671875)], rel=1e-6)

    def test_revisits_by_hand(self) -> None:
        # User 0: 1 2 | 1 3 has one revisit; user 1: 1 1 has one. After: 1 1 | 1 1 has three, 1 2 none.
        before = sessions_of([1, 2], [1, 3], [1, 1], user=[0, 0, 1])
        found = utility(before, row(1, 1, 1, 1, 1, 2), self.CITY)["visits"]
        assert found == pytest.approx(
            {
                "revisit_rate_before": 2 / 6,
                "revisit_rate_after": 3 / 6,
                "unique_pois_before": 2,  # 3 and 1
                "unique_pois_after": 1.5,  # 1 and 2
                "unique_pois_relative_change": (2 / 3 + 1) / 2,
            }
        )

    def test_other_positions_are_refused(self) -> None:
        with pytest.raises(ValueError, match="one POI per clean position"):
            utility(sessions_of([1]), row(1, 2), self.CITY)


@st.composite
def releases(draw: st.DrawFn) -> tuple[Sessions, Ints, Vocabulary]:
    count = draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    g = np.random.default_rng(seed)
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    clean = sessions_of(
        *[g.integers(1, count + 1, n).tolist() for n in lengths], user=np.sort(g.integers(0, 3, len(lengths))).tolist()
    )
    city = Vocabulary(
        np.append(np.nan, g.uniform(40, 40.2, count)),
        np.append(np.nan, g.uniform(-74, -73.8, count)),
        np.append(-1, g.integers(0, 3, count)).astype(np.int32),
        np.arange(-1, count, dtype=np.int32),
    )
    return clean, g.integers(1, count + 1, clean.positions).astype(np.int32), city


class TestInvariants:
    @given(releases())
    def test_a_clean_release_changes_nothing(self, given_: tuple[Sessions, Ints, Vocabulary]) -> None:
        clean, _, city = given_
        found = plausibility(clean, clean.poi, city, SpeedSettings())
        assert found["substitution_rate"] == found["beyond_1km"] == found["mean_km"] == found["p95_km"] == 0
        assert found["category_match"] == 1
        assert found["speed_violations_clean"] == found["speed_violations_released"]
        use = utility(clean, clean.poi, city)
        assert use["popularity"] == {"poi_js": 0, "category_js": 0}
        assert use["flows"] == {"common_part": 1, "common_part_between": 1}
        assert use["hours"] == {"category_hour_js": 0, "cell_hour_js": 0}
        assert use["gyration"]["wasserstein_km"] == use["gyration"]["relative_change"] == 0
        assert use["visits"]["revisit_rate_before"] == use["visits"]["revisit_rate_after"]
        assert use["visits"]["unique_pois_relative_change"] == 0

    @given(releases())
    def test_shares_lie_between_0_and_1_and_divergence_is_symmetric(
        self, given_: tuple[Sessions, Ints, Vocabulary]
    ) -> None:
        clean, released, city = given_
        there, back = utility(clean, released, city), utility(replace(clean, poi=released), clean.poi, city)
        for group in ("popularity", "flows", "hours"):
            assert there[group] == pytest.approx(back[group])
            assert all(0 <= value <= 1 for value in there[group].values())
        found = plausibility(clean, released, city, SpeedSettings())
        assert all(0 <= found[k] <= 1 for k in found if not k.endswith("_km"))
        assert there["popularity"]["category_js"] <= there["popularity"]["poi_js"] + 1e-12
        assert all(np.isfinite(v) for group in there.values() for v in group.values())

    def test_no_check_ins(self) -> None:
        empty = sessions_of()
        city = equator(1, 2)
        assert plausibility(empty, empty.poi, city, SpeedSettings())["substitution_rate"] == 0
        assert utility(empty, empty.poi, city)["flows"]["common_part"] == 1


@pytest.mark.parametrize(
    ("one", "two", "sign"),
    [
        ([0.060, 0.058], [0.003, 0.004], 1),  # two seeds: twice the standard deviation, .003
        ([0.060, 0.020], [0.010, 0.030], 0),
        ([0.10, 0.11, 0.12], [0.05, 0.06, 0.07], 1),
        ([0.10, 0.11, 0.12], [0.05, 0.06, 0.14], 0),
        ([0.1], [0.2], 0),  # one seed without a number of positions says nothing
    ],
)
def test_a_clear_difference_over_seeds(one: list[float], two: list[float], sign: int) -> None:
    found = against(one, two)
    assert found is not None
    assert found.sign == sign
