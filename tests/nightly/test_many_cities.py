"""Ordinary columns are kept however many small cities there are, and however few of them a sample holds."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_city import called
from small_world import manifest, parts, protected

from ghostpoi.data.synthetic_files import World, write_world
from ghostpoi.regions import job

LOCAL = ("--engine", "local")


def random(count: int, values: int, seed: int = 0) -> pl.Series:
    return pl.Series([f"phone {n}" for n in np.random.default_rng(seed).integers(0, values, count)])


@pytest.mark.parametrize(("cities", "enough"), [(20, 1_000), (50, 2_000), (50, 300_000)])
def test_ordinary_columns_of_many_small_cities_are_kept(
    cities: int, enough: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "ENOUGH_ROWS", enough)
    write_world(
        tmp_path / "made", World(cities, 20, 60, 30, 4, 40.0, 0.2), 10_000, "parquet", lambda label, units: None
    )
    made = pl.concat([pl.read_parquet(path) for path in sorted((tmp_path / "made").iterdir())])
    plan = pl.format("plan {}", pl.col("user").cast(pl.String).hash(3) % 20)
    frame = made.with_columns(device=random(made.height, 5), plan=plan, rare=random(made.height, 200) == "phone 7")
    data = parts(tmp_path / "data", 4, frame)
    found = protected(data, tmp_path / "release", *LOCAL)
    assert manifest(found)["regions"]["count"] == cities
    assert {"device", "plan", "rare"} <= set(manifest(found)["columns"]["kept"])
    assert called("verify", found, "--against", data).returncode == 0
