"""The paper's tables from fabricated cells, with values computed by hand."""

from pathlib import Path

import pytest
from fake_results import Fabricated
from study_cells import around, made, main_cells, row

from ghostpoi.study.labels import NONE
from ghostpoi.study.results import Results
from ghostpoi.study.tables import tables

ACCURACY, GAPS, NATURAL = "Tables I and IV: acc@1", "Table I: gaps", "naturalness (mean log p)"


@pytest.fixture
def main(tmp_path: Path) -> Fabricated:
    return main_cells(tmp_path)


@pytest.mark.parametrize(
    ("table", "column", "expected"),
    [
        (ACCURACY, "A1 as released", "**.0600±.0100**"),
        (ACCURACY, "A4 bigram table", "**.0900±.0100**"),
        (ACCURACY, "leak-mixed", "**.0650±.0100**"),
        (GAPS, "Δprot", "**.0800±.0000**"),  # .08 for each seed: the seeds of clean and release move together
        (GAPS, "Δsurv A2", ".0100±.0000"),
        (GAPS, "Δsurv A3", ".0200±.0000"),
        (GAPS, "Δmean", "**.0700±.0000**"),
        (GAPS, "Δworst", "**.0600±.0000**"),
    ],
)
def test_table_one(main: Fabricated, table: str, column: str, expected: str) -> None:
    main.method("pgd", [0.07, 0.07, 0.07])  # GHOST and random are equal, PGD is worse
    assert row(made(main.results())[table], "GHOST", "paper")[column] == expected


def test_the_best_of_a_source_is_bold(main: Fabricated) -> None:
    main.method("pgd", around(0.03))
    table = made(main.results())[ACCURACY]
    column = table.columns.index("A1 as released")
    bold = [r[:2] for r in table.rows if r[column].startswith("**")]
    assert bold == [("PGD", "paper"), ("GHOST", "printed")]  # the floors and leak-only do not compete
    assert r"PGD & paper & \textbf{.0300$\pm$.0010}" in table.latex()


def test_printed_numbers_stand_below_ours(main: Fabricated) -> None:
    found = made(main.results())
    assert row(found[GAPS], "PGD", "paper")["Δprot"] == ".0800±.0100"
    assert row(found[GAPS], "PGD", "printed")["Δsurv A3"] == ".0161±.0032"
    assert row(found[ACCURACY], "PGD", "printed")["leak-mixed"] == NONE
    assert row(found[ACCURACY], "GHOST-EF", "printed")["A1 as released"] == ".0666"  # from Table IV
    assert row(found[ACCURACY], "clean (reference)", "printed")["A1 as released"] == ".1379±.0009"


def test_controls_are_rows(main: Fabricated) -> None:
    main.floors(
        {}, popularity={"acc@1": 0.01, "acc@1_moves": 0.011}, stay={"acc@1": 0.07, "acc@1_moves": 0.0},
        markov={"acc@1": 0.18, "acc@1_moves": 0.17},
    )  # fmt: skip
    main.accuracy("ghost", "none", [0.05, 0.06, 0.07], moves={"acc@1": around(0.04)})
    found = made(main.results())
    rows = {r[0]: dict(zip(found[ACCURACY].columns, r, strict=True)) for r in found[ACCURACY].rows if r[1] == "paper"}
    names = ["random (control)", "leak-only (no release)", "stay (floor)", "popularity (floor)", "Markov floor (clean)"]
    assert list(rows)[-6:] == [*names, "clean (reference)"]
    assert (rows["stay (floor)"]["A1 as released"], rows["stay (floor)"]["A1 on moves"]) == (".0700", ".0000")
    assert (rows["GHOST"]["A1 on moves"], rows["PGD"]["A1 on moves"]) == (".0400±.0010", NONE)
    assert rows["clean (reference)"]["A1 as released"] == ".1400±.0100"
    assert row(found[GAPS], "stay (floor)", "paper")["Δprot"] == ".0700±.0100"
    assert row(found[GAPS], "leak-only (no release)", "paper")["Δprot"] == ".1100±.0100"


def test_a_control_that_was_not_measured_has_no_row(main: Fabricated) -> None:
    table = made(main.results())[ACCURACY]
    assert "stay (floor)" not in {r[0] for r in table.rows}
    assert "A1 on moves" not in table.columns


def test_what_is_missing_is_a_dash(main: Fabricated) -> None:
    assert row(made(main.results())[GAPS], "EM (score=likelihood)", "paper")["Δprot"] == NONE


def test_plausibility_and_naturalness(main: Fabricated) -> None:
    found = made(main.results())
    assert row(found["Table II: plausibility"], "GHOST", "paper")["mean km"] == "2.000±1.000"
    assert row(found["Table II: plausibility"], "clean (reference)", "paper")["over speed limit"] == ".0100±.0000"
    assert row(found["Table II: plausibility"], "TS-UE", "printed")["substituted"] == ".7490"
    assert row(found["Table III: naturalness"], "clean (reference)", "paper")[NATURAL] == "-4.0000±.0000"
    assert row(found["Table III: naturalness"], "clean (reference)", "printed")[NATURAL] == "-3.8272"
    assert row(found["Table III: naturalness"], "GHOST", "printed")[NATURAL] == "**-10.0208±.0132**"


def test_both_protocols_in_one_table(main: Fabricated) -> None:
    strong = Fabricated(main.folder, protocol="strong")
    strong.accuracy("clean", "clean", [0.2] * 3)
    table = made(strong.results(), main.results())[ACCURACY]
    assert table.title.endswith("(Foursquare-NYC, protocols strong and paper)")
    clean = [row(table, "clean (reference)", source)["A1 as released"] for source in ("strong", "paper", "printed")]
    assert clean == [".2000±.0000", ".1400±.0100", ".1379±.0009"]


def test_sweeps_name_the_default(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, "entropy")
    cells.accuracy("clean", "clean", [0.14] * 3)
    cells.method("ghost", [0.06] * 3)
    cells.method("ghost method.eta=1.0", [0.07] * 3)
    table = made(cells.results())["Table VI: entropy floor"]
    assert row(table, "GHOST (η=0)", "printed")["Δprot"] == "**.0837**"
    assert row(table, "GHOST (η=1)", "paper")["Δworst"] == ".0500±.0000"


def test_leak_table(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, "leak")
    cells.accuracy("clean", "clean", [0.14] * 3)
    cells.accuracy("clean", "leak-only", [0.08] * 3, 0.1)
    cells.method("ghost", [0.06] * 3, 0.1)
    table = made(cells.results())["Leak figure: by leak ratio"]
    assert row(table, "10% GHOST", "paper")["Δsurv A2"] == ".0100±.0000"
    assert row(table, "10% leak-only (no release)", "paper")["A1 as released"] == ".0800±.0000"
    assert row(table, "10% GHOST", "printed")["Δsurv A2"] == ".0323"
    assert not [r for r in table.rows if r[:2] == ("5% GHOST", "printed")]  # the text gives no number


def test_rows_against_their_rivals(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, "surrogate")
    cells.accuracy("clean", "clean", [0.14] * 3)
    changed = "ts-ue surrogate.start=0.1"
    series = {"random": [0.05] * 3, changed: [0.0345, 0.035, 0.0355], "ts-ue": [0.0555, 0.055, 0.0545]}
    for method, values in series.items():
        cells.method(method, values)
    table = tables([cells.results()])[0]
    ours = [r for r in table.rows if r[1] == "paper" and r[0].startswith(("TS-UE", "random"))]
    ours = [r for r in ours if r[table.columns.index("A1 as released")] != NONE]
    assert [r[table.columns.index("A1 minus plain")] for r in ours] == [NONE, "-.0200±.0010↓", NONE]
    assert row(table, ours[0][0], "printed")["A1 as released"] == ".0575±.0020"
    assert [r[0] for r in ours] == [  # variants follow their method, the plain one with its own values
        "TS-UE (start=0.02, dropout=0.2, feed-forward=256, clip=1)",
        "TS-UE (start=0.1)",
        "random (control)",
    ]


def test_ghost_against_its_rivals(main: Fabricated) -> None:
    main.method("pgd", [0.05, 0.06, 0.08])
    table = made(main.results())["GHOST minus random and PGD"]
    assert table.title == "GHOST minus random and PGD, acc@1, 3 seeds"
    assert [r[:2] for r in table.rows] == [
        ("random (control), Foursquare-NYC, paper", "+.0000±.0000"),
        ("PGD, Foursquare-NYC, paper", "-.0033±.0058"),
    ]


def test_data_of_another_city(tmp_path: Path) -> None:
    for data, name, sources in (
        ("gowalla_california", "Gowalla-CA", {"paper"}),
        ("village", "village", {"paper"}),
        ("dataset_TSMC2014_TKY", "Foursquare-TKY", {"paper", "printed"}),
    ):
        cells = Fabricated(tmp_path, data=data)
        cells.accuracy("clean", "clean", [0.14] * 3)
        table = made(Results.read(tmp_path, "main", "paper", data))[ACCURACY]
        assert table.title.endswith(f"({name}, protocol paper)")
        assert {r[1] for r in table.rows} == sources
        assert row(table, "clean (reference)", "paper")["A1 as released"] == ".1400±.0000"
    assert row(table, "EM (score=loss)", "printed")["A4 bigram table"] == ".1112±.0037"
