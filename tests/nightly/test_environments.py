"""The same bytes and exit codes in other surroundings: locale, time zone, python -O, the clock set back."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT
from small_city import SEED, SETS, called, city, release

BACK = "import time; now = time.time; time.time = lambda: now() - 4e8; from ghostpoi.cli import main; main()"
SURROUNDINGS: dict[str, dict[str, str]] = {
    "no locale": {"LC_ALL": "C", "PYTHONUTF8": "0"}, "another locale": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    "Kiritimati": {"TZ": "Pacific/Kiritimati"}, "no such zone": {"TZ": "Nowhere"},
    "optimised": {"PYTHONOPTIMIZE": "1"}, "without docstrings": {"PYTHONOPTIMIZE": "2"},
    "warnings": {"PYTHONDEVMODE": "1"}, "another hash": {"PYTHONHASHSEED": "7"},
}  # fmt: skip


def protect(folder: Path, more: dict[str, str], code: str = "from ghostpoi.cli import main; main()") -> tuple[int, str]:
    words = ["protect", city(), "-o", folder, "--method", "random", "--seed", SEED, *SETS]
    env = os.environ | {"PYTHONPATH": str(ROOT)} | more
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, env=env, errors="replace"
    )  # fmt: skip
    return done.returncode, done.stderr


def data(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("checkins.txt", "manifest.json")}


@pytest.mark.parametrize("case", SURROUNDINGS)
def test_surroundings_change_no_byte(case: str, tmp_path: Path) -> None:
    code, said = protect(tmp_path / "r", SURROUNDINGS[case])
    assert code == 0, said
    assert "Traceback" not in said
    assert data(tmp_path / "r") == data(release("random").folder)


def test_the_clock_may_be_set_back(tmp_path: Path) -> None:
    assert protect(tmp_path / "r", {}, BACK)[0] == 0
    assert data(tmp_path / "r") == data(release("random").folder)
    assert called("verify", tmp_path / "r", "--against", city()).returncode == 0


def test_two_runs_at_once(tmp_path: Path) -> None:
    """In two places both succeed; in one place, one succeeds and the other says why it does not."""
    with ThreadPoolExecutor(4) as pool:
        places = [tmp_path / "one", tmp_path / "two", tmp_path / "same", tmp_path / "same"]
        one, two, *same = pool.map(protect, places, [{}] * 4)
    assert (one[0], two[0]) == (0, 0)
    assert sorted(code for code, _ in same) == [0, 2]
    refused = next(said for code, said in same if code == 2)
    assert "another ghostpoi is writing" in refused or "exists already" in refused
    for place in places:
        assert data(place) == data(release("random").folder)
