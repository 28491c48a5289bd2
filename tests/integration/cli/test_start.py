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
from ghostpoi.exports import EXPORTS
from ghostpoi.plugins import Registry
from ghostpoi.publish.kept_table import SETS as KEPT_BY_SERIES
from ghostpoi.publish.methods import METHODS

SLOW = {"torch", "safetensors", "scipy.spatial", "pyarrow", "pandas", "matplotlib", "plotly", "jinja2"}
FOR_RESULTS = {"rich.console", "rich.table"}
REGISTRIES: tuple[Registry, ...] = (METHODS, ADVERSARIES, EXPORTS)
MISSING = {
    "inspect": ["inspect", "missing.csv"],
    "verify": ["verify", "missing"],
    "report": ["report", "missing"],
    "protect": ["protect", "missing.csv", "-o", "release"],
}


def modules(*words: object, code: int = 0, cwd: Path | None = None) -> set[str]:
    """The modules that a command imports, in a process of its own."""
    script = (
        f"import sys\nfrom ghostpoi.cli import main\nsys.argv = {['ghostpoi', *map(str, words)]!r}\n"
        f"try: main()\nexcept SystemExit as e: assert (e.code or 0) == {code}, e.code\n"
        "print(*sys.modules, sep=',')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split(","))


def imported(*words: object) -> set[str]:
    """Which slow modules a command imports."""
    return modules(*words) & SLOW


@cache
def plugin_modules() -> dict[str, str]:
    """The name of a built-in plug-in of each module that holds one."""
    return {type(registry[name]).__module__: name for registry in REGISTRIES for name in registry.builtin}


def plugins(found: set[str]) -> set[str]:
    """The plug-ins among modules, without the methods whose sets a series can keep: it knows them by their classes."""
    kept = {kind.__module__ for kind in KEPT_BY_SERIES}
    return {name for module, name in plugin_modules().items() if module in found - kept}


def test_a_publisher_s_commands_import_nothing_slow(tmp_path: Path) -> None:
    assert imported("inspect", city()) == set()
    assert imported("protect", city(), "-o", tmp_path / "r", *SETS) == set()
    assert imported("verify", tmp_path / "r", "--against", city()) == set()
    assert imported("report", tmp_path / "r") == {"plotly", "jinja2"}
    assert imported("protect", city(), "-o", tmp_path / "g", "--method", "ghost", *SETS) >= {"torch", "safetensors"}


@pytest.mark.parametrize("command", MISSING)
def test_the_input_is_looked_at_before_anything_else_is_imported(command: str, tmp_path: Path) -> None:
    found = modules(*MISSING[command], code=2, cwd=tmp_path)
    assert found & (SLOW | FOR_RESULTS) == set()
    assert plugins(found) == set()
    formats = {f"ghostpoi.formats.{name}" for name in ("excel", "geojson", "json_text", "snap", "tsmc2014")}
    assert found & formats == set()
    assert found & {"ghostpoi.publish.verify.against_clean", "ghostpoi.reports.charts"} == set()


def test_a_release_loads_no_method_but_its_own() -> None:
    assert plugins(modules("verify", release("random").folder)) == {"random"}
    assert plugins(modules("verify", release("crowd").folder)) == set()


def test_a_page_loads_no_adversary_that_it_does_not_name(tmp_path: Path) -> None:
    assert plugins(modules("report", copied(release("random"), tmp_path))) == {"random"}


def test_parquet_alone_needs_pyarrow() -> None:
    found = imported("inspect", rich_parquet(), *MAP)
    assert found - {"pandas"} == {"pyarrow"}  # which imports pandas where it is installed


def test_nobody_waits_at_the_exit_for_a_search_among_all_objects() -> None:
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 10_000)); import ghostpoi.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
