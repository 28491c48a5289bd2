"""The tools that exports are for, each in a Python that has it."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

FOLDERS = {"recbole": "recbole-skmob", "skmob": "recbole-skmob", "datasets": "datasets"}  # of `make tools`


def load(module: str, script: str, *arguments: str, folder: Path) -> list[str]:
    """What a script prints, in words, that loads files of a folder with the tool itself."""
    command = [_python(module), "-c", script, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def _python(module: str) -> str:
    """The Python that has a tool, or a skip that says how to get one."""
    variable, built = f"GHOSTPOI_{module.upper()}", ROOT / ".tools" / FOLDERS[module]
    if named := os.environ.get(variable):
        return named
    if (built / "ready").exists():
        return str(built / "bin" / "python")
    if importlib.util.find_spec(module):
        return sys.executable
    pytest.skip(f"{module} is not installed; run make tools, or set {variable} to a Python that has it")
