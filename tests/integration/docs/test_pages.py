"""The result pages: a claim that does not hold stops the build."""

import json
import re
import shutil
from pathlib import Path

import fake_results
import pytest
from conftest import ROOT, ghostpoi
from fake_results import Fabricated

from ghostpoi.errors import InputError
from ghostpoi.study import claim_checks, pages
from ghostpoi.study.results import Results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """GHOST is clearly above random under A1, by .02, and equal to it under A2."""
    cells = Fabricated(tmp_path / "results", protocol="strong")
    cells.accuracy("random", "none", [0.03, 0.031, 0.032])
    cells.accuracy("ghost", "none", [0.05, 0.051, 0.052])
    for method in ("ghost", "random"):
        cells.accuracy(method, "bridge", [0.06] * 3, 0.05)
    return tmp_path / "results"


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pages, "TEMPLATES", tmp_path)
    return tmp_path / "frontier.md"


def test_a_true_claim_leaves_no_trace(results: Path, template: Path) -> None:
    template.write_text(
        '{% set r = study("main") %}\nGHOST reaches {{ show(r.value("ghost", "none")) }}.\n'
        '{{- claim(clearly_higher(r, "ghost", "random", "none"), unclear(r, "ghost", "random", "bridge")) }}\n'
    )
    assert pages.render("frontier", results) == "GHOST reaches .0510±.0010.\n"


def test_a_false_claim_stops_the_build(results: Path, template: Path, tmp_path: Path) -> None:
    template.write_text(
        'GHOST wins. {{ claim(clearly_lower(study("main"), "ghost", "random", ["none", "bridge"])) }}\n'
    )
    output = tmp_path / "page.md"
    with pytest.raises(InputError) as e:
        pages.write("frontier", results, output, None, print)
    assert str(e.value) == (
        "page frontier: the results contradict a claim; correct the template. Claim: ghost is clearly below random in "
        "main-strong: A1 as released +.0200±.0000↑, A2 denoising bridge +.0000±.0000"
    )
    assert not output.exists()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All results of the page `frontier`, where everything is as hoped."""
    folder = tmp_path_factory.mktemp("measured")
    fake_results.frontier(folder)
    return folder


def changed(measured: Path, folder: Path, method: str, adversary: str, accuracy: float) -> Path:
    """The same results with another accuracy of one adversary against one method."""
    shutil.copytree(measured, folder)
    path = folder / "frontier-strong.jsonl"
    lines = path.read_text("utf-8").splitlines()
    (found,) = [n for n, line in enumerate(lines) if f'"method": "{method}"' in line and f'y": "{adversary}"' in line]
    new = f'"all": {{"acc@1": {[accuracy - 0.001, accuracy, accuracy + 0.001]}'
    lines[found] = re.sub(r'"all": {"acc@1": \[[^]]+\]', new, lines[found])
    path.write_text("\n".join(lines) + "\n")
    return folder


def test_the_frontier_page_says_what_was_measured(measured: Path) -> None:
    text = pages.render("frontier", measured)
    assert sum(len(line.split()) for line in text.splitlines() if "|" not in line) < 1300
    for expected in (
        "**The default `crowd` meets all 6 limits that we had set.**",
        "reaches .072±.001 (A8) against the default and\n.140±.001 (A8) against GHOST",
        "A fresh pseudonym per session leaves .063±.001 (A8).",
        "|worst case with a 5% leak, minus leak-only|at most .015|+.012±.000↑|yes|",
        "no adversary is clearly better than `stay` against crowd, crowd (draw=popular), ",
        "Clearly lower worst case than the default: none.",
        "|crowd|.072±.001 (A8)|.063±.001 (A8)|-.009±.000↓|+.003±.000↑|-.007±.000↓|",
        "worst case is clearly above leak-stay (+.002±.000↑):\nthe release adds to what the leak gives",
        "Clearly lower worst case than the default:\nnone.",
        "|k-anonymous|.140|+.068±.000↑|",
        "|crowd (draw=even)|.074|+.002±.000↑|.80|+.00±.00|.580|+.000±.000|.014|.06|",
        "For every victim, the default has a lower mean worst case",
        "Four instead of one do not clearly help it against crowd (+.000±.000).",
        "Crowds of one category need venues that are further apart, and still protect less.",
        "## As more leaks",
        "The default is clearly above leak-stay at 4 of 4 ratios, GHOST at 4.",
        "|minus leak-stay|+.002±.000↑|+.002±.000↑|+.002±.000↑|+.002±.000↑|",
    ):
        assert expected in text
    assert "not measured yet" not in text.lower()
    assert "releases are newer here" not in text  # the figures of GHOST are the same in all tables


def test_the_frontier_page_shows_learned_sets_beside_the_category_rule(measured: Path, tmp_path: Path) -> None:
    """Facts of the data are shown where they are known, and protection where it was measured."""
    shutil.copytree(measured, tmp_path / "results")
    text = pages.render("frontier", tmp_path / "results")
    for kind, match in (("exact", "1.00"), ("learned", ".06"), ("any", ".06")):
        assert f"\n|GHOST (category={kind})|.86|{'1.90' if kind == 'exact' else '.80'}|{match}|-8.0|.030|" in text
    assert "Learned sets do not clearly change the worst case of GHOST (+.000±.000)." in text
    assert "Among venues within 1 km" not in text
    shutil.copy(ROOT / "results" / "data-facts.json", tmp_path / "results")
    text = pages.render("frontier", tmp_path / "results")
    assert "|precision|2.8%|7.1%|8.2%|9.6%|11.5%|14.2%|22%|" in text


def test_the_frontier_page_lists_what_is_not_measured_yet(measured: Path, tmp_path: Path) -> None:
    lacking = [
        ("crowd method.category=exact", "distilled"),
        ("crowd identity.pseudonyms=session", "relink"),
        ("k-anonymous", "none"),
    ]
    path = tmp_path / "frontier-strong.jsonl"
    shutil.copy(measured / "settings.json", tmp_path)
    shutil.copy(measured / "leaks-strong.jsonl", tmp_path)
    with (measured / path.name).open() as lines:
        kept = [
            line for line in lines if (json.loads(line)["method"], json.loads(line).get("adversary")) not in lacking
        ]
    path.write_text("".join(kept))
    text = pages.render("frontier", tmp_path)
    names = "crowd (category=exact); crowd (pseudonyms=session); k-anonymous; other victims; several releases"
    names += "; learned candidate sets"
    assert "## Candidate sets without categories" in text
    assert "|GHOST (category=learned)|" not in text
    assert f"\n\n**Not measured yet**: {names}.\n\n" in text
    assert "meets 5 of 6 limits that we had set; one is not measured yet.**" in text
    assert "|the same with a pseudonym per session|at most .005|not measured yet|-|" in text
    assert "Their effect is not measured yet." in text
    assert re.findall(r"^\|(?:crowd \(category=exact\)|crowd \(pseudonyms=session\)|k-anonymous)\|", text, re.M) == []
    assert {"## Other victims", "## As more leaks", "## Several releases"} & set(text.splitlines()) == {
        "## As more leaks"
    }
    assert "Crowds of one category" not in text


@pytest.mark.parametrize(
    ("adversary", "accuracy", "expected"),
    [
        (
            "hidden-markov",
            0.09,
            ("5 of 6 limits that we had set and misses 1.**", "|+.030±.000↑|**no**|", "reaches .090±.001 (A9)"),
        ),
        (
            "habits",
            0.08,
            (
                "4 of 6 limits that we had set and misses 2.**",
                "stay` against crowd (draw=popular), ",
                "\n**Against the default one is**, by",
            ),
        ),
        ("leak-mixed", 0.074, ("meets all 6 limits", "reaches .074±.001 (leak-mixed) against the default")),
    ],
)
def test_the_frontier_page_follows_the_results(
    measured: Path, tmp_path: Path, adversary: str, accuracy: float, expected: tuple[str, ...]
) -> None:
    text = pages.render("frontier", changed(measured, tmp_path / "results", "crowd", adversary, accuracy))
    assert [part for part in expected if part not in text] == []


def test_a_claim_fails_when_results_change(measured: Path, tmp_path: Path) -> None:
    results = changed(measured, tmp_path / "results", "crowd", "hidden-markov", 0.19)
    done = ghostpoi("study", "page", "frontier", "-o", tmp_path / "page.md", "--results", results)
    assert done.returncode == 2
    assert "page frontier: the results contradict a claim" in done.stderr
    assert "crowd is clearly below ghost in frontier-strong: mean km -1.1000±.0000↓" in done.stderr
    assert "worst case +.0500±.0000↑" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "page.md").exists()


def test_pages_on_the_command_line(measured: Path, tmp_path: Path) -> None:
    done = ghostpoi("study", "page", "frontier", "-o", tmp_path / "page.md", "--results", measured)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("page.md")
    assert "(figures/frontier-strong.svg)" in (tmp_path / "page.md").read_text("utf-8")
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"frontier-strong.svg"}
    done = ghostpoi("study", "page", "nothing", "-o", tmp_path / "page.md")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is no page 'nothing'; pages are reproduction, frontier" in done.stderr


def test_pages_need_a_folder_and_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent does not exist"):
        pages.write("frontier", tmp_path, tmp_path / "absent" / "page.md", None, print)
    with pytest.raises(InputError, match="no cell is missing: 16 are, first main-strong: transformer, random, none"):
        pages.render("reproduction", tmp_path)


def test_checks(results: Path) -> None:
    found = Results.read(results, "main", "strong")
    assert claim_checks.not_lower(found, "ghost", "random", ["none", "bridge"]).holds
    assert not claim_checks.clearly_higher(found, "ghost", "random", ["none", "bridge"]).holds
    assert not claim_checks.unclear(found, "ghost", "pgd", "none").holds  # PGD was not measured
    assert claim_checks.holds("half", 1 > 2, 0.5) == (False, "half: .5000")
    assert claim_checks.ranking(found, ["ghost", "random"], "none") == ["random", "ghost"]
    missing = claim_checks.complete(found)
    assert (missing.holds, missing.text.split(",")[0]) == (False, "no cell is missing: 84 are")
    assert claim_checks.complete(Results.read(ROOT / "results", "main", "strong").measured).holds
    assert claim_checks.facts("commit", found) == "abcdefg"
