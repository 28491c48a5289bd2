"""Benchmarks that start processes: what they cost is measured, and busy processes end."""

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_city import called

from benchmarks import files
from benchmarks.__main__ import main
from ghostpoi.data.synthetic_files import write_city
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


def test_the_command_measures_a_small_world(tmp_path: Path) -> None:
    output, folder = tmp_path / "scale.json", tmp_path / "worlds"
    folder.mkdir()
    size = "--cities", 2, "--users", 15, "--pois", 60, "--days", 60
    assert called("synth", *size, "-o", folder / "rows-1000").returncode == 0  # it is not made again
    options = "--rows", 1000, "--workers", 1, "--ghost", 2, "--folder", folder
    done = called("scale", *options, "-o", output, "--json", main=main)
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())
    assert json.loads(done.stdout) == result
    assert os.listdir(folder) == ["rows-1000"]  # only the world stays
    [one] = result["sizes"]
    assert one["rows"] == pl.scan_parquet(folder / "rows-1000").select(pl.len()).collect().item()
    assert one["ratio"] == one["protect"]["seconds"] / one["polars"]["seconds"]
    assert one["protect"]["peak_bytes"] > one["protect"]["worker_bytes"] > 0  # Dask's worker is counted
    assert one["protect"]["disk_bytes"] > one["bytes"]
    assert (one["regions"], result["ghost"]["regions"], result["ghost"]["of_regions"]) == (2, 2, 2)
    assert result["ghost"]["rows"] == one["rows"]
    assert result["ghost"]["extrapolated"][0]["seconds"] == pytest.approx(result["ghost"]["seconds"])
    assert (result["engine"], result["peak_is"], result["growth"]) == ("dask", "all processes", None)
