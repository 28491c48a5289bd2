"""Messages in the API: the same texts as on the command line, with keywords in place of options."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

import ghostpoi
from ghostpoi.api.wording import PROSE, kinds_of, python_call, with_keywords
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.publish.methods import METHODS

STEPS = ("audit", "choose", "export", "inspect", "protect", "report", "synth", "verify")
KINDS = {name: kind for step in STEPS for name, kind in kinds_of(getattr(ghostpoi, step)).items()}
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-o)(?![\w-])(?: ([a-z]+)(?=[,;:.)]*(?:\s|$)))?")
ONLY_COMMANDS = {"--cities", "--travellers", "--rows-per-part", "--format", "--json"}
VALUES = {*METHODS, *VICTIMS, "auto", "cpu", "cuda", "dask", "drop", "keep", "refuse", "page", "withhold"}

CASES = {
    "leave --seed out": "leave seed= out",
    "replace it with --force": "replace it with force=True",
    "use --no-store": "use store=False",
    "name it with --map poi=COLUMN, or": 'name it with map={"poi": "COLUMN"}, or',
    "widen it with --set method.reach_km=20 or --map category=COLUMN": (
        'widen it with set={"method.reach_km": 20} or map={"category": "COLUMN"}'
    ),
    "leave them out with --drop a --drop 'b c', or keep them": 'leave them out with drop=["a", "b c"], or keep them',
    "--keep x and --drop x contradict each other": 'keep=["x"] and drop=["x"] contradict each other',
    "state it with --decimal ,": 'state it with decimal=","',
    "allow more with --max-size 20GB": 'allow more with max_size="20GB"',
    "--leak 1.5: give a share": "leak=1.5: give a share",
    "--time-format 'x y': give the form": 'time_format="x y": give the form',
    "-o /a/b c/page.html: the folder": 'output="/a/b c/page.html": the folder',
    "a column --x-y and a re-drop--keep": "a column x_y= and a re-drop--keep",
}


@pytest.mark.parametrize("message", CASES)
def test_options_become_keywords(message: str) -> None:
    assert with_keywords(message, KINDS, ["/a/b c/page.html"]) == CASES[message]


@given(st.text(st.characters(blacklist_characters="-")))
def test_a_message_without_options_stays_as_it_is(message: str) -> None:
    assert with_keywords(message, KINDS) == message


def test_a_step_is_written_as_a_call() -> None:
    keywords: dict[str, Any] = {
        "set": ["method.size=8"], "map": {"poi": "spot"}, "keep": ['a "b"'], "drop": [], "decimal": ",", "config": None,
    }  # fmt: skip
    written = 'table, set={"method.size": 8}, map={"poi": "spot"}, keep=["a \\"b\\""], decimal=","'
    assert python_call("protect", "the table", keywords) == f"ghostpoi.protect({written})"


def messages() -> Iterator[tuple[str, str]]:
    """Every text of the package that names an option, and its place; what is inserted into it shows as …."""
    for path in sorted((ROOT / "ghostpoi").rglob("*.py")):
        own = path.relative_to(ROOT / "ghostpoi")
        if own.parts[0] in ("cli", "study", "api") or (own.parts[0] == "exports" and own.name != "write.py"):
            continue  # no step of the API says these, or they are lines of a shell
        for number, text in _texts(path):
            if OPTION.search(text):
                yield f"{own}:{number}", text


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            yield node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


MESSAGES = dict(messages())


def test_messages_are_found() -> None:
    assert len(MESSAGES) > 80


@pytest.mark.parametrize("place", MESSAGES)
def test_every_option_of_a_message_is_a_keyword_of_a_step(place: str) -> None:
    text = MESSAGES[place]
    said = with_keywords(text, KINDS)
    assert not re.search(r"(?<![\w-])--[a-z]|(?<![\w-])-o\b", said), said
    for option, word in OPTION.findall(text):
        name = {"-o": "output"}.get(option, option.removeprefix("--").replace("-", "_"))
        known = name in KINDS or KINDS.get(name.removeprefix("no_")) == "flag"
        assert known or option in ONLY_COMMANDS, f"{option} is no keyword: {text}"
        flag = KINDS.get(name, "flag") == "flag"
        assert flag or not word or word in PROSE | VALUES, f"is {word!r} a value of {option}? If not, add it to PROSE"
