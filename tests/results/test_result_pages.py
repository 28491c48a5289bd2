"""The blocks of all pages are up to date, and the result pages link to what is there."""

import re
from itertools import product

import pytest
from conftest import ROOT
from typer.main import get_command

from docs.blocks.__main__ import PAGES
from docs.blocks.common import DOCS, MARKED, filled, mains, study
from ghostpoi.cli import app
from ghostpoi.study.results import GOWALLA, NYC, Results

# The page says that the others, A2, A9, A10, A14 to A16, A20, A23 and A26, have not faced the default on this city.
FACED = {
    "none", "frequency", "bigram", "per-user", "deconvolution", "habits", "habits+leak", "posterior",
    "posterior-no-leak", "posterior-informed", "posterior-informed-no-leak",
}  # fmt: skip
RESULT_PAGES = ("results/frontier.md", "results/reproduction.md")


@pytest.mark.parametrize("name", PAGES)
def test_blocks_are_up_to_date(name: str) -> None:
    text = (DOCS / name).read_text("utf-8")
    assert MARKED.search(text)
    assert text.count("<!-- block: ") == text.count("<!-- end -->") == len(MARKED.findall(text))
    assert filled(text, PAGES[name]) == text, "a block is stale; run: make pages"


def test_a_block_gets_the_words_of_its_marker_and_leaves_the_prose() -> None:
    page = 'Before.\n\n<!-- block: twice "a b" -->\n\nold\n\n<!-- end -->\n\nAfter.\n'
    found = filled(page, {"twice": lambda words: f"{words}{words}\n"})
    assert found == 'Before.\n\n<!-- block: twice "a b" -->\n\na ba b\n\n<!-- end -->\n\nAfter.\n'


@pytest.mark.parametrize("name", RESULT_PAGES)
def test_figures_are_there(name: str) -> None:
    figures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (DOCS / name).read_text("utf-8"))
    assert figures
    assert all(((DOCS / name).parent / figure).is_file() for figure in figures)


@pytest.mark.parametrize("name", RESULT_PAGES)
def test_tables_are_whole(name: str) -> None:
    tables = [block.splitlines() for block in (DOCS / name).read_text("utf-8").split("\n\n") if block.startswith("|")]
    assert len(tables) > 10
    for table in tables:
        assert len({line.count("|") for line in table}) == 1, table[0]


def test_commands_in_the_text_exist() -> None:
    commands = get_command(app).commands["study"].commands  # type: ignore[attr-defined]
    found = [one for name in RESULT_PAGES
             for one in re.findall(r"`ghostpoi study (\w+)([^`]*)`", (DOCS / name).read_text("utf-8"))]  # fmt: skip
    assert len(found) > 20
    for name, rest in found:
        options = {option for parameter in commands[name].params for option in parameter.opts}
        assert {word for word in rest.split() if word.startswith("-")} <= options, (name, rest)
    for script in re.findall(r"python (docs/\w+\.py)", " ".join((DOCS / page).read_text() for page in RESULT_PAGES)):
        assert (ROOT / script).is_file()


@pytest.mark.parametrize(
    "results",
    [*mains(), *(study("frontier", data=data) for data in (NYC, GOWALLA)), study("rivals"), study("constraints")],
    ids=lambda r: f"{r.study.name}-{r.protocol}-{r.data}",
)
def test_no_cell_of_the_plan_is_missing(results: Results) -> None:
    some = results.study.name == "frontier" and results.data == GOWALLA
    for method, leak in product(results.methods, results.study.leak):
        attackers = [a for a in results.attackers(method) if not some or a in FACED]
        for key in (*attackers, "leak-mixed", "leak-only", "clean", "flows"):
            assert results.series(method, key, leak), (method, key, leak)
