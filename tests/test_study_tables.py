"""Tables and figures of studies from fabricated cells, with values computed by hand."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import ghostpoi
from fake_results import Fabricated
from typer.testing import CliRunner

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.cli import app
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.study import claim_checks, day_map, figures, labels, paper, plan
from ghostpoi.study.labels import NONE, show
from ghostpoi.study.results import Results
from ghostpoi.study.tables import Table, tables

ROTATED = "crowd identity.pseudonyms=session"
STEPS = [-0.001, 0.0, 0.001]


def around(mean: float) -> list[float]:
    """Three seeds with the same steps everywhere, so that the difference of two series has no spread."""
    return [mean + step for step in STEPS]


def row(table: Table, *first: str) -> dict[str, str]:
    """A row by how it begins."""
    (found,) = [r for r in table.rows if r[: len(first)] == first]
    return dict(zip(table.columns, found, strict=True))


def made(*found: Results) -> dict[str, Table]:
    """All tables by the beginning of their titles, those of Tokyo marked."""
    return {re.split(r"[:,(]", t.title)[0].strip() + (" TKY" if "TKY" in t.title else ""): t for t in tables(found)}


@pytest.fixture
def main(tmp_path: Path) -> Fabricated:
    """The main study: clean .14, PGD and random beside GHOST, the other methods missing."""
    cells = Fabricated(tmp_path)
    cells.accuracy("clean", "clean", [0.13, 0.14, 0.15])
    cells.accuracy("clean", "leak-only", [0.03, 0.03, 0.03], 0.05)
    cells.method("ghost", [0.05, 0.06, 0.07])
    cells.method("pgd", [0.06, 0.06, 0.06])
    cells.method("random", [0.05, 0.06, 0.07])
    plausibility = {"substitution_rate": [0.8] * 3, "category_match": [1.0] * 3, "beyond_1km": [0.5, 0.6, 0.7]}
    plausibility |= {"mean_km": [1.0, 2.0, 3.0], "p95_km": [4.0] * 3}
    plausibility |= {"speed_violations_clean": [0.01] * 3, "speed_violations_released": [0.02] * 3}
    for method, natural in (("ghost", -10.0), ("random", -9.0)):
        cells.release(method, plausibility=plausibility, naturalness=[natural] * 3, clean_naturalness=[-4.0] * 3)
    markov = {"ghost": [0.01, 0.02, 0.03], "random": [0.01] * 3}
    cells.floors(markov, popularity={"acc@1": 0.01}, markov={"acc@1": 0.18})
    return cells


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("clean", ".1400±.0100"),
        ("A1 as released", ".0600±.0100"),
        ("A4 bigram table", ".0900±.0100"),
        ("Δprot", ".0800±.0000"),  # .08 for each seed: the seeds of clean and release move together
        ("Δsurv A2", ".0100±.0000"),
        ("Δsurv A3", ".0200±.0000"),
        ("Δmean", ".0700±.0000"),
        ("Δworst", ".0600±.0000"),
        ("leak-mixed", ".0650±.0100"),
        ("Markov", ".0200±.0100"),
    ],
)
def test_table_one(main: Fabricated, column: str, expected: str) -> None:
    assert row(made(main.results())["Table I"], "GHOST", "paper")[column] == expected


def test_printed_numbers_stand_below_ours(main: Fabricated) -> None:
    table = made(main.results())["Table I"]
    assert row(table, "PGD", "paper")["Δprot"] == ".0800±.0100"
    printed = row(table, "PGD", "printed")
    assert (printed["Δsurv A3"], printed["leak-mixed"]) == (".0161±.0032", NONE)
    assert table.rows[-1][0] == "random (control)"


def test_what_is_missing_is_a_dash(main: Fabricated) -> None:
    found = made(main.results())
    assert row(found["Table I"], "EM (score=likelihood)", "paper")["Δprot"] == NONE
    assert row(found["Table I"], "PGD", "paper")["Markov"] == NONE
    tokyo = found["Table I TKY"]
    assert {r[1] for r in tokyo.rows} == {"printed"}
    assert row(tokyo, "EM", "printed")["A4 bigram table"] == ".1112±.0037"


def test_plausibility_and_naturalness(main: Fabricated) -> None:
    found = made(main.results())
    assert row(found["Table II"], "GHOST", "paper")["mean km"] == "2.000±1.000"
    assert row(found["Table II"], "TS-UE", "printed")["substituted"] == ".7490"
    naturalness = "naturalness (mean log p)"
    assert row(found["Table III"], "clean (reference)", "paper")[naturalness] == "-4.0000±.0000"
    assert row(found["Table III"], "clean (reference)", "printed")[naturalness] == "-3.8272"


def test_controls(main: Fabricated) -> None:
    assert made(main.results())["Controls"].rows == (
        ("clean victim (ceiling)", ".1400±.0100", ".0000±.0000"),
        ("leak-only, 5%", ".0300±.0000", ".1100±.0100"),
        ("popularity floor", ".0100", ".1300±.0100"),
        ("stay floor", NONE, NONE),
        ("Markov, clean sessions", ".1800", "-.0400±.0100"),
    )


def test_the_best_floor_stands_in_every_table_of_accuracies(main: Fabricated, tmp_path: Path) -> None:
    assert "best floor" not in made(main.results())["Table I"].columns  # cells of earlier versions lack stay
    main.floors(
        {},
        popularity={"acc@1": 0.01, "acc@1_moves": 0.011},
        stay={"acc@1": 0.07, "acc@1_moves": 0.0},
        markov={"acc@1": 0.18, "acc@1_moves": 0.17},
    )
    found = made(main.results())
    assert row(found["Table I"], "GHOST", "paper")["best floor"] == ".0700±.0000"
    assert row(found["Table I"], "PGD", "printed")["best floor"] == NONE
    assert found["Controls"].columns == ("control", "acc@1", "below clean by", "on moves")
    assert ("stay floor", ".0700", ".0700±.0100", ".0000") in found["Controls"].rows
    results = main.results()
    assert (results.best_floor, results.on_moves.best_floor) == ("stay", "popularity")
    figure = figures.FIGURES["main"][1](results)
    assert "best floor" in figure.axes[0].get_legend_handles_labels()[1]
    plt.close(figure)


def test_accuracy_on_moves_stands_beside_accuracy_on_all(frontier: Fabricated) -> None:
    assert not [t for t in tables([frontier.results()]) if "moves" in t.title + t.columns[-1]]
    moved = {"acc@1": [0.05] * 3}
    frontier.accuracy("clean", "clean", around(0.19), moves={"acc@1": around(0.18)})
    frontier.accuracy("ghost", "habits+leak", around(0.14), 0.05, moves=moved)
    found = made(frontier.results())
    on_moves = row(found["Accuracy on moves"], "GHOST")
    assert (on_moves[labels.heading("habits+leak")], on_moves["clean"]) == (".0500±.0000", ".1800±.0010")
    assert on_moves[labels.heading("none")] == NONE
    worst = row(found["What a release keeps and gives away"], "GHOST")
    assert (worst["worst case"], worst["worst case on moves"]) == (".140±.001 (A8)", ".050±.000")


def test_both_protocols_in_one_table(main: Fabricated) -> None:
    strong = Fabricated(main.folder, protocol="strong")
    strong.accuracy("clean", "clean", [0.2] * 3)
    table = made(strong.results(), main.results())["Table I"]
    assert table.title.endswith("(Foursquare-NYC, protocols strong and paper)")
    assert [row(table, "GHOST", source)["clean"] for source in ("strong", "paper", "printed")] == [
        ".2000±.0000",
        ".1400±.0100",
        ".1379±.0009",
    ]


def test_sweeps_name_the_default(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, "entropy")
    cells.accuracy("clean", "clean", [0.14] * 3)
    cells.method("ghost", [0.06] * 3)
    cells.method("ghost method.eta=1.0", [0.07] * 3)
    table = made(cells.results())["Table VI"]
    assert row(table, "GHOST (η=0)", "printed")["Δprot"] == ".0837"
    assert row(table, "GHOST (η=1)", "paper")["Δworst"] == ".0500±.0000"


def test_leak_table(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, "leak")
    cells.accuracy("clean", "clean", [0.14] * 3)
    cells.accuracy("clean", "leak-only", [0.08] * 3, 0.1)
    cells.method("ghost", [0.06] * 3, 0.1)
    table = made(cells.results())["Leak figure"]
    ours = row(table, "10% GHOST", "paper")
    assert (ours["Δsurv A2"], ours["leak-only"]) == (".0100±.0000", ".0800±.0000")
    assert row(table, "10% GHOST", "printed")["Δsurv A2"] == ".0323"


@pytest.mark.parametrize(
    ("study", "count", "column", "expected"),
    [
        ("surrogate", 3, "A1 minus plain", (NONE, "-.0200±.0010↓", NONE)),
        ("seeds", 30, "A1 minus random", ("+.0050±.0004↑", NONE)),
    ],
)
def test_rows_against_their_rivals(
    tmp_path: Path, study: str, count: int, column: str, expected: tuple[str, ...]
) -> None:
    cells, times = Fabricated(tmp_path, study, seeds=count), count // 3
    cells.accuracy("clean", "clean", [0.14] * count)
    changed = "ts-ue surrogate.start=0.1"
    series = {"random": [0.05] * 3, changed: [0.0345, 0.035, 0.0355], "ts-ue": [0.0555, 0.055, 0.0545]}
    for method, values in series.items():
        cells.method(method, values * times)
    cells.release("ts-ue", plausibility={"p95_km": [4.6] * 3})
    table = tables([cells.results()])[0]
    ours = [r for r in table.rows if r[1] == "paper" and r[0].startswith(("TS-UE", "random")) and r[6] != NONE]
    assert tuple(r[table.columns.index(column)] for r in ours) == expected
    assert ours[0][table.columns.index("P95 km")] == "4.600±.000"
    assert row(table, ours[0][0], "printed")["A1 as released"] == ".0575±.0020"
    if study == "surrogate":  # variants follow their method, the plain one with its own values
        assert [r[0] for r in ours] == [
            "TS-UE (start=0.02, dropout=0.2, feed-forward=256, clip=1)",
            "TS-UE (start=0.1)",
            "random (control)",
        ]


def test_data_of_another_city(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, data="synthetic")
    cells.accuracy("clean", "clean", [0.14] * 3)
    title = tables([cells.results()])[0].title
    assert "(synthetic, which is not the paper's Foursquare-NYC, protocol paper)" in title
    cells = Fabricated(tmp_path / "tky", data="TKY")
    cells.accuracy("clean", "clean", [0.14] * 3)
    found = made(cells.results())
    assert {r[1] for r in found["Table I"].rows} == {"printed"}
    assert row(found["Table I TKY"], "GHOST", "paper")["clean"] == ".1400±.0000"


@pytest.fixture
def frontier(tmp_path: Path) -> Fabricated:
    """A9 is the strongest against crowd, A8 against GHOST and random; all others restore half as much."""
    cells = Fabricated(tmp_path, "frontier", "strong")
    cells.accuracy("clean", "clean", around(0.19))
    cells.accuracy("clean", "leak-only", around(0.05), 0.05)
    for method, most in {"ghost": 0.11, "crowd": 0.07, ROTATED: 0.06, "random": 0.14}.items():
        for name in plan.load("frontier").attackers(method):
            top = "hidden-markov" if method == "crowd" else "habits+leak"
            leak = 0.05 if ADVERSARIES[name].uses_leak else None
            acc = around(most if name == top else most / 2)
            cells.accuracy(method, name, acc, leak, restored=[0.2, 0.3, 0.4])
        cells.accuracy(method, "leak-mixed", around(0.055), 0.05)
        gyration = {"mean_km_before": [4.0] * 3, "mean_km_after": around(5.0 if method == "random" else 4.5)}
        flows = around(0.43 if method == "random" else 0.40)
        cells.release(
            method, naturalness=around(-7.5 if method == "ghost" else -8.4), clean_naturalness=[-4.0] * 3,
            utility={
                "popularity": {"poi_js": [0.15] * 3}, "flows": {"common_part": flows}, "gyration": gyration,
                "hours": {"category_hour_js": [0.3] * 3},
            },
            plausibility={
                "substitution_rate": [0.7 if method == "random" else 0.8] * 3, "mean_km": [1.0, 1.5, 2.0],
                "category_match": [1.0 if method != "crowd" else 0.05] * 3,
            },
            detector={"auc": [0.9 if method == "ghost" else 0.8] * 3},
        )  # fmt: skip
    return cells


def test_what_a_release_keeps_and_gives_away(frontier: Fabricated) -> None:
    found = made(frontier.results())
    ghost = row(found["Accuracy"], "GHOST")
    assert (ghost["A7 user habits"], ghost["leak-mixed"], ghost["clean"]) == (
        ".0550±.0010",
        ".0550±.0010",
        ".1900±.0010",
    )
    assert found["Accuracy"].rows[-1][0] == "random (control)"
    table = found["What a release keeps and gives away"]
    assert row(table, "GHOST") == {
        "method": "GHOST", "mean km": "1.500±.500", "substituted": ".800±.000", "common part of flows": ".400±.001",
        "popularity (JS, bits)": ".150±.000", "category kept": "1.000±.000", "category by hour (JS, bits)": ".300±.000",
        "naturalness (mean log p)": "-7.500±.001", "A1 as released": ".055±.001", "without leak": ".055±.001 (A1)",
        "worst case": ".110±.001 (A8)", "minus leak-only": "+.060±.000↑",
    }  # fmt: skip
    assert row(table, "crowd")["worst case"] == ".070±.001 (A9)"
    assert row(table, "crowd (pseudonyms=session)")["minus leak-only"] == "+.010±.000↑"
    assert row(table, "crowd (category=group)")["worst case"] == NONE
    assert row(found["Recovered share of positions"], "GHOST")["A10 paired bridge"] == ".300±.100"


def test_the_release_without_any_adversary_can_be_the_worst_case(frontier: Fabricated) -> None:
    frontier.accuracy("crowd", "leak-mixed", around(0.08), 0.05)
    frontier.floors({}, popularity={"acc@1": 0.01}, stay={"acc@1": 0.03}, markov={"acc@1": 0.18})
    crowd = row(made(frontier.results())["What a release keeps and gives away"], "crowd")
    assert crowd["worst case"] == ".080±.001 (leak-mixed)"
    assert (crowd["without leak"], crowd["minus best floor"]) == (".035±.001 (A1)", "+.005±.001↑")


def test_who_needs_pseudonyms_attacks_only_pseudonyms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relinks = type("Relinks", (Guess,), {"needs_pseudonyms": True})
    monkeypatch.setitem(ADVERSARIES.builtin, "relinks", relinks())
    study = plan.load("frontier")
    assert study.adversaries[-1] == "relinks"  # a plan for all adversaries has every new one
    assert "multi-release" not in study.adversaries
    assert "relinks" in study.attackers("crowd identity.pseudonyms=session")
    assert "relinks" not in study.attackers("crowd")
    missing = claim_checks.complete(Results.read(tmp_path, "frontier", "strong"))
    rotated = sum(variant.rotated for variant in study.methods)
    only = [name for name in study.adversaries if ADVERSARIES[name].needs_pseudonyms]
    count = len(study.methods) * (len(study.adversaries) - len(only) + 4) + rotated * len(only)
    assert missing.text.startswith(f"no cell is missing: {count} are")


def test_cells_from_before_pseudonyms_still_count() -> None:
    kept, rotated = (plan.Variant(text).recorded("strong") for text in ("ghost", "ghost identity.pseudonyms=session"))
    assert "identity" not in kept
    assert rotated["identity"] == {"pseudonyms": "session"}


def test_measures_of_the_release(frontier: Fabricated) -> None:
    table = made(frontier.results())["The release itself"]
    assert [r[0] for r in table.rows[:2]] == ["clean (reference)", "random (control)"]
    assert row(table, "clean (reference)")["radius of gyration, km"] == "4.000±.000"
    ghost = row(table, "GHOST")
    assert (ghost["common part of flows"], ghost["radius of gyration, km"], ghost["detector AUC (A12)"]) == (
        ".400±.001 (worse)",
        "4.500±.001",
        ".900±.000 (worse)",
    )


def test_the_worst_case_is_not_that_of_the_luckiest_seed(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, "frontier", "strong")
    cells.accuracy("ghost", "frequency", [0.2, 0.05, 0.05], 0.05)
    cells.accuracy("ghost", "bigram", [0.12] * 3, 0.05)
    worst = cells.results().worst("ghost")
    assert worst is not None
    assert worst.adversary == "bigram"


def test_leak_ratios_victims_and_several_releases(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, "leaks", "strong")
    for ratio, alone in ((0.01, 0.02), (0.2, 0.1)):
        cells.accuracy("clean", "leak-only", around(alone), ratio)
        cells.accuracy("crowd", "habits+leak", around(0.1), ratio)
    table = made(cells.results())["What a release keeps and gives away"]
    assert row(table, "1%", "crowd")["minus leak-only"] == "+.080±.000↑"
    assert row(table, "20%", "crowd")["minus leak-only"] == "+.000±.000"

    cells = Fabricated(tmp_path, "victims", "strong")
    cells.accuracy("clean", "leak-only", around(0.05), 0.05, "gru")
    cells.accuracy("crowd", "hidden-markov", around(0.09), 0.05, "gru")
    table = made(cells.results())["What a release keeps and gives away"]
    assert row(table, "GRU", "crowd")["minus leak-only"] == "+.040±.000↑"
    assert row(table, "Markov", "crowd")["worst case"] == NONE

    cells = Fabricated(tmp_path, "releases", "strong")
    cells.accuracy("clean", "leak-only", around(0.05), 0.05)
    for count, acc in ((1, 0.1), (4, 0.12)):
        cells.accuracy("random", f"multi-release-{count}", around(acc), 0.05, restored=[0.5] * 3)
    table = made(cells.results())["Several releases of the same rows"]
    assert row(table, "random (control)", "4") == {
        "method": "random (control)", "releases": "4", "A11 acc@1": ".1200±.0010", "minus leak-only": "+.0700±.0000↑",
        "minus 1 release": "+.0200±.0000↑", "recovered share": ".500±.000",
    }  # fmt: skip
    assert row(table, "random (control)", "1")["minus 1 release"] == NONE


@pytest.mark.parametrize("study", plan.names())
def test_every_study_has_tables_without_any_cell(tmp_path: Path, study: str) -> None:
    found = tables([Results.read(tmp_path, study, "strong")])
    for table in found:
        assert all(len(r) == len(table.columns) for r in table.rows)
        assert table.markdown().splitlines()[3] == "| " + " | ".join(["---"] * len(table.columns)) + " |"
        assert not set(table.latex()) & set("±Δβη↑↓")
    assert found[-1].title.startswith("Controls")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.5, ".5000"), (-0.25, "-.2500"), (10.5, "10.5000"), (0.0, ".0000"), (None, "-")],
)
def test_numbers(value: float | None, expected: str) -> None:
    assert show(value) == expected


def test_labels() -> None:
    assert labels.method("ghost rounds.outer=3") == "GHOST (T=3)"
    assert labels.method("ghost", plan.load("rounds")) == "GHOST (T=5)"
    assert labels.method("crowd method.category=group method.reach_km=5.0") == "crowd (category=group, reach km=5)"
    assert labels.number("leak-mixed") == "leak-mixed"
    assert labels.heading("multi-release-4") == "A11, 4 releases"
    assert labels.heading("surv_bigram") == "Δsurv A4"


def test_which_cells_count(main: Fabricated) -> None:
    before = main.results().series("ghost", "none")
    Fabricated(main.folder, seeds=2).accuracy("ghost", "none", [0.9] * 2)  # the plan asks for three seeds
    main.put("ghost", kind="accuracy", adversary="none", victim="transformer", settings="other", measures={})
    assert main.results().series("ghost", "none") == before
    assert Results.read(main.folder, "manifold", "paper").series("ghost", "none") == before  # measured by another study
    main.put(
        "ghost", kind="accuracy", adversary="none", victim="transformer", version="1",
        measures={"all": {"acc@1": [0.1] * 3}},
    )  # fmt: skip
    assert main.results().series("ghost", "none") == [0.1] * 3  # the newest


def test_folders_that_cannot_be_read(main: Fabricated) -> None:
    Fabricated(main.folder, data="other").accuracy("pgd", "none", [0.1] * 3)
    with pytest.raises(InputError, match=r"mixes cells of different data \(dataset_TSMC2014_NYC, other\)"):
        main.results()
    with pytest.raises(InputError, match="there is no protocol 'weak'"):
        Results.read(main.folder, "main", "weak")
    with (main.folder / "main-paper.jsonl").open("a") as file:
        file.write('{"a": 1}\n')
    with pytest.raises(InputError, match="is not a cell"):
        main.results()


def test_the_paper_contradicts_itself() -> None:
    found = {(c.city, c.method, c.key, c.source): c for c in paper.contradictions()}
    assert len(found) == 29
    pgd = found["nyc", "pgd", "surv_frequency", "Table I's accuracies"]
    assert (pgd.printed, round(pgd.otherwise, 4)) == (0.0161, 0.0189)
    assert found["nyc", "ghost", "prot", "Table V, same setting"].otherwise == 0.0810
    assert not any(key[:2] == ("nyc", "ghost") and key[3].startswith("Table I's") for key in found)


@pytest.mark.parametrize("study", figures.FIGURES)
def test_figures_are_the_same_every_time(main: Fabricated, tmp_path: Path, study: str) -> None:
    cells = Fabricated(main.folder, study)
    cells.accuracy("clean", "clean", [0.13, 0.14, 0.15])
    for method in ("ghost", "pgd", "random", "ghost rounds.outer=1"):
        cells.method(method, [0.05, 0.06, 0.07])
    one, two = (figures.draw(cells.results(), folder=tmp_path / name) for name in ("one", "two"))
    assert [path.name for path in one] == [f"{figures.FIGURES[study][0]}-paper.{kind}" for kind in ("png", "svg")]
    assert one[0].read_bytes().startswith(b"\x89PNG")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_the_picture_of_the_frontier(frontier: Fabricated) -> None:
    frontier.floors({}, popularity={"acc@1": 0.01}, stay={"acc@1": 0.03}, markov={"acc@1": 0.18})
    drawn = figures.FIGURES["frontier"][1](frontier.results())
    texts = [text.get_text() for text in drawn.legends[0].get_texts()]
    (crowd,) = [text for text in texts if re.fullmatch(r"\d+  crowd", text)]
    assert {"clean", "leak-only", "best floor", "hollow: new pseudonyms"} < set(texts)
    assert not [text for text in texts if "pseudonyms=" in text]  # they share the number of their setting
    for axes, cost in zip(drawn.axes, (0.40, 1.5), strict=True):
        of_crowd = [(*text.xy, text.get_text()) for text in axes.texts if text.get_text() == crowd.split()[0]]
        assert of_crowd == [(pytest.approx(cost), pytest.approx(y), crowd.split()[0]) for y in (0.07, 0.06)]
        faces = [
            line.get_markerfacecolor() for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())
        ]
        assert faces == ["#0072B2", "white"]
    plt.close(drawn)


def test_studies_without_figures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no figures for the study 'weights'"):
        figures.draw(Results.read(tmp_path, "weights", "strong"), folder=tmp_path)


def test_map(tmp_path: Path) -> None:
    venues = np.arange(9)
    known = Vocabulary(
        np.append(np.nan, 40 + venues / 100), np.append(np.nan, -74 + venues / 90), np.arange(10) % 3, np.arange(10)
    )
    poi = np.array([1, 2, 1, 3, 4, 5, 6, 7, 8], np.int32)
    times = np.array([0, 10, 20, 0, 10, 20, 30, 40, 200_000])
    sessions = Sessions(np.array([0, 1]), np.array([0, 3, 9]), poi, times, np.arange(9))
    day = day_map.typical_day(sessions, known)
    assert day == slice(3, 8)  # the last check-in belongs to another day
    drawn = day_map.day_map(poi, known, {"ghost": poi[::-1].copy(), "random": poi}, day)
    assert [axes.get_title() for axes in drawn.axes] == [
        "clean",
        "GHOST\n4 of 5 moved here,\n89% in the whole city",
        "random (control)\n0 of 5 moved here,\n0% in the whole city",
    ]
    assert {path.suffix for path in figures.save(drawn, tmp_path, "map") if path.stat().st_size} == {".png", ".svg"}
    with pytest.raises(InputError, match="no day of 5 different venues"):
        day_map.typical_day(sessions.take(np.array([True, False])), known)


def test_tables_and_figures_on_the_command_line(main: Fabricated, tmp_path: Path) -> None:
    done = ghostpoi("study", "tables", "manifold", "--results", main.folder, "--protocol", "paper")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:6] == [
        "**Table IV: manifold prior, acc@1 (Foursquare-NYC, protocol paper)**",
        "",
        "| method | source | A1 as released | A2 denoising bridge | A3 frequency table | leak-mixed | Markov |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| GHOST | paper | .0600±.0100 | .0700±.0100 | .0800±.0100 | .0650±.0100 | .0200±.0100 |",
        "| GHOST | printed | .0544 | .0672 | .0716 | - | - |",
    ]
    done = ghostpoi("study", "tables", "main", "--results", main.folder, "--protocol", "both", "--latex")
    assert r"GHOST & paper & .1400$\pm$.0100 & .0600$\pm$.0100" in done.stdout
    assert "no results of main under strong" in done.stderr
    done = ghostpoi("study", "figures", "main", "--results", main.folder, "--protocol", "paper", "-o", tmp_path / "f")
    assert [Path(line).name for line in done.stdout.split()] == ["pareto-paper.png", "pareto-paper.svg"]
    for command in ("tables", "figures"):
        done = ghostpoi("study", command, "nothing", "--results", main.folder)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


class Guess(Adversary):
    """An adversary that somebody adds."""

    number, title, holds, does = 13, "lucky guess", "nothing", "guesses"

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        return evidence.released.poi


def test_a_new_adversary_and_a_study_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADVERSARIES.builtin, "guess", Guess())
    study = tmp_path / "mine.toml"
    study.write_text('methods = ["crowd", "crowd method.size=16"]\nadversaries = ["none", "guess"]\nleak = [0.1]\n')
    cells = Fabricated(tmp_path, str(study), "strong", data="village")
    cells.accuracy("clean", "leak-only", around(0.05), 0.1)
    cells.accuracy("crowd method.size=16", "none", around(0.03))
    cells.accuracy("crowd method.size=16", "guess", around(0.08), 0.1)
    arguments: list[Any] = ["study", "tables", study, "--results", tmp_path]
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    for expected in (
        "**Accuracy, acc@1 (village, protocol strong)**",
        "| method | A1 as released | A13 lucky guess | leak-mixed | leak-only | clean |",
        "| crowd | - | - | - | .0500±.0010 | - |",
        "| crowd (size=16) | .0300±.0010 | .0800±.0010 | - | .0500±.0010 | - |",
        "| crowd (size=16) | .030±.001 | .030±.001 (A1) | .080±.001 (A13) | +.030±.000↑ |",
        "| leak-only, 10% | .0500±.0010 |",
    ):
        assert expected in done.stdout


def test_what_studies_need() -> None:
    code = (
        "import sys, ghostpoi.study.pages, ghostpoi.study.day_map;"
        "sys.exit(any(m in sys.modules for m in ('polars', 'plotly')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
