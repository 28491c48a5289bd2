"""Commands that need no models start fast: they import neither torch nor what only other files or methods need."""

import subprocess
import sys
from pathlib import Path

from small_city import MAP, SETS, city, rich_parquet

SLOW = ("torch", "safetensors", "scipy.spatial", "pyarrow", "pandas", "matplotlib", "plotly", "jinja2")


def imported(*words: object) -> set[str]:
    """Which slow modules a command imports, in a process of its own."""
    code = (
        f"import sys\nfrom ghostpoi.cli import main\nsys.argv = {['ghostpoi', *map(str, words)]!r}\n"
        "try: main()\nexcept SystemExit as e: assert not e.code, e.code\n"
        f"print(*(name for name in {SLOW!r} if name in sys.modules), sep=',')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(filter(None, done.stdout.splitlines()[-1].split(",")))


def test_a_publisher_s_commands_import_nothing_slow(tmp_path: Path) -> None:
    assert imported("inspect", city()) == set()
    assert imported("protect", city(), "-o", tmp_path / "r", *SETS) == set()
    assert imported("verify", tmp_path / "r", "--against", city()) == set()
    assert imported("report", tmp_path / "r") == {"plotly", "jinja2"}
    assert imported("protect", city(), "-o", tmp_path / "g", "--method", "ghost", *SETS) >= {"torch", "safetensors"}


def test_parquet_alone_needs_pyarrow() -> None:
    found = imported("inspect", rich_parquet(), *MAP)
    assert found - {"pandas"} == {"pyarrow"}  # which imports pandas where it is installed
