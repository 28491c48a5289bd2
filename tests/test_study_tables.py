"""Tables, figures and the page from fabricated cells, with figures computed by hand."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import ghostpoi
from fabricated import Fabricated

from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.study import figures, findings, page, paper, tables
from ghostpoi.study.cells import Cells
from ghostpoi.study.table import MISSING, NONE, Table


@pytest.fixture
def main(tmp_path: Path) -> Fabricated:
    made = Fabricated(tmp_path)
    made.contest("clean", "clean", [0.13, 0.14, 0.15])
    made.contest("clean", "leak-only", [0.03, 0.03, 0.03], 0.05)
    made.method("ghost", [0.05, 0.06, 0.07])
    made.method("pgd", [0.06, 0.06, 0.06])
    made.method("random", [0.05, 0.06, 0.07])
    plausible = {"substitution_rate": [0.8, 0.8, 0.8], "category_match": [1.0] * 3, "beyond_1km": [0.5, 0.6, 0.7]}
    plausible |= {"mean_km": [1.0, 2.0, 3.0], "p95_km": [4.0, 4.0, 4.0]}
    plausible |= {"speed_violations_clean": [0.01] * 3, "speed_violations_released": [0.02] * 3}
    for method, natural in (("ghost", -10.0), ("pgd", -10.5), ("random", -9.0)):
        made.release(method, plausibility=plausible, naturalness=[natural] * 3, clean_naturalness=[-4.0] * 3)
    markov = {"ghost": [0.01, 0.02, 0.03], "random": [0.01] * 3}
    made.floors(popularity={"acc@1": 0.01}, markov={"acc@1": 0.18}, markov_on_release=markov)
    return made


def entry(table: Table, method: str, source: str, column: str) -> str:
    at = table.columns.index(column)
    (row,) = [r for r in table.rows if r[:2] == (method, source)]
    return row[at]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("clean", "0.1400 ± 0.0100"),
        ("A1 none", "0.0600 ± 0.0100"),
        ("A4 bigram", "0.0900 ± 0.0100"),
        ("Δprot", "0.0800 ± 0.0000"),  # per seed 0.08 each: seeds of clean and release move together
        ("Δsurv A2", "0.0100 ± 0.0000"),
        ("Δsurv A3", "0.0200 ± 0.0000"),
        ("Δmean", "0.0700 ± 0.0000"),
        ("Δworst", "0.0600 ± 0.0000"),
        ("leak-mixed", "0.0650 ± 0.0100"),
        ("Markov", "0.0200 ± 0.0100"),
    ],
)
def test_table_one_by_hand(main: Fabricated, column: str, expected: str) -> None:
    table = tables.tables(main.cells())[0]
    assert entry(table, "GHOST", "measured", column) == expected


def test_gaps_are_per_seed_and_the_paper_stands_below(main: Fabricated) -> None:
    table = tables.tables(main.cells())[0]
    assert entry(table, "PGD", "measured", "Δprot") == "0.0800 ± 0.0100"
    assert entry(table, "PGD", "paper", "Δsurv A3") == "0.0161 ± 0.0032"
    assert entry(table, "PGD", "paper", "leak-mixed") == NONE
    assert "random (control)" in {row[0] for row in table.rows}


def test_what_is_missing_says_so(main: Fabricated) -> None:
    nyc, tokyo = tables.tables(main.cells())[:2]
    assert entry(nyc, "EM", "measured", "Δprot") == MISSING
    assert entry(nyc, "PGD", "measured", "Markov") == MISSING
    assert {c for row in tokyo.rows if row[1] == "measured" for c in row[2:]} == {MISSING}
    assert entry(tokyo, "EM", "paper", "A4 bigram") == "0.1112 ± 0.0037"


def test_plausibility_and_naturalness(main: Fabricated) -> None:
    made = {t.title.split(":")[0] + ("T" if "TKY" in t.title else ""): t for t in tables.tables(main.cells())}
    assert entry(made["Table II"], "GHOST", "measured", "mean km") == "2.000 ± 1.000"
    assert entry(made["Table II"], "TS-UE (calibrated)", "paper", "substituted") == "0.7490"
    assert any("TS-UE" in note and "no result of ours" in note for note in made["Table II"].notes)
    assert entry(made["Table III"], "clean (reference)", "measured", "mean log p") == "-4.0000 ± 0.0000"
    assert entry(made["Table III"], "clean (reference)", "paper", "mean log p") == "-3.8272"


def test_controls(main: Fabricated) -> None:
    rows = {row[0]: row[1:] for row in tables.controls(main.cells()).rows}
    assert rows["leak-only: a victim on the leaked 5% alone"] == ("0.0300 ± 0.0000", "0.1100 ± 0.0100")
    assert rows["popularity floor"] == ("0.0100", "0.1300 ± 0.0100")
    assert rows["first-order Markov on clean sessions"] == ("0.1800", "-0.0400 ± 0.0100")


@pytest.mark.parametrize("study", tables.SPECS)
def test_every_study_has_tables_without_any_cell(tmp_path: Path, study: str) -> None:
    made = tables.tables(Cells.read(tmp_path, study, "strong"))
    assert made
    for table in made:
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert table.markdown().count("| --- |") >= 1
        latex = table.latex()
        assert latex.startswith(r"\begin{table}")
        assert not set(latex) & set("±Δβη")


def test_sweeps_meet_the_papers_rows(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, "entropy")
    made.contest("clean", "clean", [0.14, 0.14, 0.14])
    made.method("ghost", [0.06] * 3)
    made.method("ghost method.eta=1.0", [0.07] * 3)
    table = tables.tables(made.cells())[0]
    assert entry(table, "GHOST (η=0.0)", "paper", "Δprot") == "0.0837"
    assert entry(table, "GHOST (η=1.0)", "measured", "Δworst") == "0.0500 ± 0.0000"


def test_leak_table(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, "leak")
    made.contest("clean", "clean", [0.14] * 3)
    made.contest("clean", "leak-only", [0.08] * 3, 0.1)
    made.method("ghost", [0.06] * 3, 0.1)
    (table,) = tables.tables(made.cells())
    assert entry(table, "10% GHOST", "measured", "Δsurv A2") == "0.0100 ± 0.0000"
    assert entry(table, "10% GHOST", "measured", "leak-only") == "0.0800 ± 0.0000"
    assert entry(table, "10% GHOST", "paper", "Δsurv A2") == "0.0323"


def test_data_of_another_city(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, data="synthetic")
    made.contest("clean", "clean", [0.14] * 3)
    assert "measured on synthetic, which is not the paper's Foursquare-NYC" in tables.tables(made.cells())[0].title
    made = Fabricated(tmp_path / "tky", data="TKY")
    made.contest("clean", "clean", [0.14] * 3)
    nyc, tokyo = tables.tables(made.cells())[:2]
    assert entry(nyc, "GHOST", "measured", "clean") == MISSING
    assert entry(tokyo, "GHOST", "measured", "clean") == "0.1400 ± 0.0000"


def test_folders_that_cannot_be_read(main: Fabricated) -> None:
    stray = main.results / "main" / "paper" / "stray.json"
    stray.write_text(json.dumps({"a": 1}))
    with pytest.raises(InputError, match="not a cell"):
        main.cells()
    stray.unlink()
    Fabricated(main.results, data="other").contest("pgd", "none", [0.1] * 3)
    with pytest.raises(InputError, match="different data"):
        main.cells()
    with pytest.raises(InputError, match="no tables for the study 'nothing'"):
        tables.tables(Cells.read(main.results, "nothing", "paper"))


def test_the_paper_contradicts_itself() -> None:
    found = {(d.city, d.method, d.figure, d.source): d for d in paper.contradictions()}
    pgd = found["nyc", "pgd", "surv_frequency", "Table I's own accuracies"]
    assert (pgd.printed, round(pgd.otherwise, 4)) == (0.0161, 0.0189)
    assert found["nyc", "ghost", "prot", "Table V, same setting"].otherwise == 0.0810
    assert not any(key[:2] == ("nyc", "ghost") and key[3].startswith("Table I's") for key in found)


@pytest.mark.parametrize(
    ("study", "column", "expected"),
    [
        ("surrogate", "A1 minus the plain method's", (NONE, "-0.0200 ± 0.0010, lower", NONE)),
        ("seeds", "A1 minus random's", ("+0.0050 ± 0.0005, higher", "-0.0150 ± 0.0005, lower", NONE)),
    ],
)
def test_rows_against_their_rivals(tmp_path: Path, study: str, column: str, expected: tuple[str, ...]) -> None:
    made = Fabricated(tmp_path, study)
    made.contest("clean", "clean", [0.14] * 3)
    variant = "ts-ue surrogate.start=0.1"
    for method, series in {
        "random": [0.05, 0.05, 0.05], variant: [0.0345, 0.035, 0.0355], "ts-ue": [0.0555, 0.055, 0.0545],
    }.items():  # fmt: skip
        made.method(method, series)
    made.release(variant, plausibility={"beyond_1km": [0.6, 0.61, 0.62], "p95_km": [4.6] * 3})
    table, controls = tables.tables(made.cells())
    names = ("TS-UE (calibrated)", "TS-UE (calibrated, start=0.1)", "random (control)")
    ours = [row for row in table.rows if row[0] in names and row[1] == "measured"]
    assert tuple(row[0] for row in ours) == names  # a method's variants follow it, the control is last
    assert tuple(row[table.columns.index(column)] for row in ours) == expected
    assert entry(table, names[1], "measured", "beyond 1 km") == "0.6100 ± 0.0100"
    assert entry(table, names[1], "measured", "P95 km") == "4.600 ± 0.000"
    assert entry(table, names[0], "measured", "P95 km") == MISSING
    assert entry(table, names[0], "paper", "P95 km") == "4.702 ± 0.017"
    assert entry(table, names[0], "paper", "A1 none") == "0.0575 ± 0.0020"
    assert controls.title.startswith("Controls")
    tokyo = replace(made.cells(), about=({"data": "dataset_TSMC2014_TKY", "seeds": [0]},))
    table = tables.tables(tokyo)[0]
    assert "Foursquare-TKY" in table.title
    assert entry(table, names[0], "paper", "P95 km") == "4.169 ± 0.051"


def test_verdicts() -> None:
    clear, tie = findings.against([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]), findings.against([0.1, 0.2], [0.2, 0.1])
    assert clear is not None
    assert clear.word == "lower"
    assert tie is not None
    assert tie.word == "inside the spread"
    # mean 0.02, std 0.01: half of the 95% interval of three seeds is 4.303 * 0.01 / sqrt(3) = 0.0248
    near = findings.against([0.01, 0.02, 0.03], [0.0] * 3)
    assert near is not None
    assert near.word == "inside the spread"
    single = findings.against([0.1], [0.5])
    assert single is not None
    assert not single.clear
    same = findings.against([0.1, 0.1], [0.1, 0.1])
    assert same is not None
    assert not same.clear


def test_findings_come_from_the_cells(main: Fabricated) -> None:
    cells = {study: Cells.read(main.results, study, "paper") for study in page.SUBJECTS}
    said = dict(findings.statements(cells))
    beats = next(answer for claim, answer in said.items() if "uniform draw" in claim)
    assert beats.startswith("No: under no adversary clearly below random. A1: +0.0000 ± 0.0000, inside the spread")
    assert "GHOST: 43%" in next(answer for claim, answer in said.items() if "work of its denoiser" in claim)
    assert "GHOST 0.250 ± 0.000 (0.500" in next(answer for claim, answer in said.items() if "identity" in claim)
    assert "+4.8%" in next(answer for claim, answer in said.items() if "most natural" in claim)
    assert said["Five rounds are enough"] == MISSING


@pytest.mark.parametrize("study", figures.FIGURES)
def test_figures(main: Fabricated, tmp_path: Path, study: str) -> None:
    made = Fabricated(main.results, study)
    made.contest("clean", "clean", [0.13, 0.14, 0.15])
    made.contest("clean", "leak-only", [0.03] * 3, 0.05)
    for method in ("ghost", "pgd", "random", "ghost rounds.outer=1"):
        made.method(method, [0.05, 0.06, 0.07])
    first = [p.read_bytes() for p in figures.draw(made.cells(), tmp_path / "one")]
    assert first[0].startswith(b"\x89PNG")
    assert b"<svg" in first[1]
    assert all(len(b) > 5000 for b in first)
    assert first == [p.read_bytes() for p in figures.draw(made.cells(), tmp_path / "two")]


def test_figures_of_nothing(tmp_path: Path) -> None:
    assert all(p.stat().st_size for p in figures.draw(Cells.read(tmp_path, "leak", "strong"), tmp_path))
    with pytest.raises(InputError, match="no figures for the study 'weights'"):
        figures.draw(Cells.read(tmp_path, "weights", "strong"), tmp_path)


def test_map(tmp_path: Path) -> None:
    venues = np.arange(9)
    words = Vocabulary(
        np.append(np.nan, 40 + venues / 100), np.append(np.nan, -74 + venues / 90), np.arange(10) % 3, np.arange(10)
    )
    poi = np.array([1, 2, 1, 3, 4, 5, 6, 7, 8], np.int32)
    times = np.array([0, 10, 20, 0, 10, 20, 30, 40, 200_000])
    sessions = Sessions(np.array([0, 1]), np.array([0, 3, 9]), poi, times, np.arange(9))
    day = figures.typical_day(sessions, words)
    assert day == slice(3, 8)  # the last check-in is of another day
    drawn = figures.day_map(poi, words, {"ghost": poi[::-1].copy(), "random": poi}, day)
    assert all(p.stat().st_size > 5000 for p in figures.save(drawn, tmp_path, "map"))
    with pytest.raises(InputError, match="no day of 5 different venues"):
        figures.typical_day(sessions.take(np.array([True, False])), words)


def test_page_is_the_same_every_time(main: Fabricated, tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        path = page.write(main.results, tmp_path / name / "reproduction.md", print, with_map=False)
        texts.append(path.read_text("utf-8"))
        assert (tmp_path / name / "figures" / "pareto-paper.svg").stat().st_size > 5000
    assert texts[0] == texts[1]
    for expected in ("Tokyo: not measured", "What reproduces", "figures/pareto-paper.svg", "epochs 4", "calibrated"):
        assert expected in texts[0]
    assert "pareto-strong" not in texts[0]  # no cells, no figure
    assert "- Seeds: 3 a cell\n" in texts[0]
    beyond = texts[0].split("## Beyond the paper: its methods over thirty seeds")[1].split("## ")[0]
    assert beyond.split() == ["Protocol", "paper:", "not", "measured.", "Protocol", "strong:", "not", "measured."]
    with pytest.raises(InputError, match="does not exist"):
        page.write(main.results, tmp_path / "absent" / "p.md", print)


def test_commands(main: Fabricated, tmp_path: Path) -> None:
    done = ghostpoi("study", "tables", "main", "--results", main.results, "--protocol", "paper", "--latex")
    assert done.returncode == 0
    assert r"0.1400 $\pm$ 0.0100" in done.stdout
    done = ghostpoi("study", "figures", "main", "--results", main.results, "--protocol", "paper", "-o", tmp_path / "f")
    assert done.returncode == 0
    assert len(done.stdout.split()) == 2
    for command in ("tables", "figures"):
        done = ghostpoi("study", command, "nothing", "--results", main.results)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1


def test_tables_need_neither_matplotlib_nor_polars() -> None:
    code = (
        "import sys, ghostpoi.study.tables; sys.exit(any(m in sys.modules for m in ('matplotlib', 'polars', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_share_of_the_manifold_term_comes_from_the_benchmark() -> None:
    measured = {"manifold_share": 0.125, "pass_seconds": 10.04, "positions": 1234}
    cells = Cells("main", "paper", {}, {}, {}, (), {}, measured)
    found = findings._overhead(cells)
    assert found.startswith("It takes 12.5% of one scoring pass on a CPU (10.0 s over 1,234 positions;")
    assert findings._overhead(replace(cells, scoring={})) == MISSING
