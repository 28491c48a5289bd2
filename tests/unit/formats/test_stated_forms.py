"""What a file cannot show and the publisher states: decimal commas, forms of times, time zones, separate dates."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from small_city import Release, called, protect, scratch, sentence
from written_as import Visit, visits, written

from ghostpoi import formats
from ghostpoi.formats import Reading

ZONE = ZoneInfo("America/New_York")


def comma(number: float) -> str:
    return str(number).replace(".", ",")


def german(v: Visit) -> str:
    t = v.time.astimezone(ZONE)
    return f"{v.user};{v.poi};{v.category};{comma(v.lat)};{comma(v.lon)};{t:%d.%m.%Y};{t:%H:%M:%S}"


def american(v: Visit) -> str:
    return f"{v.user},{v.poi},{v.category},{v.lat},{v.lon},{v.time:%m/%d/%Y %I:%M:%S %p}"


FILES: dict[str, tuple[Callable[[Visit], str], str, list[str], dict[str, str], list[int]]] = {
    "german.csv": (
        german,
        "user;poi;category;lat;lon;day;clock\n",
        ["--decimal", ",", "--time-format", "%d.%m.%Y %H:%M:%S", "--timezone", "America/New_York",
         "--map", "date=day", "--map", "time=clock"],
        {"decimal": ",", "time_format": "%d.%m.%Y %H:%M:%S", "timezone": "America/New_York"},
        [0, 5, 6],
    ),
    "american.csv": (
        american,
        "user,poi,category,lat,lon,time\n",
        ["--time-format", "%m/%d/%Y %I:%M:%S %p"],
        {"time_format": "%m/%d/%Y %I:%M:%S %p"},
        [0, 5],
    ),
}  # fmt: skip


@cache
def released(name: str) -> Release:
    line, header, words, _, _ = FILES[name]
    return protect(written(name, line, header), scratch() / f"{name}-release", *words)


@pytest.mark.parametrize("name", FILES)
def test_the_values_are_those_of_the_city(name: str) -> None:
    line, header, _, stated, _ = FILES[name]
    mapping = {"date": "day", "time": "clock"} if "clock" in header else {}
    table = formats.read(formats.Source(written(name, line, header), Reading(**stated)), mapping).table
    assert table.time.tolist() == [int(v.time.timestamp()) for v in visits()]
    assert table.lat.tolist() == [v.lat for v in visits()]
    assert table.lon.tolist() == [v.lon for v in visits()]


@pytest.mark.parametrize("name", FILES)
def test_the_release_is_written_as_the_file(name: str) -> None:
    _, header, words, stated, kept = FILES[name]
    release = released(name)
    clean, out = (path.read_text().splitlines() for path in (release.file, release.data))
    sign = ";" if ";" in header else ","
    assert out[0] == clean[0]
    for at in kept:
        assert [line.split(sign)[at] for line in out] == [line.split(sign)[at] for line in clean]
    places = {tuple(line.split(sign)[1:5]) for line in clean}
    assert {tuple(line.split(sign)[1:5]) for line in out} <= places
    assert release.manifest["data"]["reading"] == stated
    for more in ([], [word for word in words if word not in ("--map", "date=day", "time=clock")]):
        done = called("verify", release.folder, "--against", release.file, *more)
        assert done.returncode == 0, done.stdout
    assert called("report", release.folder).returncode == 0


def test_pseudonyms_work_with_a_separate_date(tmp_path: Path) -> None:
    line, header, words, _, _ = FILES["german.csv"]
    file = written("german.csv", line, header)
    release = protect(file, tmp_path / "r", "--pseudonyms", "week", *words)
    done = called("verify", release.folder, "--against", file)
    assert done.returncode == 0, done.stdout


def says(tmp_path: Path, rows: str, *words: str) -> str:
    path = tmp_path / "x.csv"
    path.write_text("user;poi;lat;lon;time\n" + rows)
    return sentence(called("inspect", path, *words)).removeprefix(f"{path}")


GOOD = "u;p;1.5;2;2012-04-03 10:00\n"


@pytest.mark.parametrize(
    ("rows", "words", "message"),
    [
        (GOOD + "u;p;1,5;2;0\n", [], ", line 3: the latitude '1,5' has a decimal comma; state it with --decimal ,"),
        (GOOD, ["--decimal", ","], ", line 2: the latitude '1.5' has a decimal point; leave --decimal out"),
        (GOOD, ["--decimal", ";"], "--decimal ';': the sign can be a comma only; leave it out for points"),
        ("u;p;1;2;03/04/2012\n", [], ", line 2: the time '03/04/2012' cannot be read; use ISO 8601 (2012-04-03T18"),
        (GOOD, ["--time-format", "%d/%m/%Y"], ", line 2: the time '2012-04-03 10:00' cannot be read; it must have the"),
        (GOOD, ["--time-format", "%H:%M"], "--time-format '%H:%M': give the form of a date and a time"),
        (GOOD, ["--time-format", "%d/%m/%Q"], "--time-format '%d/%m/%Q': give the form of a date and a time"),
        (GOOD, ["--timezone", "Mars/Base"], "--timezone 'Mars/Base': unknown time zone; give a name such as"),
        (
            "u;p;1;2;2012-03-11 02:30:00\n",
            ["--timezone", "America/New_York"],
            ", line 2: the time '2012-03-11 02:30:00' cannot be read or does not exist in America/New_York; ",
        ),
        (
            GOOD,
            ["--map", "date=user", "--map", "user=poi", "--map", "poi=poi"],
            ", line 2: the time 'u 2012-04-03 10:00' cannot be read; use ISO 8601",
        ),
    ],
)
def test_what_does_not_fit(rows: str, words: list[str], message: str, tmp_path: Path) -> None:
    assert says(tmp_path, rows, *words).startswith(message)


def test_a_zone_leaves_offsets_and_unix_times_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for text, utc in (
        ("2012-07-01 10:00:00", datetime(2012, 7, 1, 14, tzinfo=UTC)),
        ("2012-07-01T10:00:00Z", datetime(2012, 7, 1, 10, tzinfo=UTC)),
        ("2012-11-04 01:30:00", datetime(2012, 11, 4, 5, 30, tzinfo=UTC)),  # it occurs twice: the first
        ("1333476009", datetime.fromtimestamp(1333476009, UTC)),
    ):
        path.write_text(f"user,poi,lat,lon,time\nu,p,1,2,{text}\n")
        table = formats.read(formats.Source(path, Reading(timezone="America/New_York"))).table
        assert table.time.tolist() == [int(utc.timestamp())]


def test_times_that_are_not_text_need_no_form(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"user": "u", "poi": "p", "lat": 1.0, "lon": 2.0, "time": [datetime(2012, 4, 3)]}).write_parquet(path)
    said = sentence(called("inspect", path, "--timezone", "Asia/Tokyo"))
    assert said == f"{path}: its times are not text, so leave --time-format and --timezone out"
