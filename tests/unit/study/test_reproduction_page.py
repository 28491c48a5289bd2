"""The page of the reproduction: the answer first, one command for each table, and no claim that cells contradict."""

import json
import re
import shutil
from pathlib import Path

import fake_results
import pytest
from conftest import ROOT
from fake_results import Fabricated
from typer.main import get_command

from ghostpoi.cli import app
from ghostpoi.errors import InputError
from ghostpoi.study import levels_table, pages
from ghostpoi.study.results import GOWALLA

PAGE = ROOT / "docs" / "results" / "reproduction.md"
MOST_WORDS, MOST_COLUMNS = 3500, 8


def folder(path: Path, *cities: str) -> Path:
    """Results of these cities, with what else the page reads."""
    for city in cities:
        fake_results.reproduction(path, city)
    for name in ("bench-scoring.json", "data-facts.json"):
        shutil.copy(ROOT / "results" / name, path)
    return path


@pytest.fixture(scope="module")
def nyc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("nyc"), fake_results.NYC)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> str:
    return pages.render("reproduction", folder(tmp_path_factory.mktemp("both"), fake_results.NYC, GOWALLA))


def lines(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_the_answer_comes_first(nyc: Path) -> None:
    text = pages.render("reproduction", nyc)
    answer = "**GHOST beats neither PGD nor `random`: it protects less than both.**"
    assert text.startswith(f"# Reproduction of the paper\n\n{answer}\n\n|Δmean")
    sentence = " ".join(text.partition("## ")[0].split())
    assert "All 4 differences are clear over 3 seeds, under both" in sentence
    for protocol in ("strong", "paper"):
        assert f"|Foursquare-NYC, `{protocol}`|-.0197±.0000↓|-.0230±.0000↓|" in sentence
    assert "|the paper, NYC|+.0029|-|" in sentence
    assert "**[Why](#why):** the manifold term prefers venues where people really go next" in sentence
    assert "**[Make it again](#make-it-again):** `ghostpoi study reproduce --data nyc.npz --data ca.npz`" in sentence
    assert "|claim on protection|paper, NYC|ours, NYC|ours, Gowalla-CA|verdict|" in text[:2000]


def test_readings_of_table_iii(nyc: Path, tmp_path: Path) -> None:
    """TS-UE's own distance does not count: our form of it leaves most check-ins alone."""
    results = tmp_path / "results"
    shutil.copytree(nyc, results)
    assert "Why is not measured yet (`ghostpoi study levels --data nyc.npz`)." in pages.render("reproduction", results)
    near = {"clean": -3.8, "ghost": -9.0, "em": -10.1, "pgd": -10.4, "ts-ue": -4.0}
    rows = [{"name": "ours", "values": near | {"em": -8.0}}, {"name": "last position", "values": near}]
    for protocol in ("strong", "paper"):
        levels_table.path(results, protocol).write_text(json.dumps({"rows": rows}))
    text = " ".join(pages.render("reproduction", results).split())
    assert "None of 2 readings of the paper explains it" in text
    assert 'under either protocol, even without TS-UE, of which our form changes little. The nearest, "last' in text
    assert '"last position", deviates by up to 1.02.' in text
    rows[1]["values"] = near | {"ghost": -9.9}
    levels_table.path(results, "paper").write_text(json.dumps({"rows": rows}))
    with pytest.raises(InputError, match="no reading explains Table III"):
        pages.render("reproduction", results)


def test_a_city_that_is_not_measured_is_named(nyc: Path) -> None:
    text = pages.render("reproduction", nyc)
    (missing,) = lines(text, "**Not measured yet**, though the studies plan it: ")
    assert "Foursquare-NYC, `releases` (strong): crowd, GHOST, random (control)" in missing
    assert missing.endswith("; Gowalla-CA, everything.")
    assert lines(text, "|GHOST beats PGD ")[0].count("not measured yet") == 1
    assert "Gowalla-CA: not measured yet (`ghostpoi study run main --data ca.npz`)." in text
    assert "gowalla_california.svg" not in text


def test_a_second_city_fills_the_page_by_itself(both: str) -> None:
    row = "|GHOST beats PGD (Δmean, GHOST minus PGD)|+.0029|-.0197↓ / -.0197↓|-.0197↓ / -.0197↓|"
    assert lines(both, row) == [row + "**No**, clearly reversed in 4 of 4|"]
    assert "Gowalla-CA, everything" not in both
    assert lines(both, "|Gowalla-CA, `paper`|")[0] == "|Gowalla-CA, `paper`|-.0197±.0000↓|-.0230±.0000↓|"
    titles = ["Tables I and IV: acc@1", "Table I: gaps", "Table II: plausibility", "Table V: score weights"]
    for title in (*titles, "Table VI: entropy floor", "Convergence figure: outer rounds"):
        assert f"**{title} (Gowalla-CA, protocol strong)**" in both
    assert "Print: `ghostpoi study tables main --city gowalla_california`." in both
    assert "(figures/pareto-strong-gowalla_california.svg)" in both
    assert "|Gowalla-CA, `strong`|1% leak|5% leak|10% leak|20% leak|" in both
    assert "|A3, PGD|.0700 (.0400)|" in both
    assert "|A3, random (control)|**.0600** (.0300)|" in both
    assert "|Gowalla-CA, `paper`|A1|" in both
    assert "|Gowalla-CA, `paper`|1% leak|" in both


def test_a_city_without_ghost_and_its_rivals_is_not_shown(nyc: Path, tmp_path: Path) -> None:
    shutil.copytree(nyc, tmp_path / "results")
    cells = Fabricated(tmp_path / "results", protocol="strong", data=GOWALLA)
    cells.accuracy("clean", "clean", [0.19, 0.2, 0.21])
    for method in ("ghost", "random"):  # PGD's run was interrupted
        cells.method(method, [0.05, 0.06, 0.07])
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "map.svg").touch()  # which takes a while to draw
    text = pages.write("reproduction", tmp_path / "results", tmp_path / "page.md", None, print).read_text("utf-8")
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {"pareto-strong.svg", "convergence-strong.svg", "leak-strong.svg", "map.svg"}
    assert "Gowalla-CA: not measured yet (`ghostpoi study run main --data ca.npz`)." in text
    assert "; Gowalla-CA, `main` (strong): PGD, EM" in text
    assert "Gowalla-CA" not in text.partition("## Verdicts")[0]


@pytest.mark.parametrize(
    ("method", "a1", "claim"),
    [
        ("ghost", 0.02, "ghost is not clearly different from or clearly above pgd in main-strong"),
        ("ghost-sym", 0.04, "naturalness and accuracy rise with the manifold term on NYC"),
    ],
)
def test_a_claim_that_the_cells_contradict_stops_the_build(
    nyc: Path, tmp_path: Path, method: str, a1: float, claim: str
) -> None:
    shutil.copytree(nyc, tmp_path / "results")
    cells = Fabricated(tmp_path / "results", protocol="strong")
    cells.method(method, [a1 - 0.001, a1, a1 + 0.001])
    with pytest.raises(InputError, match=claim):
        pages.render("reproduction", tmp_path / "results")


def tables_of(text: str) -> list[list[str]]:
    return [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]


def test_tables_are_narrow_and_whole(both: str) -> None:
    for text in (both, PAGE.read_text("utf-8")):
        found = tables_of(text)
        assert len(found) > 12
        for table in found:
            widths = {line.count("|") - 1 for line in table}
            assert len(widths) == 1, table[0]
            assert widths.pop() <= MOST_COLUMNS, table[0]


def test_the_page_is_short(both: str) -> None:
    for text in (both, PAGE.read_text("utf-8")):
        assert len(text.split()) <= MOST_WORDS


def test_every_table_of_cells_names_its_command(both: str) -> None:
    blocks = both.split("\n\n")
    titled = [n for n, block in enumerate(blocks) if re.fullmatch(r"\*\*[^*]+\*\*", block)]
    del titled[0]  # the answer
    assert len(titled) == 13
    for number in titled:
        assert blocks[number + 1].startswith("|"), blocks[number]
        assert re.match(
            r"Measure: `ghostpoi study run \w+ --data \w+\.npz`.* Print: `ghostpoi study tables", blocks[number + 2]
        )


def test_commands_in_the_text_exist() -> None:
    study = get_command(app).commands["study"].commands  # type: ignore[attr-defined]
    found = re.findall(r"`ghostpoi study (\w+)([^`]*)`", PAGE.read_text("utf-8"))
    assert len(found) > 15
    for name, rest in found:
        known = {option for parameter in study[name].params for option in parameter.opts}
        assert {word for word in rest.split() if word.startswith("-")} <= known, (name, rest)
