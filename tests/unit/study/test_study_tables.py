"""Tables of any study from fabricated cells, with values computed by hand."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from fake_results import Fabricated
from small_city import called
from study_cells import around, frontier_cells, made, main_cells, row
from typer.testing import CliRunner

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.cli import app
from ghostpoi.study import figures, labels, plan
from ghostpoi.study.labels import NONE, show
from ghostpoi.study.results import Results
from ghostpoi.study.tables import LAYOUTS, tables


class Guess(Adversary):
    """An adversary that somebody adds."""

    number, title, holds, does = 13, "lucky guess", "nothing", "guesses"

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        return evidence.released.poi


@pytest.fixture
def main(tmp_path: Path) -> Fabricated:
    return main_cells(tmp_path)


@pytest.fixture
def frontier(tmp_path: Path) -> Fabricated:
    return frontier_cells(tmp_path)


def test_the_best_floor_is_the_better_guess(main: Fabricated) -> None:
    assert "best floor" not in str(tables([main.results()]))  # cells of earlier versions lack stay
    main.floors(
        {},
        popularity={"acc@1": 0.01, "acc@1_moves": 0.011},
        stay={"acc@1": 0.07, "acc@1_moves": 0.0},
        markov={"acc@1": 0.18, "acc@1_moves": 0.17},
    )
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
    assert row(table, "crowd (halves)")["worst case"] == ".070±.001 (A9)"
    assert row(table, "crowd (halves, pseudonyms=session)")["minus leak-only"] == "+.010±.000↑"
    assert row(table, "crowd (halves, category=group)")["worst case"] == NONE
    assert row(found["Recovered share of positions"], "GHOST")["A10 paired bridge"] == ".300±.100"


def test_the_release_without_any_adversary_can_be_the_worst_case(frontier: Fabricated) -> None:
    frontier.accuracy("crowd-halves", "leak-mixed", around(0.08), 0.05)
    frontier.floors({}, popularity={"acc@1": 0.01}, stay={"acc@1": 0.03}, markov={"acc@1": 0.18})
    crowd = row(made(frontier.results())["What a release keeps and gives away"], "crowd (halves)")
    assert crowd["worst case"] == ".080±.001 (leak-mixed)"
    assert (crowd["without leak"], crowd["minus best floor"]) == (".035±.001 (A1)", "+.005±.001↑")


def test_measures_of_the_release(frontier: Fabricated) -> None:
    table = made(frontier.results())["The release itself"]
    assert [r[0] for r in table.rows[:2]] == ["clean (reference)", "random (control)"]
    assert row(table, "clean (reference)")["radius of gyration, km"] == "4.000±.000"
    ghost = row(table, "GHOST")
    assert (ghost["common part of flows"], ghost["radius of gyration, km"], ghost["detector AUC (A12)"]) == (
        ".400±.001",
        "4.500±.001",
        ".900±.000",
    )


def test_the_worst_case_is_not_that_of_the_luckiest_seed(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, "learned", "strong")
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
    assert found


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


def test_tables_and_figures_on_the_command_line(main: Fabricated, tmp_path: Path) -> None:
    done = called("study", "tables", "manifold", "--results", main.folder, "--protocol", "paper")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:5] == [
        "**Table IV: manifold prior, acc@1 (Foursquare-NYC, protocol paper)**",
        "",
        "| method | source | A1 as released | A2 denoising bridge | A3 frequency table | leak-mixed |",
        "| --- | --- | --- | --- | --- | --- |",
        "| GHOST | paper | .0600±.0100 | .0700±.0100 | .0800±.0100 | .0650±.0100 |",
    ]
    assert "| GHOST | printed | **.0544** | **.0672** | .0716 | - |" in done.stdout
    done = called("study", "tables", "main", "--results", main.folder, "--protocol", "both", "--latex")
    assert r"GHOST & paper & .0600$\pm$.0100 & .0700$\pm$.0100" in done.stdout
    assert "no results of main under strong" in done.stderr
    done = called("study", "figures", "main", "--results", main.folder, "--protocol", "paper", "-o", tmp_path / "f")
    assert [Path(line).name for line in done.stdout.split()] == ["pareto-paper.png", "pareto-paper.svg"]
    town = Fabricated(main.folder, data="town")
    town.accuracy("clean", "clean", [0.1, 0.1, 0.1])
    town.method("ghost", [0.01, 0.02, 0.03])
    chosen = ("--results", main.folder, "--protocol", "paper", "--city", "town")
    assert "| GHOST | paper | .0200±.0100 | .0300±.0100 |" in called("study", "tables", "main", *chosen).stdout
    done = called("study", "figures", "main", *chosen, "-o", tmp_path / "f")
    assert [Path(line).name for line in done.stdout.split()] == ["pareto-paper-town.png", "pareto-paper-town.svg"]
    done = called("study", "tables", "manifold", "--results", main.folder, "--city", "village")
    assert f"no results of manifold under strong in {main.folder} on village; make them with" in done.stderr
    for command in ("tables", "figures"):
        done = called("study", command, "nothing", "--results", main.folder)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


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
    ):
        assert expected in done.stdout


def test_what_studies_need() -> None:
    code = (
        "import sys, ghostpoi.attack.victims, ghostpoi.study.figures, ghostpoi.study.run;"
        "from ghostpoi import attack, draw;"
        "plugins = attack.adversaries.ADVERSARIES, attack.victims.VICTIMS, draw.methods.METHODS;"
        "[list(registry.values()) for registry in plugins];"
        "sys.exit('polars' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_study_has_the_same_table_twice() -> None:
    for study, layouts in LAYOUTS.items():
        assert study in plan.names()
        assert len({layout.title for layout in layouts}) == len(layouts)
