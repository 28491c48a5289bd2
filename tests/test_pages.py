"""The result pages: what is committed follows from the results, and a claim that does not hold stops the build."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, ghostpoi
from fake_results import Fabricated

from ghostpoi.cli.demo import DAYS, POIS, SEED, USERS
from ghostpoi.errors import InputError
from ghostpoi.study import claim_checks, pages
from ghostpoi.study.results import Results

PAGES = ("reproduction", "adaptive")


def committed(name: str) -> Path:
    return ROOT / "docs" / "results" / f"{name}.md"


@pytest.mark.parametrize("name", PAGES)
def test_committed_pages_follow_from_the_results(name: str) -> None:
    command = f"ghostpoi study page {name} -o docs/results/{name}.md --figures docs/figures"
    text = pages.render(name, ROOT / "results", "../figures")
    assert committed(name).read_text("utf-8") == text, f"docs/results/{name}.md is stale; run: {command}"
    assert command in text


def test_pages_are_short_and_link_to_what_is_there() -> None:
    texts = {name: committed(name).read_text("utf-8") for name in PAGES}
    assert sum(len(text.split()) for text in texts.values()) <= 9500
    for text in texts.values():
        figures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
        assert figures
        assert all((committed("adaptive").parent / figure).is_file() for figure in figures)
        assert "not measured" not in text.replace("was not measured", "")
        assert "\n\n\n" not in text


def test_the_adaptive_page_names_the_city_of_the_demonstration() -> None:
    city = f"--users {USERS} --pois {POIS} --days {DAYS} --seed {SEED}"
    assert city in committed("adaptive").read_text("utf-8")


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
    return tmp_path / "adaptive.md"


def test_a_true_claim_leaves_no_trace(results: Path, template: Path) -> None:
    template.write_text(
        '{% set r = study("main") %}\nGHOST reaches {{ show(r.value("ghost", "none")) }}.\n'
        '{{- claim(clearly_higher(r, "ghost", "random", "none"), unclear(r, "ghost", "random", "bridge")) }}\n'
    )
    assert pages.render("adaptive", results) == "GHOST reaches .0510±.0010.\n"


def test_a_false_claim_stops_the_build(results: Path, template: Path, tmp_path: Path) -> None:
    template.write_text(
        'GHOST wins. {{ claim(clearly_lower(study("main"), "ghost", "random", ["none", "bridge"])) }}\n'
    )
    output = tmp_path / "page.md"
    with pytest.raises(InputError) as e:
        pages.write("adaptive", results, output, None, print)
    assert str(e.value) == (
        "page adaptive: the results contradict a claim; correct the template. Claim: ghost is clearly below random in "
        "main-strong: A1 as released +.0200±.0000↑, A2 denoising bridge +.0000±.0000"
    )
    assert not output.exists()


def test_a_claim_fails_when_results_change(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "results", tmp_path / "results")
    path = tmp_path / "results" / "adaptive-strong.jsonl"
    lines = path.read_text("utf-8").splitlines()
    found = [n for n, line in enumerate(lines) if '"method": "crowd", "adversary": "hidden-markov"' in line]
    lines[found[0]] = re.sub(r'"all": {"acc@1": \[[^]]+\]', '"all": {"acc@1": [0.19, 0.19, 0.19]', lines[found[0]])
    path.write_text("\n".join(lines) + "\n")
    done = ghostpoi("study", "page", "adaptive", "-o", tmp_path / "page.md", "--results", tmp_path / "results")
    assert done.returncode == 2
    assert "page adaptive: the results contradict a claim" in done.stderr
    assert "crowd is clearly below ghost in adaptive-strong: worst case +.0453" in done.stderr
    assert done.stderr.count("\n") == 1


def test_pages_on_the_command_line(tmp_path: Path) -> None:
    done = ghostpoi("study", "page", "adaptive", "-o", tmp_path / "page.md")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("page.md")
    assert "(figures/worst-strong.svg)" in (tmp_path / "page.md").read_text("utf-8")
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"worst-strong.svg", "trade-off-strong.svg"}
    done = ghostpoi("study", "page", "nothing", "-o", tmp_path / "page.md")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is no page 'nothing'; pages are reproduction, adaptive" in done.stderr


def test_pages_need_a_folder_and_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent does not exist"):
        pages.write("adaptive", tmp_path, tmp_path / "absent" / "page.md", None, print)
    with pytest.raises(InputError, match="no cell is missing: 56 are, first main-strong: transformer, ghost, none"):
        pages.render("reproduction", tmp_path)
    shutil.copytree(ROOT / "results", tmp_path / "results")
    (tmp_path / "results" / "bench-scoring.json").unlink()
    with pytest.raises(InputError, match=r"lacks something that the page needs .*manifold_share"):
        pages.render("reproduction", tmp_path / "results")


def test_checks(results: Path) -> None:
    found = Results.read(results, "main", "strong")
    assert claim_checks.not_lower(found, "ghost", "random", ["none", "bridge"]).holds
    assert not claim_checks.clearly_higher(found, "ghost", "random", ["none", "bridge"]).holds
    assert not claim_checks.unclear(found, "ghost", "pgd", "none").holds  # PGD was not measured
    assert claim_checks.holds("half", 1 > 2, 0.5) == (False, "half: .5000")
    assert claim_checks.ranking(found, ["ghost", "random"], "none") == ["random", "ghost"]
    missing = claim_checks.complete(found)
    assert (missing.holds, missing.text.split(",")[0]) == (False, "no cell is missing: 52 are")
    assert claim_checks.complete(Results.read(ROOT / "results", "main", "strong")).holds
    assert claim_checks.facts("commit", found) == "abcdefg"
