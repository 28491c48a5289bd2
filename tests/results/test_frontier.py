"""The findings on the page about protection against usefulness follow from the results."""

import json

import pytest
from findings import prose, signs

from docs.blocks.common import RESULTS, known, mean, study
from docs.blocks.frontier import DEFAULT, SESSION, default_and_limits, instead, percent, safe, settings
from docs.rerun_facts import threshold_for
from ghostpoi.audits.measures.gaps import PRACTICAL, Verdict, against
from ghostpoi.study import labels
from ghostpoi.study.labels import show
from ghostpoi.study.results import NYC, WITHOUT_LEAK, WORST_CASE

PAGE = prose("results/frontier.md")
WORDS = {1: "clearly above", 0: "not clearly different from", -1: "clearly below"}
R = study("frontier")


def than_default(method: str, key: str) -> int:
    return known(R.against(method, DEFAULT, key)).sign


def test_the_default_meets_most_limits() -> None:
    met = [met for *_, met in default_and_limits(R)]
    told = f"meets {sum(met)} of {len(met)} limits that we had set and misses {len(met) - sum(met)}.**"
    assert f"**The default `crowd` {told}" in PAGE


def test_what_the_default_keeps() -> None:
    assert signs(R, DEFAULT, "ghost", ["mean_km", "popularity", WORST_CASE]) == [-1] * 3
    assert signs(R, DEFAULT, "ghost", ["flows"]) == [1]
    km, ghost_km, flows, ghost_flows = (mean(R, m, key) for key in ("mean_km", "flows") for m in (DEFAULT, "ghost"))
    assert (
        f"It moves a check-in {show(km, 1)} km on average (GHOST {show(ghost_km, 1)} km) and keeps {show(flows, 2)} of "
        f"the flows (GHOST {show(ghost_flows, 2)})"
    ) in PAGE
    assert mean(R, DEFAULT, "popularity") < 0.03
    assert f"**: {1 - mean(R, DEFAULT, 'category_match'):.0%} of the substitutes have another one." in PAGE
    assert f"hour of the day change by {show(mean(R, DEFAULT, 'category_hour'), 3)} bits (JS)." in PAGE


def test_controls() -> None:
    assert f"The strongest of {len(R.attackers(DEFAULT))} adversaries reaches:" in PAGE
    alone, stay, clean = (show(R.value("clean", key), 3) for key in ("leak-only", "leak-stay", "clean"))
    assert f"The leaked sessions alone give {alone} (leak-only)." in PAGE
    assert f"they give {stay} (leak-stay)." in PAGE
    assert f"stay where they are gives {show(R.floor('stay'), 3)} without any data. Clean data give {clean}." in PAGE
    assert {str(cell["seeds"]) for cell in R.cells} == {"[0, 1, 2]"}
    assert R.city == "nyc"


def test_nothing_shows_that_the_release_adds_to_the_leak() -> None:
    beyond = known(R.minus(DEFAULT, WORST_CASE, "leak-stay"))
    assert beyond.sign < 1
    assert f"The default's worst case is {WORDS[beyond.sign]} leak-stay ({show(beyond, 3)}): nothing shows" in PAGE
    making = ("distilled", "relink-distilled", "distilled-release")
    best = known(R.worst(DEFAULT, among=[a for a in R.study.adversaries if a not in making]))
    above = against(best.accuracy["seeds"], R.series("clean", "leak-only"), least=PRACTICAL)
    assert f"that does reaches {show(best, 3)}, which is leak-only {show(above, 3)}." in PAGE


def test_without_a_leak() -> None:
    assert DEFAULT in safe(R)
    ours, ghost = (show(R.on_moves.without_leak(m), 3) for m in (DEFAULT, "ghost"))
    told = f"the strongest adversary without a leak reaches {ours} against the default and {ghost} against GHOST."
    assert f"{told} Clean data give {show(R.on_moves.value('clean', 'clean'), 3)}." in PAGE
    assert R.best_floor == "stay"
    assert known(R.minus(DEFAULT, WITHOUT_LEAK, "best floor")).sign < 1


def test_a15_and_a7() -> None:
    gains: list[Verdict] = [
        known(against(r.series(m, "session-habits"), r.series(m, "habits"), least=PRACTICAL))
        for r in (R, study("learned"))
        for m in r.methods
    ]
    up, down = (sum(gain.sign == sign for gain in gains) for sign in (1, -1))
    assert down == 0
    assert f"stronger than A7 against {up} of {len(gains)} releases on this page" in PAGE
    assert f"at most {show(max(-gain.difference['mean'] for gain in gains), 3)} lower on any release" in PAGE


def test_pseudonyms_do_not_clearly_lower_the_worst_case() -> None:
    assert than_default(DEFAULT + SESSION, WORST_CASE) > -1
    assert "Pseudonyms do not clearly lower the default's worst case." in PAGE


def test_what_a_user_would_pick_instead() -> None:
    found = {m: than_default(m, WORST_CASE) for m in instead(R)}
    assert -1 not in found.values()
    [above] = [labels.method(m) for m, sign in found.items() if sign == 1]
    assert f"worst case than the default. {above[0].upper()}{above[1:]} has a clearly higher one." in PAGE


def test_settings_of_crowd() -> None:
    worst = {m: than_default(m, WORST_CASE) for m in settings(R)}
    assert -1 not in worst.values()
    assert [m for m, sign in worst.items() if sign == 1] == ["crowd-halves method.category=exact"]
    assert signs(R, "crowd-halves method.category=exact", DEFAULT, [WORST_CASE, "mean_km"]) == [1, 1]
    better = [labels.method(m) for m in settings(R) if than_default(m, "flows") == 1]
    changed = [name.removeprefix("crowd (halves, ").removesuffix(")") for name in better]
    assert changed == ["size=8, reach km=3", "category=exact, draw=even, size=8, reach km=3"]
    inside = [f"`{name}`" for name in changed]
    assert f"better with two settings: {inside[0]}, and {inside[1]}." in PAGE


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
    assert f"minus the victim's own leak-only, over {', '.join(names)} and leak-mixed" in PAGE
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
    here, above = known(r.worst("ghost", 0.05)).accuracy, known(R.worst("ghost")).accuracy
    assert 0 < abs(here["mean"] - above["mean"]) < above["std"]  # releases are newer there


@pytest.mark.parametrize(
    ("method", "sign", "told"),
    [(DEFAULT, 0, "do not clearly help it against crowd ({})"), ("random", 1, "clearly help it against random ({})")],
)
def test_several_releases(method: str, sign: int, told: str) -> None:
    more = known(study("releases").minus(method, "multi-release-4", "multi-release-1"))
    assert more.sign == sign
    assert told.format(show(more, 3)) in PAGE
