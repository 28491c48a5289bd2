"""The result pages that are committed follow from the results, are short, and link to what is there."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from ghostpoi.errors import InputError
from ghostpoi.study import pages

PAGES = ("reproduction", "frontier")


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
    prose = [line for text in texts.values() for line in text.splitlines() if "|" not in line]
    assert sum(len(line.split()) for line in prose) <= 3100
    for text in texts.values():
        figures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
        assert figures
        assert all((committed("frontier").parent / figure).is_file() for figure in figures)
        # A page may lack only what it says is to come.
        assert re.findall(r"(?<!was )not measured(?! yet| apart)", text) == []
        assert "not measured yet" not in text or "**Not measured yet**, though" in text
        assert "\n\n\n" not in text


def test_a_page_without_its_bench_is_refused(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "results", tmp_path / "results")
    (tmp_path / "results" / "bench-scoring.json").unlink()
    with pytest.raises(InputError, match=r"lacks something that the page needs .*manifold_share"):
        pages.render("reproduction", tmp_path / "results")
