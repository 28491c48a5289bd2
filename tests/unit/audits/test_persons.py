"""Measures of persons against slow references that follow their definitions word by word."""

from dataclasses import replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.audits.measures import persons as measure
from ghostpoi.audits.measures.persons import Matcher, Parts, Visits
from ghostpoi.audits.persons import Persons, PersonSettings, joined, public, summary
from ghostpoi.audits.verdicts import BEYOND, UNSURE, WITHIN, decide
from ghostpoi.data.checkins import Bools
from ghostpoi.data.places import HOMES
from ghostpoi.reports.audit_view import person_rows

Row = tuple[int, int, int, int]  # person, pseudonym of the person, time, cell


def visits(rows: list[Row]) -> Visits:
    person, alias, time, cell = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Visits(person, person * 3 + alias, time, cell, cell, cell)


def fits(shown: Visits, unit: int, known: Visits, at: int, seconds: int, around: tuple[int, ...]) -> bool:
    """Whether a pseudonym has a check-in at the moment, and in a cell around the one that is known."""
    return any(
        u == unit and t // seconds == known.time[at] // seconds and (not around or c - known.cell[at] in around)
        for u, t, c in zip(shown.unit, shown.time, shown.cell, strict=True)
    )


def reference(shown: Visits, known: Visits, points: list[int], seconds: int, around: tuple[int, ...]) -> bool:
    """Whether the points under one pseudonym fit the pseudonyms of one person, who is the right one if she is shown."""
    who = known.person[points[0]]
    for unit in {known.unit[at] for at in points}:
        group = [at for at in points if known.unit[at] == unit]
        found = {
            p for u, p in set(zip(shown.unit.tolist(), shown.person.tolist(), strict=True))
            if all(fits(shown, u, known, at, seconds, around) for at in group)
        }  # fmt: skip
        if len(found) == 1 and (who not in shown.person or found == {who}):
            return True
    return False


rows_of = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 12), st.integers(0, 3)), min_size=8, max_size=30
)


@pytest.mark.parametrize("around", [(), (0,), (-1, 0, 1)])
@pytest.mark.parametrize("held", [False, True])
@given(rows=rows_of, seconds=st.sampled_from([1, 4]))
def test_who_is_singled_out_is_who_fits_alone(
    around: tuple[int, ...], held: bool, rows: list[Row], seconds: int
) -> None:
    everybody = visits([*rows, (5, 0, 1, 1), (5, 1, 3, 2), (5, 0, 6, 0)])
    shown = everybody.take(everybody.person != 5) if held else everybody
    whose = np.flatnonzero(everybody.person == 5)
    drawn = np.array(list(combinations(whose.tolist(), 3)))
    found = measure.singled_out(Matcher(shown, seconds, around), everybody, drawn)
    expected = [
        [reference(shown, everybody, draw[: k + 1], seconds, around) for k in range(3)] for draw in drawn.tolist()
    ]
    assert found.tolist() == expected


@given(rows=rows_of, most=st.integers(1, 3))
def test_gaps_are_found_where_one_person_has_them(rows: list[Row], most: int) -> None:
    every = visits(rows)
    shown = every.person != 0
    found = measure.gaps(every, shown, 2, most, 5)
    order = np.lexsort((every.time, every.unit))
    runs: dict[int, list[tuple[int, tuple[int, ...]]]] = {k: [] for k in range(1, most + 1)}
    for k in runs:
        for at in range(len(order) - k):
            some = order[at : at + k + 1]
            if len(set(every.unit[some])) == 1:
                runs[k].append((int(every.person[some[0]]), tuple((np.diff(every.time[some]) // 2).tolist())))
    for k, tally in enumerate(found, 1):
        expected = np.zeros((5, 2))
        for person, run in runs[k]:
            holders = {p for p, other in runs[k] if other == run and p != 0}
            expected[person] += [len(holders) == 1, 1]
        assert tally.tolist() == expected.tolist()


def test_a_twin_fits_most_check_ins() -> None:
    shown = visits([(0, 0, 1, 1), (0, 0, 5, 2), (1, 0, 1, 1), (1, 0, 5, 3), (1, 0, 9, 3)])
    known = visits([(2, 0, 1, 1), (2, 0, 5, 2), (3, 0, 1, 1), (3, 0, 9, 3), (4, 0, 20, 1), (4, 0, 30, 1)])
    drawn = np.array([[0, 1], [2, 3], [4, 5]])
    assert measure.twins(Matcher(shown, 1, (0,)), known, drawn).tolist() == [0, 1, -1]


def bayes(every: Visits, earlier: Bools, group: Bools) -> dict[int, float]:
    """Return how likely (log) the visits of a group are each person's."""
    score = {}
    for who in np.unique(every.person[earlier]).tolist():
        own = earlier & (every.person == who)
        score[who] = float(np.log(own.sum()))
        for token in (every.token, every.token * 6 + every.time // 14_400 % 6):
            for value in token[group]:
                usual = ((token == value) & earlier).sum() + 0.5
                usual /= sum(((token == v) & earlier).sum() + 0.5 for v in np.unique(token))
                hers = ((token == value) & own).sum()
                score[who] += np.log((hers + 10 * usual) / (own.sum() + 10) / usual)
    return score


def test_ids_of_a_next_release_go_one_by_one_to_whom_they_fit_best_together() -> None:
    """Against all ways to give each id another person. Shares and precision, too, as they are defined."""
    draw = np.random.default_rng(8)
    person, count = np.repeat(np.arange(6), 30), 180
    cell = np.where(draw.random(count) < 0.5, person, draw.integers(0, 6, count))
    every = Visits(person, person, draw.integers(0, 500, count) * 3600, cell, cell, cell)
    strangers = np.arange(6) == 5
    parts, expected = [], []
    for quarters in (1, 2, 3):
        later = np.arange(count) % 30 * 4 >= quarters * 30
        parts.append(Parts(every, person, later, np.arange(6), strangers, one_each=True))
        scores = np.array([
            [*bayes(every, ~later & ~strangers[person], later & (person == one)).values()] for one in range(6)
        ])  # fmt: skip
        size = np.sqrt(np.bincount(person, later))
        best = max(permutations(range(6), 5), key=lambda ids: sum(scores[ids, range(5)] / size[list(ids)]))
        for who, one in enumerate(best):
            sure = scores[one, who] - np.delete(scores[one], who).max()
            expected.append((one, who, float(sure)))
        expected += [(one, int(scores[one].argmax()), -np.inf) for one in set(range(6)) - set(best)]
    found, control = measure.linkage("ids", parts, 6)
    members = sorted((e for e in expected if e[0] != 5), key=lambda e: -e[2])
    right = [sum(one == who for one, who, _ in members if one == p) for p in range(5)]
    assert found["ids"][:5].tolist() == [[r, 3] for r in right]
    assert control["ids"].sum(axis=0).tolist() == [3, 15]  # all to one of five
    hits = np.cumsum([one == who for one, who, _ in members])
    for recall in (10, 25, 50):
        chosen = members[: int(np.searchsorted(hits, recall / 100 * 15)) + 1]
        tried = found[f"precision_at_{recall}"].sum(axis=0).tolist()
        assert tried == [sum(one == who for one, who, _ in chosen), len(chosen)]
        surer = [e for e in expected if e[0] == 5 and e[2] >= chosen[-1][2]]
        assert control[f"precision_at_{recall}"].sum(axis=0).tolist() == [len(surer), 3]
    assert max(right) == 3
    assert sum(right) < 15


@given(rows=rows_of, quarters=st.sampled_from([1, 2, 3]))
def test_a_release_is_cut_between_sessions_of_each_person(rows: list[Row], quarters: int) -> None:
    person, session, time = (np.array(column, np.int64) for column in list(zip(*rows, strict=True))[:3])
    session = np.unique(person * 2 + session, return_inverse=True)[1]
    found = measure.later(person, session, time, quarters)
    for who in set(person.tolist()):
        own = set(session[person == who].tolist())
        order = sorted(own, key=lambda one: (min(time[session == one]), one))
        after = {one for place, one in enumerate(order) if place / len(order) >= quarters / 4}
        assert set(session[(person == who) & found].tolist()) == after
        assert set(session[(person == who) & ~found].tolist()) == own - after


def test_sessions_go_to_the_likeliest_person() -> None:
    """Against Bayes' rule with the shares of each person written out."""
    draw = np.random.default_rng(5)
    person = np.repeat(np.arange(4), 40)
    cell = np.where(draw.random(160) < 0.6, person, draw.integers(0, 4, 160))
    time = draw.integers(0, 24, 160) * 3600
    every = Visits(person, person, time, cell, cell, cell)
    session = np.arange(160) // 4
    later = session % 10 >= 5
    strangers = np.array([False, False, False, True])
    tested = np.unique(session[later])
    found, control = measure.linkage("sessions", [Parts(every, session, later, tested, strangers)], 4)

    right = np.zeros((4, 2))
    for one in tested:
        score = bayes(every, ~later & ~strangers[person], session == one)
        truth = int(person[session == one][0])
        if not strangers[truth]:
            right[truth] += [max(score, key=lambda who: score[who]) == truth, 1]
    assert found["sessions"].tolist() == right.tolist()
    assert right[:, 0].sum() > 8  # of 15; one of three by chance
    assert control["sessions"][:3, 0].sum() == 5  # all to one of three
    assert control["precision_at_25"][:3].sum() == 0
    assert control["precision_at_25"][3, 1] == 5


def test_homes_are_the_most_visited_and_those_whose_counts_fit() -> None:
    #      person, venue: 1 and 2 are homes in crowd 0, 3 is a home in crowd 1, 4 a shop in crowd 0
    # 5 is a home in crowd 2 that is never shown, and 6 a shop in crowd 2
    rows = [(0, 1)] * 2 + [(0, 4)] * 8 + [(1, 2)] * 3 + [(1, 3)] + [(2, 3)] * 9 + [(3, 6)] * 5 + [(0, 6)]
    person, venue = (np.array(column) for column in zip(*rows, strict=True))
    cell_of = np.array([0, 0, 0, 1, 0, 2, 2])
    every = Visits(person, person, np.arange(len(rows)), cell_of[venue], cell_of[venue], venue)
    homes = np.array([False, True, True, True, False, True, False])
    assert [list(found) for found in measure.most_frequent(every, homes, 4)] == [[1, 2, 3, 0], [2, 3, 9, 0]]

    def score(who: int, home: int) -> float:
        m, inside = (venue == home).sum(), every.cell == cell_of[home]
        chance = max(inside.sum() - m, 1) * (person == who).mean()
        n = (inside & (person == who)).sum()
        counts = [m] if m else np.linspace(0, n, 10_001)  # of a hidden home, the number that fits best
        return max(float(n * np.log1p(m / chance) - m) for m in counts) if n else -np.inf

    expected = [max((1, 2, 3, 5), key=lambda home: score(who, home)) for who in range(4)]
    assert expected[3] == 5
    assert measure.by_counts(every, homes, cell_of, 4).tolist() == expected


def test_the_night_is_when_a_city_sleeps() -> None:
    hours = np.repeat(np.arange(24), [1] * 4 + [9] * 16 + [1] * 4)  # quiet from 20 to 4
    assert np.unique(hours[measure.night(hours * 3600)]).tolist() == [0, 1, 2, 3, 20, 21, 22, 23]


def test_visitors_are_flagged_by_the_share_of_their_crowds() -> None:
    person, token = np.array([0, 0, 1, 2]), np.array([7, 8, 7, 8])
    every = Visits(person, person, person, token, token, np.array([1, 2, 2, 2]))
    sure = measure.likelihood(every, np.array([False, True, False]), 3)  # half of the check-ins of crowd 7
    assert sure.tolist() == pytest.approx([np.log(2), np.log(2), 0])
    assert measure.flagged(sure, np.array([True, False, False]), np.ones(3, bool)) == pytest.approx(np.log(2))


def test_a_share_has_the_interval_of_a_ratio_over_people() -> None:
    counts = np.array([[10.0, 10], [0, 10], [5, 10], [0, 0]])
    found = measure.interval(counts, 0.01)
    error = np.sqrt(((counts[:3, 0] - 5) ** 2).sum() * 3 / 2) / 30
    assert found is not None
    assert found["mean"] == 0.5
    assert found["high"] == min(1.0, np.ceil((0.5 + 2 * error + 1) * 100) / 100)
    assert (found["median"], found["p95"], found["most"], found["people"]) == (0.5, 1.0, 1.0, 3)
    assert measure.interval(np.zeros((3, 2)), 0.01) is None
    once = measure.interval(np.ones((40, 2)), 0.05)
    assert once is not None
    assert "median" not in once


def test_draws_are_distinct_check_ins_of_people_with_enough() -> None:
    person = np.array([0] * 7 + [1] * 3 + [2] * 5)
    drawn = measure.draws(person, 10, 4, 5, np.random.default_rng(0))
    assert drawn.shape == (8, 5)
    assert [len(set(draw)) for draw in drawn.tolist()] == [5] * 8
    assert np.unique(person[drawn], axis=1).shape == (8, 1)


def test_words_mark_categories_and_not_parts_of_words() -> None:
    names = ["Sports Bar", "Barbershop", "Church", "Home (private)", "Funeral Home", "Drugstore / Pharmacy"]
    called = [("4bf58dd8d48988d103941735", name) if name == "Home (private)" else (name, "") for name in names]
    marked = {
        topic: PersonSettings().marks(topic, called).tolist() for topic in ("nightlife", "worship", "home", "other")
    }
    assert [names[marked[topic].index(True)] for topic in ("nightlife", "worship", "home")] == [
        "Sports Bar", "Church", "Home (private)",
    ]  # fmt: skip
    assert [sum(found) for found in marked.values()] == [1, 1, 1, 0]
    assert PersonSettings(other="barbershop, funeral").marks("other", called).tolist() == [
        False, True, False, False, True, False,
    ]  # fmt: skip


def test_homes_are_the_categories_that_releases_hide() -> None:
    every = [(name, "") for name in HOMES] + [("4d954b06a243a5684965b473", "Wohnhaus")]
    assert PersonSettings().marks("home", every).all()
    assert PersonSettings(home="villa").marks("home", [("1", "Old Villas"), ("2", "Village")]).tolist() == [True, False]


def some_persons(people: int) -> Persons:
    counts = np.stack([np.arange(people) % 3, np.full(people, 2.0)], axis=1)
    return Persons(
        {("unicity", "part_place", "4", "release"): counts, ("home", "frequent", "exact", "release"): counts},
        None,
        2,
        9,
    )


def test_regions_join_by_people() -> None:
    together = joined([some_persons(30), None, replace(some_persons(60), place_km=5, rows=18)])
    assert together is not None
    found = summary(together)
    assert found is not None
    assert found["place_km"] == 4
    assert found["unicity"]["part_place"]["4"]["release"]["people"] == 90
    assert found["home"]["exact"]["release"]["mean"] == 0.5
    assert joined([None]) is None
    assert summary(None) is None


def test_the_public_part_names_nobody() -> None:
    found = public(summary(some_persons(30)))
    assert found is not None
    assert set(found["unicity"]["part_place"]["4"]["release"]) == {"mean", "low", "high", "median"}
    many = public(summary(some_persons(400)))
    assert many is not None
    assert set(many["home"]["exact"]["release"]) == {"mean", "low", "high", "median", "p95"}
    few = summary(some_persons(19))
    assert few is not None
    assert few["home"]["exact"]["release"] is None


@pytest.mark.parametrize(("limit", "verdict"), [(0.3, WITHIN), (0.15, UNSURE), (0.05, BEYOND)])
@pytest.mark.parametrize("name", ["persons", "linked"])
def test_a_limit_on_persons(name: str, limit: float, verdict: str) -> None:
    release = {"release": {"low": 0.1, "high": 0.2}}
    found: dict[str, Any] = {"unicity": {"part_place": {"4": release}}} if name == "persons" else {}
    decided = decide({name: limit}, {"persons": found | {"next_release": {"ids": release}}})
    assert decided is not None
    assert decided[name]["verdict"] == verdict
    undecided = decide({name: limit}, {"persons": None})
    assert undecided is not None
    assert undecided["decision"] == UNSURE


def test_the_control_of_named_visitors_is_at_least_the_share_of_all_who_make_such_visits() -> None:
    """Without the release, one can still name everybody."""
    figure = {"low": 0.0, "high": 1.0, "people": 30}
    found = {name: figure | {"mean": mean} for name, mean in (("release", 0.8), ("control", 0.5), ("anybody", 0.65))}
    for kept, control in ((found, "65%"), (found | {"anybody": figure | {"mean": 0.4}}, "50%")):
        [row] = person_rows({"unicity": {}, "sensitive": {"worship": kept}})
        assert (row.cells["release"], row.cells["control"]) == ("80%", control)
    del found["control"]  # too few people
    assert person_rows({"unicity": {}, "sensitive": {"worship": found}})[0].cells["control"] == "65%"
