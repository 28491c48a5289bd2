"""Dates and times of day in separate columns, as text and as the types of workbooks, Parquet and data frames."""

import datetime
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_city import CONFIG, SEED, SMALL, called, protect, sentence
from written_as import visits

import ghostpoi
from ghostpoi import formats

NAMES = ["user", "poi", "category", "lat", "lon", "date", "time"]
MAP = ("--map", "date=date")


@cache
def rows() -> list[list[Any]]:
    return [[v.user, v.poi, v.category, v.lat, v.lon, v.time.date(), v.time.time()] for v in visits()]


def table(date: pa.DataType, time: pa.DataType) -> pa.Table:
    columns = dict(zip(NAMES, map(list, zip(*rows(), strict=True)), strict=True))
    return pa.table({**columns, "date": pa.array(columns["date"]).cast(date), "time": pa.array(columns["time"], time)})


def workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    for row in [NAMES, *rows()]:
        book.active.append(row)
    book.save(path)


def cells(path: Path) -> list[list[Any]]:
    """The dates and times of a file, as it stores them."""
    if path.suffix == ".xlsx":
        return [list(row[5:]) for row in openpyxl.load_workbook(path).active.iter_rows(values_only=True)]
    stored = pq.read_table(path).select(["date", "time"])
    return [[str(stored.schema)], *map(list, zip(*stored.to_pydict().values(), strict=True))]


WRITE: dict[str, Callable[[Path], None]] = {
    "x.xlsx": workbook,
    "us.parquet": lambda path: pq.write_table(table(pa.date32(), pa.time64("us")), path),
    "ms.parquet": lambda path: pq.write_table(table(pa.timestamp("ns"), pa.time32("ms")), path),
}


@pytest.mark.parametrize("name", WRITE)
def test_a_file_with_dates_and_times(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITE[name](path)
    moments = [int(v.time.timestamp()) for v in visits()]
    assert formats.read(path, {"date": "date"}).table.time.tolist() == moments
    release = protect(path, tmp_path / "r", *MAP)
    assert cells(release.data) == cells(path)
    done = called("verify", release.folder, "--against", path)
    assert done.returncode == 0, done.stdout
    said = sentence(called("inspect", path))
    first = "row 2" if name == "x.xlsx" else "row 1"
    shown = rows()[0][6].isoformat()
    assert said == (
        f"{path}, {first}: the time '{shown}' has no date; name the column of its dates with --map date=date"
    )


def test_dates_and_times_are_of_the_stated_zone(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(table(pa.date32(), pa.time64("us")), path)
    with_zone = tmp_path / "zone.parquet"
    named = table(pa.date32(), pa.time64("us")).append_column("timezone", pa.array(["Asia/Tokyo"] * len(rows())))
    pq.write_table(named, with_zone)
    moments = [int(v.time.timestamp()) - 9 * 3600 for v in visits()]
    stated = formats.read(formats.Source(path, formats.Reading(timezone="Asia/Tokyo")), {"date": "date"})
    assert stated.table.time.tolist() == moments
    assert formats.read(with_zone, {"date": "date"}).table.time.tolist() == moments


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_frames_with_dates_and_times(kind: Any) -> None:
    frame = kind(dict(zip(NAMES, map(list, zip(*rows(), strict=True)), strict=True)))
    after = ghostpoi.protect(frame, "random", seed=SEED, map={"date": "date"}, set=SMALL, config=CONFIG).table
    assert [list(row) for row in zip(after["date"], after["time"], strict=True)] == [row[5:] for row in rows()]
    assert after["date"].dtype == frame["date"].dtype
    assert after["time"].dtype == frame["time"].dtype
    assert isinstance(after["time"][0], datetime.time)
    assert list(after["poi"]) != list(frame["poi"])


@pytest.mark.parametrize(
    ("columns", "row", "says"),
    [
        ("time,when", "09:54,3.4.2012", "the time '09:54' has no date; name the column of its dates with --map date=w"),
        ("time,note", "09:54 PM,x", "the time '09:54 PM' has no date; name the column of its dates with --map date=CO"),
        ("time,note", "noon,2012-04-03", "the time 'noon' cannot be read; use ISO 8601 (2012-04-03T18:00:09Z), Unix"),
    ],
)  # fmt: skip
def test_a_time_of_day_alone_needs_a_date(columns: str, row: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"user,poi,lat,lon,{columns}\nu,p,1,2,{row}\n")
    assert sentence(called("inspect", path)).startswith(f"{path}, line 2: {says}")


def test_a_date_that_is_given_is_not_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("user,poi,lat,lon,time,date\nu,p,1,2,09:54,someday\n")
    said = sentence(called("inspect", path, *MAP))
    assert said.startswith(f"{path}, line 2: the time 'someday 09:54' cannot be read; ")
    assert "--map date" not in said
