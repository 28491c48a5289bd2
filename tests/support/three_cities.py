"""Three cities far apart, in parts, as `synth --cities` writes them."""

from functools import cache
from pathlib import Path

import polars as pl
from small_city import called, scratch

SETS = ("--set", "filters.min_poi_checkins=5", "--set", "filters.min_user_checkins=5")


@cache
def three_cities() -> Path:
    """A folder of several parts."""
    folder = scratch() / "three-cities"
    done = called(
        "synth", "-o", folder, "--cities", 3, "--users", 60, "--pois", 200, "--days", 60, "--rows-per-part", 1500,
        "--travellers", 0.2,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@cache
def all_rows() -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted(three_cities().glob("*.parquet"))])


@cache
def one_city() -> Path:
    """The largest of them alone, as a CSV file."""
    path = scratch() / "one-of-three.csv"
    largest = all_rows()["city"].value_counts(sort=True)["city"][0]
    rows = all_rows().filter(pl.col("city") == largest)
    rows.with_columns(pl.col("utc_time").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).write_csv(path)
    return path
