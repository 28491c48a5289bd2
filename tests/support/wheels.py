"""The wheel of this package, built once and offline."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from conftest import ROOT
from small_city import scratch


@cache
def wheel() -> Path:
    source = sources(scratch() / "source")
    shutil.copytree(ROOT / "ghostpoi", source / "ghostpoi", ignore=shutil.ignore_patterns("__pycache__"))
    pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", scratch() / "wheels", source)
    (found,) = (scratch() / "wheels").iterdir()
    return found


def sources(folder: Path) -> Path:
    """A folder with all that the metadata is made from."""
    folder.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def pip(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *map(str, words)], check=True)
