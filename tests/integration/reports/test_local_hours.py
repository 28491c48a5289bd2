"""The hours of the report are local where the file states a time zone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sample_releases import copied
from small_city import protect, release
from written_as import Visit, counted, shown, snap, written

TOKYO = ZoneInfo("Asia/Tokyo")
HEAD = "user,poi,category,lat,lon,time,x\n"


def line(v: Visit, time: str, offset: int = 0) -> str:
    return f"{v.user},{v.poi},{v.category},{v.lat},{v.lon},{time},{offset}"


def test_a_stated_zone(tmp_path: Path) -> None:
    file = written("zone.csv", lambda v: line(v, f"{v.time.astimezone(TOKYO):%Y-%m-%d %H:%M:%S}"), HEAD)
    made = protect(file, tmp_path / "r", "--timezone", "Asia/Tokyo")
    caption, bars = shown(made.folder)
    assert caption.startswith("Hour of the day: local time of Asia/Tokyo. ")
    assert bars == counted(lambda time: time.astimezone(TOKYO))


@pytest.mark.parametrize(("name", "offset", "minutes"), [("Timezone Offset", -210, -210), ("utc_offset", -5, -300)])
def test_a_column_of_offsets_in_minutes_or_hours(name: str, offset: int, minutes: int, tmp_path: Path) -> None:
    head = HEAD.replace("x", name)
    file = written(f"offsets{offset}.csv", lambda v: line(v, str(int(v.time.timestamp())), offset), head)
    caption, bars = shown(protect(file, tmp_path / "r").folder)
    assert caption.startswith(f"Hour of the day: local time, from the column {name}. ")
    assert bars == counted(lambda time: time + timedelta(minutes=minutes))


def test_offsets_that_some_rows_lack_are_not_used(tmp_path: Path) -> None:
    places = iter(range(10**6))
    head = HEAD.replace("x", "utc_offset")
    text = lambda v: line(v, str(int(v.time.timestamp())), -5)  # noqa: E731
    file = written("some.csv", lambda v: text(v).replace("-5", "NaN") if next(places) % 20 == 0 else text(v), head)
    caption, _ = shown(protect(file, tmp_path / "r", "--keep", "utc_offset").folder)
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
