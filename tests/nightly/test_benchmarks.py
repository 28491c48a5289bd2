"""Benchmarks that start processes: what they cost is measured, and busy processes end."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import files
from ghostpoi.data.synthetic_file import write_city
from ghostpoi.errors import InputError


def quiet(text: str) -> None:
    pass


def keys(found: dict[str, Any]) -> str:
    json.dumps(found)
    return " ".join(found)


def test_prepare_compares_with_polars_on_the_same_file() -> None:
    found = files.prepare(3000, 500, quiet)
    assert keys(found) == (
        "rows file_bytes sessions polars_seconds ghostpoi_seconds ratio polars_peak_bytes ghostpoi_peak_bytes "
        "peak_over_file_size candidate_pois candidate_seconds candidate_peak_bytes"
    )
    assert found["rows"] == pytest.approx(3000, rel=0.2)
    assert found["ratio"] == found["ghostpoi_seconds"] / found["polars_seconds"]
    assert found["peak_over_file_size"] == found["ghostpoi_peak_bytes"] / found["file_bytes"]
    assert 0 < found["sessions"] < found["rows"] / 3  # a session has three check-ins at least
    with pytest.raises(InputError, match="at least 1"):
        files.prepare(0, 500, quiet)


def test_an_estimate_comes_from_a_dry_run(tmp_path: Path) -> None:
    write_city(tmp_path / "city.txt", 40, 120, 40, 0)
    words = ("protect", tmp_path / "city.txt", "-o", tmp_path / "r")
    assert 0 < files._expected(*words) < 600
    assert not (tmp_path / "r").exists()
    with pytest.raises(InputError, match="ended with code 2: ghostpoi: "):
        files._expected("protect", tmp_path / "nowhere.txt", "-o", tmp_path / "r")


def test_a_busy_process_ends_and_its_time_is_not_ours(tmp_path: Path) -> None:
    with files._busy_process():
        write_city(tmp_path / "city.txt", 30, 90, 40, 0)
        cost = files._protect(tmp_path / "city.txt", "random")
    assert 0 < cost.cpu_seconds < 60
    assert cost.seconds > 0
