"""The wheel in an environment with its base dependencies alone: what works, and what names the extra that it needs."""

import os
import subprocess
import tomllib
import venv
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from small_city import Done, city, scratch, sentence
from wheels import pip, wheel

MODELS = "this needs torch, which is not installed; install it with: pip install 'ghostpoi[models]'"


FIGURES = "this needs matplotlib, which is not installed; install it with: pip install 'ghostpoi[report]'"


OFFLINE = """import socket
def refuse(*words):
    raise SystemExit("something asked for the network")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
"""


@cache
def project() -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


@cache
def environment() -> Path:
    """A fresh environment without extras, and without a network."""
    folder = scratch() / "environment"
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in base_dependencies():
        for entry in {file.parts[0] for file in distribution(name).files or ()} - {"..", "__pycache__"}:
            (site / entry).symlink_to(distribution(name).locate_file(entry).resolve())
    (site / "sitecustomize.py").write_text(OFFLINE)
    pip("--python", folder, "install", "--no-deps", "--no-index", wheel())
    pip("--python", folder, "check")
    return folder / "bin"


def base_dependencies() -> set[str]:
    """The packages that `pip install ghostpoi` brings, directly or through another package."""
    todo, found = [Requirement(text) for text in project()["dependencies"]], set()  # type: ignore[attr-defined]
    while todo:
        name = canonicalize_name(todo.pop().name)
        if name not in found:
            found.add(name)
            more = map(Requirement, distribution(name).requires or [])
            todo += [r for r in more if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


def run(program: str, *words: object) -> Done:
    """Run a program of the environment, in a folder from which the repository cannot be imported."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [environment() / program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=clean, cwd=scratch(), timeout=600)


def test_the_quick_demo_runs_without_torch(tmp_path: Path) -> None:
    done = run("ghostpoi", "demo", "--quick", "-o", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pass  ") == 15
    assert "24,415 rows released with crowd" in done.stdout  # as README.md shows it
    assert "audit" not in [line.split()[2] for line in done.stdout.splitlines() if line.startswith("$ ")]
    page = tmp_path / "demo" / "release" / "report.html"
    assert done.stdout.splitlines()[-1].endswith(str(page))
    assert page.stat().st_size > 1_000_000  # it holds the library that draws its charts


NEEDS = {
    "a method with models": ("protect", "CITY", "-o", "OUT", "--method", "ghost"),
    "crowd with the manifold term": ("protect", "CITY", "-o", "OUT", "--set", "method.beta=0.5"),
    "an estimate of one": ("protect", "CITY", "-o", "OUT", "--method", "pgd", "--dry-run"),
    "audit": ("audit", "CITY", "OUT"),
    "choose": ("choose", "CITY", "-o", "OUT"),
    "demo": ("demo", "-o", "OUT"),
    "a study": ("study", "run", "main", "--data", "CITY", "--results", "OUT"),
    "the list of studies": ("study", "list"),
}


@pytest.mark.parametrize("case", NEEDS)
def test_what_needs_models_names_the_extra(case: str, tmp_path: Path) -> None:
    places = {"CITY": str(city()), "OUT": str(tmp_path / "out")}
    done = run("ghostpoi", *(places.get(word, word) for word in NEEDS[case]))
    assert (sentence(done), done.stdout) == (MODELS, "")
    assert not list(tmp_path.iterdir())


def test_the_figures_of_a_study_name_their_extra(tmp_path: Path) -> None:
    assert sentence(run("ghostpoi", "study", "figures", "main", "-o", tmp_path / "figures")) == FIGURES


def test_plugins_are_listed_but_for_the_models() -> None:
    done = run("ghostpoi", "plugins")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if MODELS in line] == [f"  (not listed)    {MODELS}"]
    assert "  crowd " in done.stdout


@pytest.mark.parametrize("method", ["random", "k-anonymous", "randomised-response", "geo-indistinguishability"])
def test_other_methods_without_models_protect(method: str, tmp_path: Path) -> None:
    done = run("ghostpoi", "protect", city(), "-o", tmp_path / "r", "--method", method, "--device", "cuda")
    assert (done.returncode, done.stderr) == (0, "")
    assert run("ghostpoi", "verify", tmp_path / "r", "--against", city()).returncode == 0


def test_the_python_api_needs_no_torch() -> None:
    code = (
        "import ghostpoi, polars as pl\n"
        "table = pl.DataFrame([(u, f'v{(u * i) % 30}', 'c', 40 + (u * i) % 30 / 1e3, -74.0, 10**9 + 7200 * i)\n"
        "    for u in range(9) for i in range(60)], ['user', 'poi', 'category', 'lat', 'lon', 'time'], orient='row')\n"
        "assert (ghostpoi.protect(table).table['poi'] != table['poi']).any()\n"
        "try: ghostpoi.protect(table, 'ghost')\n"
        "except ghostpoi.InputError as e: print(e)\n"
    )
    done = run("python", "-c", code)
    assert (done.stdout, done.stderr) == (f"{MODELS}\n", "")
