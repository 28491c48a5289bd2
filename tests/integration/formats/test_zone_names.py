"""Times that name their zones, or stand next to a column that does."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from small_city import called, protect, sentence
from written_as import Visit, counted, shown, visits, written

from ghostpoi import formats
from ghostpoi.formats import Reading
from ghostpoi.formats.times import parse_times

NEW_YORK, TOKYO = ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo")
HEAD = "user,poi,category,lat,lon,time\n"


def row(v: Visit, time: str) -> str:
    return f"{v.user},{v.poi},{v.category},{v.lat},{v.lon},{time}"


def local(v: Visit) -> str:
    return f"{v.time.astimezone(NEW_YORK):%Y-%m-%d %H:%M:%S}"


def abbreviated(v: Visit) -> str:
    return row(v, f"{v.time.astimezone(NEW_YORK):%a %b %d %H:%M:%S %Z %Y}")


FILES: dict[str, tuple[Callable[[Visit], str], str, list[str], str]] = {
    "named.csv": (lambda v: row(v, f"{local(v)} America/New_York"), HEAD, [], "the zones of the times"),
    "column.csv": (
        lambda v: row(v, f"{local(v)},America/New_York"),
        HEAD.replace("time", "time,Time Zone"),
        [],
        "the column Time Zone",
    ),
    "short.csv": (abbreviated, HEAD, ["--timezone", "America/New_York"], ""),
}


@pytest.mark.parametrize("name", FILES)
def test_the_release_has_the_same_times(name: str, tmp_path: Path) -> None:
    line, head, words, clock = FILES[name]
    file = written(name, line, head)
    made = protect(file, tmp_path / "r", *words)
    clean, out = (path.read_text().splitlines() for path in (file, made.data))
    assert [text.split(",", 5)[5] for text in out] == [text.split(",", 5)[5] for text in clean]
    assert out != clean
    assert called("verify", made.folder, "--against", file, *words).returncode == 0
    caption, bars = shown(made.folder)
    assert caption.startswith(f"Hour of the day: local time{f', from {clock}' if clock else ' of America/New_York'}. ")
    assert bars == counted(lambda time: time.astimezone(NEW_YORK))
    stated = Reading(timezone=words[1] if words else "")
    assert formats.read(formats.Source(file, stated)).table.time.tolist() == [int(v.time.timestamp()) for v in visits()]


def test_inspect_says_what_was_taken() -> None:
    for name, field, chosen in (
        ("named.csv", "time", {"column": "time", "chosen_by": "its name; it names time zones"}),
        ("column.csv", "timezone", {"column": "Time Zone", "chosen_by": "its name"}),
    ):
        line, head, *_ = FILES[name]
        done = called("inspect", written(name, line, head), "--json")
        assert json.loads(done.stdout)["columns"][field] == chosen


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2012-07-01 10:00:00 America/New_York", "2012-07-01 14:00"),
        ("2012-07-01T10:00[Asia/Tokyo]", "2012-07-01 01:00"),
        ("2012-07-01T10:00:00+02:00[Europe/Berlin]", "2012-07-01 08:00"),
        ("2012-07-01 10:00:00 (Asia/Tokyo)", "2012-07-01 01:00"),
        ("Sun Jul 01 10:00:00 America/New_York 2012", "2012-07-01 14:00"),
        ("Sun Jul 01 10:00:00 UTC 2012", "2012-07-01 10:00"),
        ("2012-11-04 01:30:00 America/New_York", "2012-11-04 05:30"),  # it occurs twice: the first
        ("2012-07-01 10:00:00", "2012-07-01 10:00"),
        ("2012-07-01 10:00:00 EDT", None),
        ("2012-07-01 10:00:00 Mars/Base", None),
        ("2012-03-11 02:30:00 America/New_York", None),  # the clocks skip it
    ],
)
def test_forms(text: str, utc: str | None) -> None:
    first = "2012-07-01 10:00:00 America/Chicago"
    seconds = utc and int(datetime.fromisoformat(f"{utc}+00:00").timestamp())
    assert parse_times(pl.Series([first, text]))[1] == seconds
    assert parse_times(pl.Series([text]))[0] == seconds


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2012-11-04 01:30:00 EDT", 5),
        ("2012-11-04 01:30:00 EST", 6),
        ("2012-07-01 01:30:00 EST", None),
        ("2012-07-01 01:30:00 PDT", None),
    ],
)
def test_an_abbreviation_must_be_one_of_the_stated_zone(text: str, hour: int | None) -> None:
    found = parse_times(pl.Series([text]), zone="America/New_York")[0]
    assert found == (None if hour is None else int(datetime(2012, 11, 4, hour, 30, tzinfo=UTC).timestamp()))


def zones(tmp_path: Path, head: str, *rows: str, name: str = "x.csv") -> tuple[list[datetime], dict[str, str]]:
    path = tmp_path / name
    path.write_text(f"user,poi,lat,lon,{head}\n" + "".join(f"u,p,1,2,{text}\n" for text in rows))
    file = formats.read(path)
    return [datetime.fromtimestamp(t, UTC) for t in file.table.time.tolist()], file.mapping


@pytest.mark.parametrize(
    ("head", "text", "hour"),
    [
        ("time,tz", "2012-07-01 10:00,Asia/Tokyo", 1),
        ("time,tz", "2012-07-01 10:00,+05:30", 4),
        ("time,tz", "2012-07-01 10:00:00Z,+05:30", None),  # the time says more than the column
        ("time,tz", "2012-07-01T10:00:00+00:00,Asia/Tokyo", None),
        ("time,tz", "1341136800,Asia/Tokyo", None),
        ("utc_time,tz", "2012-07-01 10:00,Asia/Tokyo", None),
        ("time,timezone", "2012-07-01 10:00,-240", None),  # minutes, as GETNext and TSMC2014 have them
        ("time,timezone", "2012-07-01 10:00,", None),
    ],
)
def test_a_column_counts_for_times_without_an_offset(head: str, text: str, hour: int | None, tmp_path: Path) -> None:
    found, mapping = zones(tmp_path, head, text, text)
    assert [time.hour for time in found] == [10 if hour is None else hour] * 2
    assert ("timezone" in mapping) == (hour is not None)


def test_parquet_and_rows_of_several_zones(tmp_path: Path) -> None:
    path, noon = tmp_path / "x.parquet", datetime(2012, 7, 1, 12)
    frame = pl.DataFrame(
        {"user": "u", "poi": "p", "lat": 1.0, "lon": 2.0, "time": [noon] * 2, "tz": ["Asia/Tokyo", "UTC"]}
    )
    frame.write_parquet(path)
    assert [datetime.fromtimestamp(t, UTC).hour for t in formats.read(path).table.time.tolist()] == [3, 12]
    frame.with_columns(pl.col("time").dt.replace_time_zone("UTC")).write_parquet(path)
    assert [datetime.fromtimestamp(t, UTC).hour for t in formats.read(path).table.time.tolist()] == [12, 12]


@pytest.mark.parametrize(
    ("head", "text", "words", "message"),
    [
        (
            "time",
            "2012-07-01 10:00:00 EST",
            [],
            ", line 2: the time '2012-07-01 10:00:00 EST' has an abbreviation, which may be of several zones; "
            "state the zone of all such times with --timezone, e.g. America/New_York",
        ),
        (
            "time,tz",
            "2012-07-01 10:00:00,CST",
            [],
            ", line 2: the time zone 'CST' is missing, unknown or may be several; "
            "state the zone of all such times with --timezone, e.g. America/New_York",
        ),
        (
            "time,tz",
            "2012-07-01 10:00:00,UTC",
            ["--map", "timezone=tz", "--timezone", "UTC"],
            "--map timezone=tz and --timezone UTC contradict each other; give one",
        ),
        (
            "time,east",
            "2012-07-01 10:00:00,-240",
            ["--map", "timezone=east"],
            "--map timezone=east: FILE needs no zones, or this column names none as America/New_York; remove it",
        ),
    ],
)
def test_what_no_tool_should_guess(head: str, text: str, words: list[str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"user,poi,lat,lon,{head}\nu,p,1,2,{text}\n")
    said = sentence(called("inspect", path, *words))
    assert said.removeprefix(str(path)) == message.replace("FILE", str(path))


def of_venue(v: Visit) -> ZoneInfo:
    """A border between two zones through the middle of the city."""
    return TOKYO if sum(v.poi.encode()) % 2 else NEW_YORK


def at_border(v: Visit) -> str:
    zone = of_venue(v)
    return row(v, f"{v.time.astimezone(zone):%Y-%m-%d %H:%M:%S},{zone.key}")


def test_a_substitute_in_another_zone_would_change_times(tmp_path: Path) -> None:
    file = written("border.csv", at_border, HEAD.replace("time", "time,tz"))
    said = sentence(called("protect", file, "-o", tmp_path / "r"))
    assert said == (
        f"{file}: a venue can become one of another time zone, and the column 'tz' would change its times; write all "
        "times in UTC, or keep the column at your own risk with --keep tz"
    )
    assert not list(tmp_path.iterdir())
    made = protect(file, tmp_path / "kept", "--keep", "tz")
    done = called("verify", made.folder, "--against", file)
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAIL")] == ["kept"]
    assert "the times need this column" in sentence(called("protect", file, "-o", tmp_path / "s", "--drop", "tz"))


def test_two_cities_in_two_zones(tmp_path: Path) -> None:
    def in_either(v: Visit) -> str:
        east = int(v.user) % 2
        there = replace(v, poi=f"{east}{v.poi}", lon=v.lon + 100 * east)
        zone = TOKYO if east else NEW_YORK
        return row(there, f"{v.time.astimezone(zone):%Y-%m-%d %H:%M:%S},{zone.key}")

    file = written("two.csv", in_either, HEAD.replace("time", "time,tz"))
    made = protect(file, tmp_path / "r")
    assert made.manifest["columns"]["fields"]["timezone"] == "tz"
    assert called("verify", made.folder, "--against", file).returncode == 0
    assert formats.read(made.data).table.time.tolist() == formats.read(file).table.time.tolist()


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S {}", "%Y-%m-%dT%H:%M:%S%z"])
def test_zones_that_follow_from_the_venue_are_refused(form: str, tmp_path: Path) -> None:
    def written_time(v: Visit) -> str:
        return f"{v.time.astimezone(of_venue(v)):{form.format(of_venue(v).key)}}"

    name = f"venue{len(form)}.csv"
    file = written(name, lambda v: row(v, written_time(v)), HEAD)
    told = sentence(called("protect", file, "-o", tmp_path / "r"))
    assert "the notation (offset, fraction of a second, spelling, padding) of the values in the column 'time'" in told
    assert called("protect", file, "-o", tmp_path / "r", "--normalise", "time").returncode == 0
    file = written(f"more-{name}", lambda v: row(v, f"{v.time:%s},{written_time(v)}"), HEAD.replace("time", "time,at"))
    told = sentence(called("protect", file, "-o", tmp_path / "s"))
    assert "the column 'at' predicts" in told
