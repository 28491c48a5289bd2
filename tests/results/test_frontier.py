"""The findings on the page about protection against usefulness follow from the results."""

import json
from statistics import fmean

import pytest
from findings import prose

from docs.blocks.common import RESULTS, known, mean, study
from docs.blocks.frontier import (
    DEFAULT,
    MOST,
    TRUE,
    at_most,
    control,
    far_moves_without_users,
    given,
    gives_away,
    goals,
    ignore_users,
    near,
    nearest,
    percent,
    strongest,
)
from docs.rerun_facts import threshold_for
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.audits.measures.gaps import SIGNIFICANCE
from ghostpoi.study import labels
from ghostpoi.study.labels import show
from ghostpoi.study.results import GOWALLA, LEAK, NO_LEAK, NYC, WITHOUT_LEAK, WORST_CASE

PAGE = prose("results/frontier.md")
R = study("frontier")
ANY, EXACT = "ghost candidates.category=any", "crowd method.category=exact"


def test_what_the_default_gives_away() -> None:
    found = {(one.data, one.leak): one.gap for one in given() if one.knowledge == TRUE}
    free, leaked = (show(found[NYC, leak].difference["mean"]) for leak in MOST)
    assert f"gives away {free} in accuracy without a leak and {leaked} with a 5% leak on Foursquare-NYC" in PAGE
    assert all(one.gap.difference["mean"] <= 0 and one.gap.sign == 0 for one in given() if one.data == GOWALLA)
    assert "and nothing on Gowalla-California.**" in PAGE
    clean = mean(R.of("counting"), "clean", "clean")
    for leak in MOST:  # "almost all": all but a tenth
        assert found[NYC, leak].difference["mean"] < 0.1 * (clean - known(control(R, leak)).accuracy["mean"])
    assert "hides almost all that clean data would reveal about the next venue" in PAGE
    assert VICTIMS["counting"].knows_users
    assert R.study.seeds == 5


def test_the_default_misses_one_limit_by_less_than_a_right_guess() -> None:
    assert [met for *_, met in goals()] == [False, True, True, True, True, True]
    over = max(one.gap.difference["mean"] for one in given() if (one.data, one.leak) == (NYC, NO_LEAK)) - MOST[NO_LEAK]
    steps = known(near(R, "clean", "stay", "steps"))["mean"]
    assert 0 < over * steps < 1
    assert "misses its limit of .006, by less than one right guess in all test steps; the other limits are met." in PAGE


def test_not_above_the_limits_is_shown_where_the_page_says_so() -> None:
    shown = [at_most(one.gap, one.limit, SIGNIFICANCE / len(given())) for one in given()]
    assert shown == [False] * 2 + [True] * 6  # all but NYC without a leak
    assert f"for the {len(given())} rows" in PAGE


def test_the_bound_is_for_one_visit_at_a_time() -> None:
    for data in (NYC, GOWALLA):
        limits = json.loads((RESULTS / "data-facts.json").read_text("utf-8"))[data]["bound"]
        recovered = {
            adversary: fmean(study("frontier", data=data).measures(DEFAULT, adversary)["restored"])
            for adversary in ("posterior-no-leak", "posterior-informed-no-leak")
        }
        assert recovered["posterior-no-leak"] > limits["published_vulnerability"]
        assert recovered["posterior-informed-no-leak"] > limits["city_vulnerability"]
        assert max(recovered.values()) < limits["habits_vulnerability"]
    assert "that combines the visits of a person may exceed them, as A24 and A25 do." in PAGE


def test_every_adversary_on_the_default() -> None:
    everybody = {
        name for name, a in ADVERSARIES.items() if not (a.many_releases or a.needs_columns or a.needs_pseudonyms)
    }
    assert everybody - set(R.study.adversaries) == {
        "bridge-augmented",
        "bridge-natural",
    }  # only the reproduction has them
    assert known(strongest(R, DEFAULT, NO_LEAK))[1].adversary == "posterior-no-leak"
    assert (
        known(R.value(DEFAULT, "posterior-learned-no-leak"))["std"] == 0
    )  # no seed matters: the Transformer has no weight
    blind, among = ignore_users(R)
    for leak, told in ((NO_LEAK, "do worse than staying ({})"), (LEAK, "with a leak, worse than leak-stay ({})")):
        alone = known(blind.control(leak)).accuracy["mean"]
        assert known(blind.worst(DEFAULT, leak, among)).accuracy["mean"] < alone
        assert told.format(show(alone, 3)) in PAGE
    best, clean = far_moves_without_users()
    assert best.accuracy["mean"] <= clean["mean"] / 2


def test_no_row_is_below_what_needs_no_release() -> None:
    for r in (study("rivals"), study("constraints"), R, study("frontier", data=GOWALLA)):
        for method in (m for m in r.methods if r.worst(m)):
            for leak in MOST:
                assert known(r.worst_case(method, leak)).accuracy["mean"] >= known(r.control(leak)).accuracy["mean"]
    assert "No figure of a release is below what an adversary reaches without the release." in PAGE


def test_at_which_distance() -> None:
    share = "far_moves_within_1km"
    clean = known(near(R, "clean", "clean", share))["mean"]
    best = known(nearest(R, DEFAULT, share, NO_LEAK)).accuracy["mean"]
    for page in (PAGE, prose("../README.md")):
        assert f"{best / clean:.0%} as often as guesses from clean data" in page
    gowalla = study("frontier", data=GOWALLA)
    stay = known(near(gowalla, "clean", "stay", "within_1km"))["mean"]
    assert stay > known(near(gowalla, "clean", "clean", "within_1km"))["mean"]
    assert stay == known(nearest(gowalla, DEFAULT, "within_1km")).accuracy["mean"]


def test_equal_constraints() -> None:
    aware, blind, learned = study("rivals"), study("constraints"), study("learned")
    free = {m: known(gives_away(aware, m, NO_LEAK)).difference["mean"] for m in aware.methods}
    ghost, random, without = (f"{free[m] / free[DEFAULT]:.0f} times" for m in ("ghost", "random", ANY))
    assert f"without a leak, GHOST gives away {ghost} as much as the default; drawing at random from" in PAGE
    assert f"the same candidate sets gives away {random} as much. Without the category constraint," in PAGE
    assert f"GHOST still gives away {without} as much, at a smaller displacement." in PAGE
    assert mean(aware, ANY, "mean_km") < mean(aware, DEFAULT, "mean_km")
    for m in ("ghost", "pgd", "random", ANY, "pgd candidates.category=any", "random candidates.category=any"):
        assert [known(aware.worst(m, leak)).adversary for leak in MOST] == ["step-lengths", "hidden-markov"]
    assert known(aware.against(EXACT, DEFAULT, WITHOUT_LEAK)).sign == 1
    exact, any_km = (mean(aware, m, "mean_km") for m in (EXACT, DEFAULT))
    assert f"and move a visit {show(exact, 1)} km on average, against {show(any_km, 1)} km with the default." in PAGE
    for leak, most in MOST.items():
        assert known(gives_away(blind, "ghost", leak)).sign == 1
        assert at_most(known(gives_away(learned, ANY, leak)), most, SIGNIFICANCE / len(MOST))
    assert mean(blind, "ghost", "category_match") == 1 > mean(learned, ANY, "category_match")
    assert "with `any` category, it gives away less than the limits of the default" in PAGE


def test_learned_candidate_sets() -> None:
    facts = json.loads((RESULTS / "data-facts.json").read_text("utf-8"))[NYC]
    every, near, above = (facts["learned"][threshold] for threshold in ("-1", "0.6", "0.65"))
    by_category = facts["candidates"]["widened_below_6"]["visits_none"]
    assert threshold_for(facts["learned"]) == 0.6
    assert near["visits_none"] < by_category < above["visits_none"]
    assert f"than the category rule ({percent(by_category)})" in PAGE
    assert near["near_precision"] > 2 * every["near_precision"]
    assert near["draws_same_category"] > 2 * every["draws_same_category"]
    for row, key in (("the category", "draws_same_category"), ("explanation/crowd.md)", "draws_same_group")):
        assert f"{row} | {percent(near[key])} | {percent(every[key])}" in PAGE


def test_learned_sets_do_not_change_the_worst_case() -> None:
    r = study("learned")
    ghost, random = (known(r.against(f"{m} candidates.category=learned", m, WORST_CASE)) for m in ("ghost", "random"))
    assert ghost.sign == random.sign == 0
    assert f"worst case of GHOST ({show(ghost, 3)}) and of random ({show(random, 3)})." in PAGE


def test_other_victims() -> None:
    r = study("victims")
    names = [labels.number(a) for a in r.study.adversaries]
    assert f"worst case over {', '.join(names)} and leak-mixed, minus the victim's own leak-only" in PAGE
    for here in (r.of(victim) for victim in r.study.victims):
        assert all(mean(here, DEFAULT, WORST_CASE) < mean(here, m, WORST_CASE) for m in ("ghost", "random"))


def test_as_more_leaks() -> None:
    r = study("leaks")
    names = [labels.number(a) for a in r.study.adversaries]
    assert f"worst case over {', '.join(names)} and leak-mixed" in PAGE
    beyond = {
        m: [known(r.minus(m, WORST_CASE, "leak-stay", leak)).sign for leak in r.study.leak] for m in (DEFAULT, "ghost")
    }
    assert 1 not in beyond[DEFAULT]
    assert beyond["ghost"] == [1, 1, 1, 1]
    assert {known(r.against(DEFAULT, "ghost", WORST_CASE, leak)).sign for leak in r.study.leak} == {-1}


@pytest.mark.parametrize(
    ("method", "sign", "told"),
    [
        (DEFAULT, 0, "do not clearly help it against the default ({})"),
        ("random", 1, "clearly help it against random ({})"),
    ],
)
def test_several_releases(method: str, sign: int, told: str) -> None:
    more = known(study("releases").minus(method, "multi-release-4", "multi-release-1"))
    assert more.sign == sign
    assert told.format(show(more, 3)) in PAGE
