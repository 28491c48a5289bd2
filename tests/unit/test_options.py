"""Options in messages: data until the door, where the command line and Python spell them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.api.door import python_call
from ghostpoi.errors import InputError
from ghostpoi.options import declared, in_python, in_shell, in_studio, option, options_of

SPELLED = {
    option("seed"): ("--seed", "seed="),
    option("force"): ("--force", "force=True"),
    option("no_store"): ("--no-store", "store=False"),
    option("map", "poi=COLUMN"): ("--map poi=COLUMN", 'map={"poi": "COLUMN"}'),
    option("set", "method.reach_km=20"): ("--set method.reach_km=20", 'set={"method.reach_km": 20}'),
    option("set", "a.b=x", "a.c=-1e-3"): ("--set a.b=x --set a.c=-1e-3", 'set={"a.b": "x", "a.c": -1e-3}'),
    option("drop", "a", "b c", shown=quote): ("--drop a --drop 'b c'", 'drop=["a", "b c"]'),
    option("decimal", ","): ("--decimal ,", 'decimal=","'),
    option("max_size", "20GB"): ("--max-size 20GB", 'max_size="20GB"'),
    option("leak", "1.5"): ("--leak 1.5", "leak=1.5"),
    option("time_format", "x y", shown=repr): ("--time-format 'x y'", 'time_format="x y"'),
    option("output", "/a/b c.html"): ("-o /a/b c.html", 'output="/a/b c.html"'),
    option("keep", 'a "b"\\'): ('--keep a "b"\\', 'keep=["a \\"b\\"\\\\"]'),
    option("audits", "x.json"): ("--audit x.json", 'audit=["x.json"]'),
    option("columns", "user,time"): ("--columns user,time", 'columns=["user,time"]'),
}


@pytest.mark.parametrize("marked", SPELLED)
def test_each_door_spells_an_option(marked: str) -> None:
    assert (in_shell(marked), in_python(marked)) == SPELLED[marked]
    text = f"leave {marked} out; see --help"
    assert in_shell(text) == f"leave {SPELLED[marked][0]} out; see --help"
    assert in_python("; ".join([text, marked])) == f"leave {SPELLED[marked][1]} out; see --help; {SPELLED[marked][1]}"


def test_the_studio_names_what_its_pages_ask_for_and_the_terminal_for_the_rest() -> None:
    assert in_studio(f"use {option('drop', 'a', 'b')}") == "use “leave out: a, b”"
    assert in_studio(f"use {option('set', 'a.b=1')}") == "use --set a.b=1 in a terminal"


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_value_survives(text: str, values: list[str]) -> None:
    marked = option("keep", *values)
    (named,) = options_of(f"{marked} {in_shell(text)}")
    assert [named.option.name, len(named.values)] == ["keep", len(values)]
    assert named.values == named.shown
    assert in_shell(marked) == (" ".join(f"--keep {value}" for value in named.values) or "--keep")
    assert in_shell(text) == in_python(text)


def test_an_error_names_its_options() -> None:
    error = InputError(f"no column; use {option('map', 'poi=COLUMN')} or {option('force')}")
    found = [("map", ("poi=COLUMN",)), ("force", ())]
    assert [(named.option.keyword, named.values) for named in error.options] == found
    assert str(error) == "no column; use --map poi=COLUMN or --force"
    error.spell(in_python)
    assert str(error) == 'no column; use map={"poi": "COLUMN"} or force=True'
    assert [(named.option.keyword, named.values) for named in error.options] == found


def test_a_step_is_written_as_a_call() -> None:
    keywords = {
        "set": ["method.size=8"], "map": {"poi": "spot"}, "keep": ['a "b"'], "drop": [], "decimal": ",", "config": None,
    }  # fmt: skip
    written = 'table, set={"method.size": 8}, map={"poi": "spot"}, keep=["a \\"b\\""], decimal=","'
    assert python_call("protect", "the table", keywords) == f"ghostpoi.protect({written})"
    assert python_call("protect", "the table", {"venues": "the venues"}) == "ghostpoi.protect(table, venues=venues)"


def test_options_of_one_name_are_spelled_the_same() -> None:
    spelled: dict[str, set[tuple[str, str, bool]]] = {}
    for command in ("inspect", "choose", "protect", "verify", "audit", "report", "export", "synth", "prepare"):
        for one in declared()[command].values():
            spelled.setdefault(one.name, set()).add((one.flag, one.keyword, one.is_list))
    assert [name for name, ways in spelled.items() if len(ways) > 1] == []


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module but its docstrings, with … for what is inserted."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            yield node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


MODULES = {path: path.relative_to(ROOT / "ghostpoi") for path in sorted((ROOT / "ghostpoi").rglob("*.py"))}
SHELL = re.compile(
    r"ghostpoi [\w…]+ |protect --series|--dataset|--data-|; with --private|batch-size"
)  # lines of a shell
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-o)(?![\w-])")


def test_no_message_spells_an_option_itself() -> None:
    found = [
        f"{own}:{line}: {text}"
        for path, own in MODULES.items()
        if own.parts[0] not in ("cli", "study")
        for line, text in texts(path)
        if FLAG.search(text) and not SHELL.search(text)
    ]
    assert found == []


def test_a_message_that_contains_another_one_keeps_its_options() -> None:
    """`str(e)` is spelled for the command line; `e.text` has the options as data."""
    for path in MODULES:
        if path.name in ("app.py", "errors.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler) and "InputError" in ast.dump(node.type or ast.Constant(None)):
                body = "\n".join(map(ast.unparse, node.body))
                assert not re.search(rf"{{{node.name}}}|str\({node.name}\)", body), f"{path}:{node.lineno}"


def calls(path: Path) -> Iterator[tuple[int, str]]:
    """The options that a module names with `option(...)`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "option":
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield node.lineno, str(first.value)


def test_every_option_that_a_message_names_is_declared() -> None:
    known = {name for options in declared().values() for name in options}
    found = [(own, line, name) for path, own in MODULES.items() for line, name in calls(path)]
    assert len(found) > 200
    assert [one for one in found if one[2] not in known] == []
