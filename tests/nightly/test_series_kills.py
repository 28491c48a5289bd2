"""A run that is killed at any moment: ledger and release agree afterwards, and the same command mends all.

A sixteenth of the 1,000 kills of `test_kills`, where GHOSTPOI_KILLS sets another number. The moments are spread over
everything that the run does to files.
"""

import json
import os
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from monthly_city import content, days, release_in
from small_city import Release, called, scratch
from test_kills import SIGNS, ask, server

from ghostpoi.release.series import add

__all__ = ["server"]

KILLS = -(-int(os.environ.get("GHOSTPOI_KILLS", "1000")) // 16)


def words(folder: Path) -> list[str]:
    """The second release of the series, which repeats some rows of the first."""
    return ["protect", str(days(15, 40)), "-o", str(folder / "second"), "--series", str(folder / "series")]


@cache
def begun() -> Path:
    """A folder with a series of one release."""
    folder = scratch() / "series-kills"
    folder.mkdir()
    release_in(folder / "series", days(0, 20), folder / "first")
    return folder


@cache
def whole() -> Path:
    """The folder after an undisturbed run."""
    folder = Path(shutil.copytree(begun(), scratch() / "series-whole"))
    assert called(*words(folder)).returncode == 0
    return folder


def data(folder: Path) -> dict[str, bytes]:
    """The second release, but for its signature."""
    return content(folder / "second", lambda path: path.name == "manifest.sig")


def ledger(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "series" / "series.json").read_text())["releases"]
    return found


@pytest.mark.parametrize("number", range(KILLS))
def test_a_kill_at_any_moment(number: int, server: subprocess.Popen[str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(begun(), tmp_path / "here"))
    touched = touches(server)
    last, sign = 1 + (number * (touched - 1)) // max(1, KILLS - 1), SIGNS[number % 3]
    code, _, _ = ask(server, words(folder), folder, last=last, sign=sign)
    assert code in ((-sign,) if sign == signal.SIGKILL else (-sign, 130, 0))  # at the very end, it is too late
    agrees(folder)
    done = called(*words(folder), "--resume")
    if done.returncode == 2:  # it was killed after all was done
        assert "exists already" in done.stderr
        done = called(*words(folder), "--force")
    assert done.returncode == 0, done.stderr
    assert data(folder) == data(whole())
    assert [one["status"] for one in ledger(folder)] == ["complete"] * 2
    assert drawn(folder) == drawn(whole())
    verified = called("series", "verify", folder / "series")
    assert verified.returncode == 0, verified.stdout
    assert called("verify", folder / "second", "--against", days(15, 40)).returncode == 0
    assert not list(folder.rglob(".*"))


@cache
def touches(server: subprocess.Popen[str]) -> int:
    """How often an undisturbed run touches files."""
    folder = Path(shutil.copytree(begun(), scratch() / "series-counted"))
    code, _, touched = ask(server, words(folder), folder)
    assert code == 0
    return touched


def drawn(folder: Path) -> int:
    """How many rows the series has drawn."""
    rows: int = json.loads(called("series", "show", folder / "series", "--json").stdout)["rows"]
    return rows


def agrees(folder: Path) -> None:
    """A release is in its place only if the ledger knows it, with the same data; the note is never half-written."""
    entries = ledger(folder)
    assert [one["status"] for one in entries][:1] == ["complete"]
    if (folder / "second").exists():
        manifest = json.loads((folder / "second" / "manifest.json").read_text())
        assert len(entries) == 2
        assert entries[1]["data_sha256"] == manifest["data"]["sha256"]
        assert called("verify", folder / "second").returncode == 0
    elif len(entries) == 2:
        assert entries[1]["status"] == "begun"
        named = called("series", "verify", folder / "series", "--json")
        assert named.returncode == 1
        assert "repeat its protect command with --resume" in named.stdout
    assert called("series", "show", folder / "series").returncode == 0


def killed(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Run the second release; it ends where it would call this function."""

    def end(*arguments: Any, **more: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(add.SeriesRelease, name, end)
        assert called(*words(folder)).returncode == 130


def test_a_release_that_has_its_place_is_noted_as_complete_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(begun(), tmp_path / "here"))
    killed(folder, monkeypatch, "complete")
    assert [one["status"] for one in ledger(folder)] == ["complete", "begun"]
    assert "the next protect notes it as complete" in called("series", "verify", folder / "series", "--json").stdout
    release_in(folder / "series", days(40, 45), folder / "third")
    assert [one["status"] for one in ledger(folder)] == ["complete"] * 3


def test_the_draws_of_an_interrupted_release_stay_even_if_another_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been copied from its place before the ledger said so."""
    folder = Path(shutil.copytree(begun(), tmp_path / "here"))
    killed(folder, monkeypatch, "complete")
    kept = (folder / "second" / "checkins.csv").read_bytes()
    shutil.rmtree(folder / "second")
    release_in(folder / "series", days(40, 45), folder / "third")
    assert [one["status"] for one in ledger(folder)] == ["complete", "begun", "complete"]
    again: Release = release_in(folder / "series", days(15, 40), folder / "again")
    assert again.data.read_bytes() == kept
    assert drawn(folder) == drawn(whole()) + len(content_rows(days(40, 45)))


def content_rows(file: Path) -> list[str]:
    return file.read_text().splitlines()[1:]


def test_a_first_release_that_is_interrupted_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path, monkeypatch, "begin")
    assert ledger(tmp_path) == []
    assert called(*words(tmp_path), "--resume").returncode == 0
    assert [one["status"] for one in ledger(tmp_path)] == ["complete"]


def test_a_series_without_a_release_takes_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path, monkeypatch, "begin")
    done = called(*words(tmp_path), "--force", "--set", "method.size=8")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "series" / "series.json").read_text())["settings"]["method"]["size"] == 8
