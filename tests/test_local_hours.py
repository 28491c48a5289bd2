"""The hours of the report are local where the file tells a time zone."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sample_releases import copied
from small_city import called, protect, release
from written_as import Visit, snap, visits, written

TOKYO = ZoneInfo("Asia/Tokyo")
HEAD = "user,poi,category,lat,lon,time,x\n"


def line(v: Visit, time: str, offset: int = 0) -> str:
    return f"{v.user},{v.poi},{v.category},{v.lat},{v.lon},{time},{offset}"


def shown(folder: Path) -> tuple[str, list[int]]:
    """The caption and the bars of the chart."""
    assert called("report", folder).returncode == 0
    page = (folder / "report.html").read_text()
    caption = re.search(r'id="caption-hours">([^<]*)<', page)
    data = re.search(r'<script type="application/json" id="[^"]*chart[^"]*">(.*?)</script>', page, re.DOTALL)
    assert caption
    assert data
    (chart,) = (one for one in json.loads(data[1]) if one["id"] == "hours")
    return caption[1], chart["data"][0]["y"]


def counted(local: Callable[[datetime], datetime]) -> list[int]:
    hours = [local(v.time).hour for v in visits()]
    return [hours.count(h) for h in range(24)]


def test_a_stated_zone(tmp_path: Path) -> None:
    file = written("zone.csv", lambda v: line(v, f"{v.time.astimezone(TOKYO):%Y-%m-%d %H:%M:%S}"), HEAD)
    made = protect(file, tmp_path / "r", "--timezone", "Asia/Tokyo")
    caption, bars = shown(made.folder)
    assert caption.startswith("Hour of the day: local time of Asia/Tokyo. ")
    assert bars == counted(lambda time: time.astimezone(TOKYO))


def test_a_column_of_offsets(tmp_path: Path) -> None:
    minutes = HEAD.replace("x", "Timezone Offset")
    file = written("offsets.csv", lambda v: line(v, str(int(v.time.timestamp())), -210), minutes)
    caption, bars = shown(protect(file, tmp_path / "r").folder)
    assert caption.startswith("Hour of the day: local time, from the column Timezone Offset. ")
    assert bars == counted(lambda time: time - timedelta(minutes=210))


def test_an_offset_may_be_in_hours_and_missing(tmp_path: Path) -> None:
    head = HEAD.replace("x", "utc_offset")
    file = written("hours.csv", lambda v: line(v, str(int(v.time.timestamp())), -5), head)
    caption, bars = shown(protect(file, tmp_path / "r").folder)
    assert caption.startswith("Hour of the day: local time, from the column utc_offset. ")
    assert bars == counted(lambda time: time - timedelta(hours=5))
    lines = file.read_text().splitlines()
    lines[1:] = [text.removesuffix("-5") + ("NaN" if n % 20 == 0 else "-5") for n, text in enumerate(lines[1:])]
    (tmp_path / "some.csv").write_text("\n".join(lines) + "\n")
    caption, _ = shown(protect(tmp_path / "some.csv", tmp_path / "s", "--keep", "utc_offset").folder)
    assert caption.startswith("Hour of the day: UTC. ")


@pytest.mark.parametrize("offset", ["+09:00", "+0900", "+09"])
def test_offsets_in_the_times(offset: str, tmp_path: Path) -> None:
    name = f"written{len(offset)}.csv"
    file = written(name, lambda v: line(v, f"{v.time.astimezone(TOKYO):%Y-%m-%dT%H:%M:%S}{offset}"), HEAD)
    caption, bars = shown(protect(file, tmp_path / "r").folder)
    assert caption.startswith("Hour of the day: local time, from the offsets of the times. ")
    assert bars == counted(lambda time: time.astimezone(TOKYO))


def test_utc_where_nothing_tells(tmp_path: Path) -> None:
    made = protect(snap(), tmp_path / "r")
    caption, bars = shown(made.folder)
    assert caption.startswith("Hour of the day: UTC. ")
    assert bars == counted(lambda time: time.astimezone(UTC))


def test_the_offsets_of_tsmc2014(tmp_path: Path) -> None:
    caption, bars = shown(copied(release(), tmp_path))
    assert caption.startswith("Hour of the day: local time, from the column timezone_offset. ")
    rows = [line.split("\t") for line in release().data.read_text("latin-1").splitlines()]
    hours = [
        (datetime.strptime(row[7], "%a %b %d %H:%M:%S %z %Y") + timedelta(minutes=int(row[6]))).hour for row in rows
    ]
    assert bars == [hours.count(h) for h in range(24)]
