"""The wheel, installed offline with its base dependencies alone: what works, and what names the extra that it needs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from small_city import Done, city, scratch, sentence

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


def test_the_wheel_holds_the_whole_package_and_nothing_else() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "ghostpoi").rglob("*") if path.is_file()}
    packed = {name for name in zipfile.ZipFile(wheel()).namelist() if ".dist-info/" not in name}
    assert packed == {name for name in files if "__pycache__" not in name}


def test_the_metadata_names_extras_and_authors() -> None:
    (name,) = (n for n in zipfile.ZipFile(wheel()).namelist() if n.endswith("METADATA"))
    lines = zipfile.ZipFile(wheel()).read(name).decode().splitlines()
    assert {line.split()[1] for line in lines if line.startswith("Provides-Extra: ")} >= {"models", "report", "all"}
    assert "Author: The ghostpoi maintainers" in lines
    needed = [Requirement(line.partition(": ")[2]) for line in lines if line.startswith("Requires-Dist: ")]
    assert {r.name for r in needed if r.marker is None}.isdisjoint({"torch", "safetensors", "matplotlib"})
    by_extra = {extra: {r.name for r in needed if f'"{extra}"' in str(r.marker)} for extra in ("models", "all")}
    assert by_extra == {"models": {"torch", "safetensors"}, "all": {"ghostpoi"}}


def test_the_quick_demo_runs_without_torch(tmp_path: Path) -> None:
    done = run("ghostpoi", "demo", "--quick", "-o", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pass  ") == 13
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


@pytest.mark.parametrize("url", ["", "https://host/owner/ghostpoi/"])
def test_links_of_the_package_page_are_absolute_if_the_address_is_known(url: str, tmp_path: Path) -> None:
    source = sources(tmp_path / "source")
    (source / "ghostpoi").mkdir()
    shutil.copy(ROOT / "ghostpoi" / "__init__.py", source / "ghostpoi")
    command = [sys.executable, "setup.py", "-q", "egg_info"]
    subprocess.run(command, cwd=source, env={**os.environ, "GHOSTPOI_URL": url}, check=True, capture_output=True)
    text = (source / "ghostpoi.egg-info" / "PKG-INFO").read_text("utf-8")
    assert text.endswith((ROOT / "README.md").read_text("utf-8")) == (not url)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("#")]
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links) == bool(url)
    if url:
        assert "](https://host/owner/ghostpoi/raw/main/docs/figures/report.png)" in text
        assert "Project-URL: Source, https://host/owner/ghostpoi\n" in text
        for link in links:
            if "/main/" in link:
                assert (ROOT / link.partition("/main/")[2].partition("#")[0]).exists(), link
