"""Dask finds by regions what this process finds: `inspect`, `audit` and `choose`."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from small_city import called
from three_cities import SETS, three_cities

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, about sockets and event loops

LOCAL, DASK = ("--engine", "local"), ("--engine", "dask", "--workers", 2)
QUICK = ("--victim", "markov", "--no-naturalness", "--adversaries", "none,habits+leak", "--seeds", 1, "--no-store")


def found(*words: object) -> dict[str, Any]:
    done = called(*words, "--json")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    words = ("inspect", three_cities(), *SETS)
    assert found(*words, *DASK) == found(*words, *LOCAL)
    assert not list(tmp_path.glob("tmp*"))  # clean data is removed


def test_audit(tmp_path: Path) -> None:
    release = tmp_path / "release"
    done = called("protect", three_cities(), "-o", release, *LOCAL, *SETS, "--keep", "timezone_offset", "--seed", 3**60)
    assert done.returncode == 0, done.stderr
    words = ("audit", three_cities(), release, *QUICK)
    dask = found(*words, *DASK, "--cache", tmp_path / "dask")
    assert dask == found(*words, *LOCAL, "--cache", tmp_path / "local")


def test_choose(tmp_path: Path) -> None:
    words = ("choose", three_cities(), *SETS, "--keep", "timezone_offset", "--seeds", 1, "--regions", 2)

    def tried(name: str, *engine: object) -> dict[str, Any]:
        where = ("-o", tmp_path / f"{name}.html", "--cache", tmp_path / name)
        choice = found(*words, "--map", "region=city", *where, *engine)
        for trial in (*choice["tried"], choice["recommended"], choice["nearest"]):
            trial.pop("command", None)
        return choice

    dask, local = tried("dask", *DASK), tried("local", *LOCAL)
    assert dask == local
