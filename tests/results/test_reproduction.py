"""The findings on the page of the reproduction follow from the results."""

import json
from collections import Counter
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from findings import prose, signs

from docs.blocks.claims import OF_TOKYO, summary
from docs.blocks.common import RESULTS, known, mains, mean, measured, study
from docs.blocks.reproduction import answers, favours, readings, seconds
from docs.rerun_levels import NEAR_CLEAN, NEAR_LEVELS, fits
from docs.rerun_levels import printed as table_iii
from docs.stamp_results import ROUNDING
from ghostpoi.attack.victims import victim_settings
from ghostpoi.study import labels, paper
from ghostpoi.study.labels import corrected, show
from ghostpoi.study.results import GOWALLA, NYC, PAPER_ADVERSARIES, TOKYO, WITHOUT_LEAK, WORST_CASE, Results

PAGE = prose("results/reproduction.md")
MAINS = pytest.mark.parametrize("r", mains(), ids=lambda r: f"{r.data}-{r.protocol}")
TEXT, TABLE_II = paper.section("nyc", "main"), paper.section("nyc", "plausibility")


def strong() -> Results:
    return study("main")


def weak() -> Results:
    return study("main", "paper")


@MAINS
def test_ghost_beats_neither_pgd_nor_random(r: Results) -> None:
    for rival in ("pgd", "random"):
        assert -1 not in signs(r, "ghost", rival, ["none", "frequency", "bigram"])
        assert signs(r, "ghost", rival, ["mean"]) == [-1]


def test_most_differences_are_clear_together() -> None:
    alone = [[known(r.against("ghost", rival, "mean")) for rival in ("pgd", "random")] for r in mains()]
    assert {gap.sign for row in alone for gap in row} == {-1}
    clear = [[gap.sign for gap in row] for row in corrected(alone)]
    assert {r.data: r.study.seeds for r in mains()} == {NYC: 10, GOWALLA: 10, TOKYO: 3}
    assert all(set(row) == {-1} for row, r in zip(clear, mains(), strict=True) if r.data != TOKYO)
    assert f"All {2 * len(clear)} differences of the table of Δmean are below 0" in PAGE
    assert f"{sum(row.count(-1) for row in clear)} stay clear; the other three are of Tokyo" in PAGE


def test_ghost_beats_random_where_adversaries_know_the_rule() -> None:
    r = study("constraints")
    assert signs(r, "ghost", "random", [WORST_CASE, WITHOUT_LEAK]) == [0, -1]
    assert known(r.against("ghost", "random", WORST_CASE)).difference["mean"] < 0
    assert signs(r, "ghost", "pgd", [WORST_CASE, WITHOUT_LEAK]) == [0, 0]
    assert r.data == NYC
    assert "GHOST protects better than `random` if nothing has leaked; the other differences are not clear.**" in PAGE
    restored = [known(r.measures(m, "step-lengths"))["restored"] for m in ("random", "ghost")]
    random, ghost = (sum(seeds) / len(seeds) for seeds in restored)
    assert f"A14 restores {random:.0%} of the positions of random and {ghost:.0%} of those of GHOST" in PAGE


def test_our_two_forms_of_ts_ue() -> None:
    r = strong()
    calibrated, plain = (mean(r, m, "substitution_rate") for m in ("ts-ue-calibrated", "ts-ue"))
    printed = TABLE_II["ts-ue"]["substitution_rate"][0]
    assert abs(calibrated - printed) < 0.02
    assert f"substitutes {calibrated:.1%} of NYC's check-ins (printed: {printed:.1%})" in PAGE
    assert f"in the tables below, substitutes {plain:.1%}." in PAGE
    accuracy, natural = mean(r, "ts-ue", "none"), mean(r, "ts-ue", "naturalness")
    assert plain < 0.1
    assert accuracy > 0.9 * mean(r, "clean", "clean")
    assert natural > mean(r, "ghost", "naturalness")
    assert f"hardly protects (A1 {show(accuracy)}) and looks more natural than GHOST ({show(natural, 2)})" in PAGE


@pytest.mark.parametrize("data", measured("main"))
@pytest.mark.parametrize("key", ["none", "naturalness"])
def test_naturalness_and_accuracy_rise_with_the_manifold_term(data: str, key: str) -> None:
    without, some, much = (mean(study("main", data=data), m, key) for m in ("ghost-ef", "ghost", "ghost-sym"))
    assert without < some < much


def test_few_methods_are_clearly_better_than_random() -> None:
    count, rows = favours()
    methods = len(strong().methods) - 1
    assert f"We compared {methods} methods with random, in 3 cities and 2 protocols." in PAGE
    assert count == methods * len(PAPER_ADVERSARIES) * len(mains())
    assert f"Of these {count} differences, {len(rows)} are clearly in the method's favour:" in PAGE


def test_a_small_survival_gap_is_no_resistance() -> None:
    more = Counter[str]()
    for data in measured("leak"):
        r = study("leak", data=data)
        assert known(r.against("ghost", "pgd", "none")).difference["mean"] > 0
        for leak in r.study.leak:
            assert known(r.against("ghost", "pgd", "surv_frequency", leak)).difference["mean"] < 0
            more[data] += known(r.against("ghost", "pgd", "frequency", leak)).difference["mean"] > 0
    assert [*more] == [NYC, TOKYO, GOWALLA]
    nyc, *others = more.values()
    assert others == [3, 3]
    assert f"at {nyc} of 4 leak ratios on Foursquare-NYC and at 3 of 4 in each of the other cities" in PAGE


def test_the_papers_pgd_is_weaker_than_ours() -> None:
    ghost, pgd, random = (mean(weak(), m, "none") for m in ("ghost", "pgd", "random"))
    assert abs(TEXT["ghost"]["none"][0] - ghost) < 0.004
    assert TEXT["pgd"]["none"][0] - pgd > 0.004
    assert (
        f"we reproduce GHOST's A1 ({show(ghost)}, printed {show(TEXT['ghost']['none'][0])}), but PGD leaves "
        f"{show(pgd)} instead of the printed {show(TEXT['pgd']['none'][0])}, and random leaves {show(random)}."
    ) in PAGE


def test_a2_is_worse_than_no_denoising() -> None:
    gaps = [known(r.minus("ghost", "bridge", "leak-mixed")).difference for r in (strong(), weak())]
    assert all(gap["mean"] < 0 for gap in gaps)
    assert f"A2 minus A2 without denoising (leak-mixed) is {show(gaps[0])} on NYC" in PAGE


def test_a1_is_below_a_trivial_guess() -> None:
    stay = known(strong().floor("stay"))
    assert all(stay > TEXT[m]["none"][0] for m in ("ghost", "pgd", "em", "ts-ue"))
    assert f'"People stay where they are" is right for {show(stay)} of all steps on NYC' in PAGE
    cases = [known(r.floor("stay")) > mean(r, m, "none") for r in mains() for m in r.methods]
    assert f"In all, this guess also beats our A1 in {sum(cases)} of {len(cases)} cases" in PAGE
    assert f"({len(strong().methods)} releases, three cities, two protocols)" in PAGE


def test_protocols() -> None:
    (own, own_training), (tied, tied_training) = victim_settings("strong"), victim_settings("paper")
    assert (own_training.epochs, own_training.patience, own.tied) == (60, 5, False)
    assert (tied_training.epochs, tied.tied) == (4, True)
    assert own.dropout == tied.dropout == 0.2
    clean = [known(r.value("clean", "clean")) for r in (strong(), weak())]
    printed = TEXT["ghost"]["clean"][0]
    assert f"|`strong`|{show(clean[0])}|own output matrix, up to 60 epochs, stops after 5 without gain|" in PAGE
    told = f"|`paper`|{show(clean[1])}|output tied to the embeddings, 4 epochs: matches the printed {show(printed)}|"
    assert told in PAGE
    assert abs(clean[1]["mean"] - printed) < 0.006


@MAINS
def test_all_methods_keep_the_category(r: Results) -> None:
    assert {mean(r, m, "category_match") for m in r.methods} == {1.0}


def test_equal_substitution_rates_under_paper() -> None:
    [rate] = {show(mean(weak(), m, "substitution_rate")) for m in ("ghost", "pgd", "em")}
    printed = {TABLE_II[m]["substitution_rate"][0] for m in ("ghost", "pgd", "em")}
    assert printed == {0.861}
    assert f"GHOST, PGD and EM substitute {rate} of NYC's check-ins, the printed .861:" in PAGE


def test_no_reading_explains_table_iii() -> None:
    text = paper.section("nyc", "naturalness")
    for m in ("ghost", "pgd", "em", "ts-ue"):
        assert mean(strong(), m, "naturalness") > text[m]["naturalness"][0]
    table = table_iii(without=["ts-ue"])
    read = {p: json.loads((RESULTS / f"levels-{p}.json").read_text("utf-8"))["rows"] for p in ("strong", "paper")}
    for rows in read.values():
        assert not [row["name"] for row in rows if all(fits(row["values"], table).values())]
    assert f"We tried {len(read['strong'])} readings of the paper" in PAGE
    distances = {row["name"]: max(abs(row["values"][k] - v) for k, v in table.items()) for row in read["strong"]}
    nearest = min(distances, key=lambda name: distances[name])
    assert f'The nearest, "{nearest}", deviates by up to {show(distances[nearest], 2)}.' in PAGE


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"clean": True, "levels": True, "order": True}),
        ({"clean": -4.5}, {"clean": False, "levels": True, "order": True}),
        ({"ghost": -7.1}, {"clean": True, "levels": False, "order": True}),
        ({"pgd": -10.0}, {"clean": True, "levels": True, "order": False}),
    ],
)
def test_what_a_reading_explains(changed: dict[str, float], expected: dict[str, bool]) -> None:
    printed = {"clean": -3.8, "ghost": -10.0, "pgd": -10.4, "em": -10.1}
    found = {"clean": -3.7, "ghost": -9.9, "em": -10.2, "pgd": -10.3, "random": -11.0}
    assert fits(found | changed, printed) == expected
    assert NEAR_CLEAN < NEAR_LEVELS


def test_candidate_sets_and_speeds() -> None:
    facts = json.loads((RESULTS / "data-facts.json").read_text("utf-8"))[NYC]
    six, four = (facts["candidates"][f"widened_below_{n}"] for n in (6, 4))
    assert f"mean size 7.3 needs a limit of 6 ({six['mean_size']:.1f}); 4 gives {four['mean_size']:.1f}|" in PAGE
    assert f"|{six['share_few']:.1%} have; {six['share_none']:.1%} have none|" in PAGE
    fast, clean = mean(weak(), "ghost", "speed_violations_released"), facts["over_speed_limit"]["share"]
    assert f"|{fast:.1%} of GHOST's steps are (ours, `paper`; clean: {clean:.1%})|" in PAGE


def test_last_steps_and_markov_models() -> None:
    last = replace(strong(), part="last")
    clean = mean(last, "clean", "clean")
    ghost, pgd, random = (mean(last, m, "none") for m in ("ghost", "pgd", "random"))
    assert f"under A1: clean {show(clean)}, GHOST {show(ghost)}, PGD {show(pgd)}, random {show(random)}." in PAGE
    assert ghost > pgd  # as over all steps
    counting = mean(study("victims").of("markov"), "clean", "clean")
    assert f"then the other venues by popularity ({show(strong().floor('markov'))} on NYC)" in PAGE
    assert f"and one step earlier ({show(counting)})." in PAGE


def test_no_method_depends_on_what_the_paper_leaves_open() -> None:
    r = study("surrogate", "paper").measured
    changed = [m for m in r.methods if " " in m]
    assert changed
    assert {known(r.against(m, m.split()[0], "none")).sign for m in changed} == {0}


def test_costs() -> None:
    shares = json.loads((RESULTS / "bench-scoring.json").read_text("utf-8"))["manifold_shares"]
    added = [share / (1 - share) for share in shares]  # of a pass without the term: the paper's own terms
    low, high = paper.contents()["claims"]["manifold_overhead"]
    assert (
        f"makes a scoring pass {median(added):.1%} longer, or between {min(added):.1%} and {max(added):.1%} longer in "
        f"single runs (paper: {100 * low:.0f} to {100 * high:.0f}%;"
    ) in PAGE
    hardware = paper.contents()["claims"]["hardware"]
    assert f"on NYC took {seconds(strong()) / 60:.1f} minutes under `strong` (paper: less than a day" in PAGE
    assert f"for two cities on {hardware})" in PAGE


def test_future_work() -> None:
    r, several = study("constraints"), known(study("releases").minus("ghost", "multi-release-4", "multi-release-1"))
    ports = ", ".join(f"{labels.method(m)}: A1 {show(strong().value(m, 'none'))}"
                      for m in ("robust-ue", "transferable-ue"))  # fmt: skip
    assert f"`robust-ue`, `transferable-ue`|{ports}|" in PAGE
    assert f"a categorical bridge on leaked pairs|GHOST {show(r.value('ghost', 'paired-bridge'))}|" in PAGE
    assert f"which know the rule|GHOST {show(r.worst('ghost'))}|" in PAGE
    assert f"A11 with 1, 2 and 4 releases|GHOST {show(several)} (4 minus 1)|" in PAGE


def test_the_table_that_answers_first() -> None:
    rows = [line.strip("|").split("|") for line in answers().splitlines()[2:]]
    worse = ["no, worse", "no, worse"]
    knowing = [["not clearly / not clearly", "not clearly / **yes**"], *[["not measured"] * 2] * 2]
    assert [row[1:] for row in rows] == [worse + those for those in knowing]
    assert [row[0] for row in rows] == ["Foursquare-NYC", "Foursquare-TKY, order only", "Gowalla-CA"]


def test_the_claims_on_tokyo_fail() -> None:
    assert [outcome for *_, outcome in summary(OF_TOKYO, [TOKYO])] == [
        "**No**", "**No**, clearly not the lowest in 1 of 2", "**No**", "**No**, clearly not the lowest in 1 of 2",
        "**No**, clearly reversed in 2 of 2",
    ]  # fmt: skip


def test_no_reading_explains_the_printed_rows() -> None:
    rows = {row[0]: float(row[-1]) for line in readings().splitlines()[2:-1] if (row := line.strip("|").split("|"))}
    nearest, one_map = sorted(rows, key=lambda name: rows[name])[:2]
    assert nearest == 'one round: the surrogate is not trained again; "argmin"'
    assert one_map == "one map: a venue always gets its most frequent substitute"
    assert f"The nearest, {show(rows[nearest])} away on average" in PAGE
    assert f"one map per venue, {show(rows[one_map])} away" in PAGE
    methods = ("pgd", "em", "ts-ue-calibrated")
    spreads = [known(weak().value(m, a))["std"] for m in methods for a in PAPER_ADVERSARIES]
    assert rows[nearest] > 2 * median(spreads)


def test_the_purifiers_of_the_outlook_do_not_help() -> None:
    r = study("purifiers")
    names = ("bridge", "bridge-augmented", "bridge-natural")
    for m in r.methods:
        assert all(known(r.minus(m, name, "bridge")).sign < 1 for name in names[1:])
        assert max(mean(r, m, name) for name in names) < mean(study("main"), m, "frequency")
    assert all(mean(r, "ghost", name) < mean(r, "ghost", "leak-mixed") for name in names)
    two, augmented = (known(r.measures("ghost", name))["restored"] for name in names[:2])
    told = f"({sum(augmented) / 3:.0%}, against {sum(two) / 3:.0%})"
    assert f"A27 restores more positions of GHOST than A2 does {told}, but its victims learn no more." in PAGE


def test_ten_cells_agree_when_measured_again() -> None:
    """Nine of ten within two standard errors, all within three."""
    found = json.loads((RESULTS / "agreement.json").read_text("utf-8"))
    errors = [error_of(value) for one in found for value in one["headlines"].values()]
    assert sum(one["agrees"] for one in found) >= 0.9 * len(found)
    assert max(errors) <= 3
    assert f"{sum(one['agrees'] for one in found)} of {len(found)} random cells" in PAGE


def error_of(value: dict[str, Any]) -> float:
    """How many standard errors the same seeds differ by when measured again; kernels may round differently."""
    old, new = (sum(value[key]) / len(value[key]) for key in ("stored", "measured"))
    left = max(0.0, abs(old - new) - ROUNDING * abs(old))
    return left / (value["std"] / len(value["stored"]) ** 0.5) if left else 0.0


def test_flashback_learns_little_from_a_release() -> None:
    found = json.loads((RESULTS / "flashback.json").read_text("utf-8"))
    top = {run["trained_on"]: run["recall@1"] for run in found["runs"]}
    released = [top[name] for name in ("random", "ghost", "crowd")]
    assert max(released) < found["stay"] < top["clean"]
    assert f"falls to between {min(released):.3f} and {max(released):.3f},".replace("0.", ".") in PAGE
    assert {(run["epochs"], run["batch"], run["users"]) for run in found["runs"]} == {(15, 100, 197)}
    assert "15 epochs (Flashback's default is 100), batches of 100 users (200), and the 197 users" in PAGE
