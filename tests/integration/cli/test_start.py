"""Commands that need no models start fast: they import neither torch nor what only other files or methods need.

What a command imports before it looks at its input delays every call. A path that is not there shows what that is.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from sample_releases import copied
from small_city import MAP, SETS, city, release, rich_parquet

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.draw.catalogue import KEPT as KEPT_BY_SERIES
from ghostpoi.draw.methods import METHODS
from ghostpoi.exports import EXPORTS
from ghostpoi.plugins import Registry

SLOW = {"torch", "safetensors", "scipy.spatial", "pyarrow", "pandas", "matplotlib", "jinja2", "obstore"}
FOR_RESULTS = {"rich.console", "rich.table"}
REGISTRIES: tuple[Registry, ...] = (METHODS, ADVERSARIES, EXPORTS)
MISSING = {
    "inspect": ["inspect", "missing.csv"],
    "verify": ["verify", "missing"],
    "report": ["report", "missing"],
    "protect": ["protect", "missing.csv", "-o", "release"],
}


SCRIPT = """
import sys
from ghostpoi.cli import main
for words in {commands}:
    sys.argv = ["ghostpoi", *words]
    try: main()
    except SystemExit as e: assert (e.code or 0) == {code}, e.code
    print("MODULES", *sys.modules, sep=",")
"""


def after_each(*commands: tuple[object, ...], code: int = 0, cwd: Path | None = None) -> list[set[str]]:
    """All modules that are imported after each of these commands, which run one after another in a fresh process."""
    script = SCRIPT.format(commands=[[*map(str, words)] for words in commands], code=code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return [{*line.split(",")[1:]} for line in done.stdout.splitlines() if line.startswith("MODULES,")]


def modules(*words: object, code: int = 0, cwd: Path | None = None) -> set[str]:
    """The modules that a command imports, in a process of its own."""
    return after_each(words, code=code, cwd=cwd)[0]


@cache
def plugin_modules() -> dict[str, str]:
    """The name of a built-in plug-in of each module that holds one."""
    return {type(registry[name]).__module__: name for registry in REGISTRIES for name in registry.builtin}


def plugins(found: set[str]) -> set[str]:
    """The plug-ins among modules, without the methods whose sets a series can keep: it knows them by their classes."""
    kept = {kind.__module__ for kind in KEPT_BY_SERIES}
    return {name for module, name in plugin_modules().items() if module in found - kept}


def test_a_publisher_s_commands_import_nothing_slow(tmp_path: Path) -> None:
    release = tmp_path / "r"
    found = after_each(
        ("inspect", city()), ("protect", city(), "-o", release, *SETS), ("verify", release, "--against", city()),
        ("report", release), ("protect", city(), "-o", tmp_path / "g", "--method", "ghost", *SETS),
    )  # fmt: skip
    *without_models, ghost = (modules & SLOW for modules in found)
    crowds = {"scipy.spatial"}  # which venues a chain of short steps joins
    assert without_models == [crowds, crowds, crowds, crowds | {"jinja2"}]
    assert ghost >= {"torch", "safetensors"}


@pytest.mark.parametrize("command", MISSING)
def test_the_input_is_looked_at_before_anything_else_is_imported(command: str, tmp_path: Path) -> None:
    found = modules(*MISSING[command], code=2, cwd=tmp_path)
    assert found & (SLOW | FOR_RESULTS) == set()
    assert plugins(found) == set()
    formats = {f"ghostpoi.formats.{name}" for name in ("excel", "records")}
    assert found & formats == set()
    assert found & {"ghostpoi.release.compare", "ghostpoi.reports.charts"} == set()


def test_a_release_loads_no_method_but_its_own() -> None:
    found = after_each(*(("verify", release(method).folder) for method in ("crowd", "random")))
    assert [plugins(modules) for modules in found] == [set(), {"random"}]


def test_a_page_loads_no_adversary_that_it_does_not_name(tmp_path: Path) -> None:
    assert plugins(modules("report", copied(release("random"), tmp_path))) == {"random"}


def test_parquet_alone_needs_pyarrow() -> None:
    found = modules("inspect", rich_parquet(), *MAP) & SLOW
    assert found - {"pandas", "scipy.spatial"} == {"pyarrow"}  # which imports pandas where it is installed


def test_nobody_waits_at_the_exit_for_a_search_among_all_objects() -> None:
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 10_000)); import ghostpoi.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
