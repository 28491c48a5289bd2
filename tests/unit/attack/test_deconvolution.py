"""A6 to A9 and A11: cases where each must succeed."""

from dataclasses import replace

import numpy as np
import pytest
from attack_evidence import CPU, SEED, answer, candidates_of, evidence_of, favouring, jointly
from builders import sessions_of

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import purify
from ghostpoi.attack.adversaries.deconvolution import INDEPENDENT, Visits, estimate_popularity
from ghostpoi.attack.adversaries.habits import (
    CONCENTRATIONS,
    HabitsLeak,
    closeness,
    concentration,
    fit_attraction,
    learn_from_pairs,
)
from ghostpoi.attack.adversaries.several_releases import joint_channel
from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.audits.grid import with_poi
from ghostpoi.audits.measures.accuracy import recovery
from ghostpoi.data.checkins import Ints
from ghostpoi.data.geo import EARTH_RADIUS_KM, haversine_km, unit_sphere
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.channel import uniform


class TestWhereTheyMustSucceed:
    def test_deconvolution_recovers_popularity(self) -> None:
        # 60 visits to 1 and 20 to 2, drawn as often as the rule says: 3 could only be 1, 5 only 2.
        sets = candidates_of([3, 4], [4, 5], [1], [1], [2])
        released = np.repeat([0, 0, 0, 30, 40, 10], 1).astype(float)
        found = estimate_popularity(uniform(sets), released, np.zeros(6), 2000)
        assert found[1:3] == pytest.approx([0.75, 0.25], abs=1e-5)
        evidence = evidence_of(sets, [0, 1], [[3] * 30 + [4] * 40, [5] * 10])
        assert answer("deconvolution", evidence) == [1] * 70 + [2] * 10

    def test_the_prior_of_leaked_visits_counts(self) -> None:
        sets = candidates_of([3], [3], [1])
        found = estimate_popularity(uniform(sets), np.array([0, 0, 0, 8.0]), np.array([0, 3.0, 1.0, 0]), 2000)
        assert found[1:3] == pytest.approx([0.75, 0.25], abs=1e-5)

    @pytest.mark.parametrize("name", ["deconvolution", "habits", "habits+leak", "hidden-markov"])
    def test_released_counts_tell_what_is_popular_in_a_crowd_if_the_rule_favours_it(self, name: str) -> None:
        # One crowd of three, all released the same way: only a rule that says so makes the frequent 2 the popular one.
        sets = candidates_of([1, 2, 3], [1, 2, 3], [1, 2, 3])
        even = evidence_of(sets, [0, 1], [[1, 2, 2, 2], [3, 2, 2, 1]])
        assert answer(name, even) == [1] * 8  # no difference: ties go to the smaller
        assert answer(name, favouring(even)) == [2] * 8

    @pytest.mark.parametrize("name", ["habits+leak", "hidden-markov"])
    def test_a_leaked_visit_does_not_drown_what_released_counts_tell(self, name: str) -> None:
        # One visit of somebody else to 3 leaked; 2 was released nine times out of twelve.
        sets = candidates_of([1, 2, 3], [1, 2, 3], [1, 2, 3])
        even = evidence_of(sets, [9, 0, 1], [[1], [1, 2, 2, 2, 2, 2], [3, 2, 2, 2, 2]], leaked=[[3]])
        assert answer(name, even)[1:] == [3] * 11
        assert answer(name, favouring(even))[1:] == [2] * 11

    def test_the_counts_of_several_releases_are_averaged(self) -> None:
        sets = candidates_of([1, 2, 3], [1, 2, 3], [1, 2, 3])
        one, two = (favouring(evidence_of(sets, [0], [released])) for released in ([1, 1, 2, 3], [2, 2, 2, 2]))
        assert jointly(one) == [1] * 4
        assert jointly(one, two) == [2] * 4

    def test_popular_draws_are_not_taken_for_repeated_ones(self) -> None:
        # User 0 leaked six visits to 1, all released as 2. Does the publisher repeat its draw, so that this user's 3
        # is no 1? Not if the rule favours popular venues: then 2 may have come six times by chance.
        sets = candidates_of([1, 2, 3], [1, 2, 3], [1, 2, 3])
        evidence = evidence_of(sets, [0, 1, 0], [[2] * 6, [1], [3]], leaked=[[1] * 6, [2]])
        channel, weight = uniform(sets), HabitsLeak().prior_weight
        even, popular = (
            HabitsLeak().explain(e, channel, e.symbol, hint=np.zeros(4)) for e in (evidence, favouring(evidence))
        )
        own = np.array([6.0, 0, 0])  # the user's other visits to 1, 2 and 3, none of them released as 3
        repeats = CONCENTRATIONS[0]
        for found, likelihood, likeliest in (
            (even, repeats / 3 / (repeats + own), 2),
            (popular, np.full(3, 1 / 3), 1),
        ):
            visits, popularity, share = found
            expected = (weight * popularity[1:] + own) * likelihood
            assert share == pytest.approx(expected / expected.sum())
            assert visits.argmax(share).tolist() == [likeliest]

    def test_habits_from_many_draws(self) -> None:
        # 3 and 4 may be either; that user 0 also released 5, and user 1 also 6, separates their habits.
        sets = candidates_of([3, 4, 5], [3, 4, 6], [1], [1], [1], [2])
        released = [[3, 4, 5] * 6, [3, 4, 6] * 6]
        evidence = evidence_of(sets, [0, 1], released)
        assert answer("habits", evidence) == [1] * 18 + [2] * 18
        pooled = answer("deconvolution", evidence)
        assert (np.array(pooled) == answer("habits", evidence)).mean() < 0.7

    def test_one_leaked_pair_of_a_sticky_publisher_decodes_the_rest(self) -> None:
        # User 0: 1 is always 3 and 2 is always 4. What leaked says so of 1; that 4 is then not 1 follows. Others, of
        # whom 2 leaked, show that 2 is a venue that people go to.
        sets = candidates_of([3, 4], [3, 4], [1], [1])
        released, leaked = [[3, 3, 3], [3, 3], [4, 4], [3, 4, 3, 4, 4, 4]], [[1, 1, 1], [2, 2], [2, 2]]
        evidence = evidence_of(sets, [0, 1, 2, 0], released, leaked)
        assert answer("habits+leak", evidence)[7:] == [1, 2, 1, 2, 2, 2]
        assert answer("hidden-markov", evidence)[7:] == [1, 2, 1, 2, 2, 2]
        assert len(set(answer("habits", evidence))) == 1  # without the leak nothing distinguishes 1 from 2

    def test_a_leaked_habit_under_independent_draws_covers_what_never_leaked(self) -> None:
        # User 0 goes to 1 and every draw is another one: then 5, which never leaked, is most likely 1 as well.
        sets = candidates_of([3, 4, 5], [3, 4, 5], [1], [1], [1])
        evidence = evidence_of(sets, [0, 0, 1], [[3, 4] * 6, [5, 5], [3, 4, 5]], leaked=[[1] * 12])
        assert answer("habits+leak", evidence)[12:14] == [1, 1]
        assert answer("per-user", evidence)[12:14] == [5, 5]  # the table alone does not know

    def test_transitions_resolve_what_nothing_else_can(self) -> None:
        # 3 is followed by 1 and 4 by 2, says the leak; 5 and 6 may be either, and nobody comes twice.
        sets = candidates_of([5, 6], [5, 6], [], [], [1], [1])
        leaked = [[3, 1], [4, 2]] * 5
        released = [*([[3, 5], [4, 6]] * 5), [3, 5], [4, 5], [3, 6], [4, 6]]
        evidence = evidence_of(sets, range(len(released)), released, leaked)
        assert answer("hidden-markov", evidence)[20:] == [3, 1, 4, 2, 3, 1, 4, 2]
        context_free = answer("habits+leak", evidence)[20:]
        assert context_free[1] == context_free[3]  # 5 is 5, whatever came before it

    def test_transitions_work_backwards_too(self) -> None:
        sets = candidates_of([5, 6], [5, 6], [], [], [1], [1])
        released = [*([[5, 3], [6, 4]] * 5), [5, 3], [5, 4], [6, 3], [6, 4]]
        evidence = evidence_of(sets, range(len(released)), released, [[1, 3], [2, 4]] * 5)
        assert answer("hidden-markov", evidence)[20:] == [1, 3, 2, 4, 1, 3, 2, 4]

    def test_people_stay_near(self) -> None:
        # 5 may be 1 or 2, far apart, and nobody was seen there. Leaked steps are short: near 3 it was 1, near 4, 2.
        sets = candidates_of([5], [5], [], [], [1], [7], [8], [7])
        lat = np.array([np.nan, 0.0, 0.2, 0.001, 0.201, 0.1, 0.4, 0.401, 0.7])
        leaked = [[6, 6, 7]] * 10
        evidence = evidence_of(sets, range(12), [*([[7, 7, 8]] * 10), [3, 5], [4, 5]], leaked)
        known = replace(evidence, rule=replace(evidence.rule, lat=lat, lon=np.zeros(9)))
        assert answer("hidden-markov", known)[30:] == [3, 1, 4, 2]
        apart = answer("hidden-markov", evidence)[30:]
        assert apart[1] == apart[3]

    def test_an_imitated_channel_beats_a_wrong_guess(self) -> None:
        # The publisher prefers candidate 5 nine times in ten, behind both 1 and 2; the adversary does not know.
        g = np.random.default_rng(0)
        sets = candidates_of([3, 5], [4, 5], [1], [2], [1])
        clean = [g.choice([1, 2], p=[0.9, 0.1] if u % 2 else [0.1, 0.9], size=60) for u in range(20)]
        released = [np.where(g.random(60) < 0.9, 5, np.where(c == 1, 3, 4)).tolist() for c in clean]
        evidence = evidence_of(sets, range(20), released, exact=False)
        channel = HabitsLeak().channel(evidence)
        guess = channel.probability[channel.find(np.array([1, 2]), np.array([5, 5]))]
        assert (guess > 0.75).all()
        exact = replace(evidence, rule=replace(evidence.rule, exact=True))
        right = [np.mean(np.array(answer("habits", e)) == np.concatenate(clean)) for e in (evidence, exact)]
        assert right[0] >= right[1]

    def test_a_rule_that_does_not_hold_is_no_hindrance(self) -> None:
        # Another tool: 1 becomes 2, 2 becomes 3, 3 becomes 1, and the candidates say otherwise.
        sets = candidates_of([3], [1], [2])
        clean = [[1, 2, 3, 2]] * 4
        released = [[2, 3, 1, 3]] * 8
        for exact in (True, False):
            evidence = evidence_of(sets, range(8), released, clean, exact)
            for name in ("per-user", "habits+leak", "hidden-markov"):
                assert answer(name, evidence) == [1, 2, 3, 2] * 8, name

    def test_more_releases_leave_less_doubt(self) -> None:
        # 4 may be 1 or 2; released a second time as 3 it was 1, as 5 it was 2.
        sets = candidates_of([3, 4], [4, 5], [1], [1], [2])
        one = evidence_of(sets, range(4), [[4]] * 4)
        two = replace(one, released=replace(one.released, poi=np.array([3, 5, 3, 5], np.int32)))
        assert jointly(one, two) == [1, 2, 1, 2]
        assert len(set(jointly(one))) == 1

    def test_where_a_user_goes_tells_the_nearer_of_two(self) -> None:
        # 5 may be 1 or 2; user 0 is otherwise at 3, near 1, and user 1 at 4, near 2.
        sets = candidates_of([5], [5], [], [], [1])
        lat = np.array([np.nan, 0.0, 0.2, 0.001, 0.201, 0.1])
        evidence = evidence_of(sets, range(2), [[3, 3, 5], [4, 4, 5]])
        known = replace(evidence, rule=replace(evidence.rule, lat=lat, lon=np.zeros(6)))
        assert answer("habits", known) == [3, 3, 1, 4, 4, 2]
        assert len({answer("habits", evidence)[k] for k in (2, 5)}) == 1
        v = Visits.of(known, known.rule.channel, known.symbol)
        user, clean, _ = v.habits
        point = EARTH_RADIUS_KM * unit_sphere(lat, np.zeros(6))
        near = closeness(user, point[clean], np.where(clean > 2, 2.0, 0.1), 0.5)
        km = haversine_km(np.array([0.0, 0.2]), np.zeros(2), np.array([0.001]), np.zeros(1))
        assert near[:2] == pytest.approx(1 / (km + 0.5))


class TestManyReleases:
    def case(self, releases: int) -> tuple[Sessions, list[Ints], np.ndarray, Rule]:
        g = np.random.default_rng(3)
        sets = candidates_of(*[[(p + d) % 30 + 1 for d in (1, 3, 7, 12, 20)] for p in range(30)])
        clean = sessions_of(*g.integers(1, 31, (100, 4)).tolist(), user=np.repeat(range(20), 5).tolist())
        drawn = [sets.poi[clean.poi, g.integers(5, size=clean.positions)] for _ in range(releases)]
        return clean, drawn, g.random(100) < 0.1, Rule(sets, uniform(sets), exact=True)

    def test_one_release_is_a8(self) -> None:
        clean, drawn, leaked, rule = self.case(1)
        for known in (rule, replace(rule, exact=False)):
            evidence = Evidence.of(with_poi(clean, drawn[0]), clean.poi, leaked, 31, known)
            assert jointly(evidence) == answer("habits+leak", evidence)

    def test_the_recovered_share_grows(self) -> None:
        clean, drawn, leaked, rule = self.case(4)
        found = []
        for k in (1, 2, 4):
            evidence = Evidence.of(with_poi(clean, drawn[0]), clean.poi, leaked, 31, rule, tuple(drawn[1:k]))
            poi, measures = purify(ADVERSARIES["multi-release"], evidence, SEED, CPU)
            assert measures == {"releases": k}
            found.append(recovery(clean.poi, drawn[0], poi, evidence.positions)["restored"])
        assert found[0] + 0.1 < found[1]
        assert found[1] < found[2]
        assert found[2] > 0.9

    def test_joint_channel_by_hand(self) -> None:
        channel = uniform(candidates_of([3, 4], [4, 5, 3], [1], [1], [2]))
        both = joint_channel([channel, channel], np.array([[3, 4], [4, 5], [1, 5]]))
        assert both.clean.tolist() == [1, 2, 2, 3, 4]
        assert both.released.tolist() == [0, 0, 1, 2, 2]  # nothing gives 1 and 5: the first release decides
        assert both.probability == pytest.approx([1 / 4, 1 / 9, 1 / 9, 1, 1])


class TestChannelLearning:
    def test_attraction_by_hand(self) -> None:
        # 100 visits to 1 became 3 or 4, 100 to 2 became 4 or 5; odds of 3, 4, 5 are 4 : 1 : 4 behind both.
        channel = uniform(candidates_of([3, 4], [4, 5], [], [], []))
        visits, released = np.array([0, 100.0, 100, 0, 0, 0]), np.array([0, 0, 0, 80.0, 40, 80])
        attraction = np.ones(6)
        for _ in range(200):
            found, attraction = fit_attraction(channel, visits, released, attraction, 1e-9)
        assert found.probability[found.find(np.array([1, 1, 2]), np.array([3, 4, 5]))] == pytest.approx([0.8, 0.2, 0.8])

    def test_a_strong_prior_leaves_the_guess(self) -> None:
        channel = uniform(candidates_of([3, 4], [4, 5], [], [], []))
        visits, released = np.array([0, 100.0, 100, 0, 0, 0]), np.array([0, 0, 0, 80.0, 40, 80])
        found, _ = fit_attraction(channel, visits, released, np.ones(6), 1e12)
        assert found.probability == pytest.approx(channel.probability)

    def test_learning_from_pairs_by_hand(self) -> None:
        channel = uniform(candidates_of([2, 3], [3], []))
        released, clean = np.array([2, 2, 1]), np.array([1, 1, 2])  # 2 as 1 is against the rule
        guess = learn_from_pairs(channel, released, clean, 4.0, exact=False)
        trust = 2.5 / 4
        # 1 leaked twice, always as 2: (4 * trust * 1/2 + 2) / (4 + 2) against (4 * trust * 1/2) / 6.
        wanted = {
            (2, 1): 1 / 5,
            (1, 2): (2 * trust + 2) / 6,
            (1, 3): 2 * trust / 6,
            (2, 3): 4 * trust / 5,
            (3, 3): trust,
        }
        entries = zip(guess.clean.tolist(), guess.released.tolist(), strict=True)
        assert dict(zip(entries, guess.probability.tolist(), strict=True)) == pytest.approx(wanted)
        exact = learn_from_pairs(channel, released, clean, 4.0, exact=True)
        wanted = {(2, 1): 1 / 5, (1, 2): trust / 2, (1, 3): trust / 2, (2, 3): 4 * trust / 5, (3, 3): trust}
        entries = zip(exact.clean.tolist(), exact.released.tolist(), strict=True)
        assert dict(zip(entries, exact.probability.tolist(), strict=True)) == pytest.approx(wanted)
        assert learn_from_pairs(channel, released[:0], clean[:0], 4.0, exact=False) is channel

    @pytest.mark.parametrize(("draws", "low", "high"), [(1, 0, 0.02), (2, 0.3, 3), (0, 50, INDEPENDENT)])
    def test_repeated_draws_are_seen_in_pairs(self, draws: int, low: float, high: float) -> None:
        g = np.random.default_rng(2)
        sets = candidates_of(*[[q for q in range(1, 10) if q != p] for p in range(1, 10)])
        user, clean = np.repeat(np.arange(200), 10), np.repeat(g.integers(1, 10, 200), 10)
        fixed = g.integers(8, size=(200, max(draws, 1)))
        column = fixed[user, g.integers(draws, size=2000)] if draws else g.integers(8, size=2000)
        found = concentration(uniform(sets), user, sets.poi[clean, column].astype(np.int64), clean)
        assert low <= found <= high

    def test_nothing_repeated_tells_nothing(self) -> None:
        none = np.zeros(0, np.int64)
        channel = uniform(candidates_of([2, 3], [3, 1], [1, 2]))
        assert concentration(channel, none, none, none) == INDEPENDENT
        assert concentration(channel, np.array([0, 1]), np.array([2, 2]), np.array([1, 1])) == INDEPENDENT
