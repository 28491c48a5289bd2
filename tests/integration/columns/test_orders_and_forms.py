"""What the order of the rows reveals, and the remedy: rows in time order, in every format."""

from pathlib import Path

import polars as pl
import pytest
from small_city import MAP, SETS, called, rich_frame, sentence

TIME = pl.col("timestamp").str.to_datetime("%a %b %d %H:%M:%S %z %Y")
METHOD = ("--method", "random", *SETS, *MAP)


def sorted_city(path: Path) -> Path:
    """Rows by day, category and time."""
    frame = rich_frame().drop("checkin", "mood").sort(TIME.dt.date(), "catid", TIME, maintain_order=True)
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        frame.with_columns(timestamp=TIME).write_parquet(path)
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_csv(path)
    return path


def in_time_order(path: Path) -> bool:
    read = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}
    frame = read[path.suffix](path)
    time = frame["timestamp"] if frame["timestamp"].dtype != pl.String else frame.select(TIME).to_series()
    keys = frame.select(time=time, who=pl.col("Who").cast(pl.String))
    return keys.equals(keys.sort("time", "who", maintain_order=True))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_rows_sorted_by_category_are_released_in_time_order(suffix: str, tmp_path: Path) -> None:
    path = sorted_city(tmp_path / f"city.{suffix}")
    said = sentence(called("protect", path, "-o", tmp_path / "r", *METHOD))
    assert said.endswith("so their order reveals clean venues; sort them by time with --order time")
    assert "its rows are sorted by the column 'catid' inside groups" in said
    done = called("protect", path, "-o", tmp_path / "r", *METHOD, "--order", "time")
    assert done.returncode == 0, done.stderr
    assert in_time_order(tmp_path / "r" / f"checkins.{suffix}")
    verified = called("verify", tmp_path / "r", "--against", path)
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_each_file_of_a_folder_is_in_time_order_by_region_too(suffix: str, tmp_path: Path) -> None:
    path = sorted_city(tmp_path / "data" / f"a.{suffix}")
    done = called("protect", path.parent, "-o", tmp_path / "r", *METHOD, "--engine", "local", "--order", "time")
    assert done.returncode == 0, done.stderr
    assert in_time_order(tmp_path / "r" / "checkins" / f"a.{suffix}")
    verified = called("verify", tmp_path / "r", "--against", path.parent)
    assert verified.returncode == 0, verified.stdout


def test_releases_of_a_series_are_in_time_order(tmp_path: Path) -> None:
    path = sorted_city(tmp_path / "city.csv")
    words = ("protect", path, "-o", tmp_path / "r", *SETS, *MAP, "--series", tmp_path / "s", "--order", "time")
    done = called(*words)
    assert done.returncode == 0, done.stderr
    assert in_time_order(tmp_path / "r" / "checkins.csv")


def test_an_unknown_order_is_refused(tmp_path: Path) -> None:
    path = sorted_city(tmp_path / "city.csv")
    said = sentence(called("protect", path, "-o", tmp_path / "r", *METHOD, "--order", "name"))
    assert said == "--order name: use time, or leave it out"
