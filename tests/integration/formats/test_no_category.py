"""Files without a category and without a header: SNAP's Gowalla and Brightkite, and --columns."""

import json
import shutil
from functools import cache
from pathlib import Path

import pytest
from small_city import Release, called, protect, scratch, sentence
from written_as import snap, visits, written

import ghostpoi
from ghostpoi import formats
from ghostpoi.errors import InputError

SPLIT = ("--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2")
AUDIT = ["--victim", "markov", "--no-naturalness", "--seeds", "1", "--leak", "0.3", *SPLIT]
LEARNED = "or use --set candidates.category=learned or --method crowd"
COLUMNS = ["--columns", "user,poi,note,lat,lon,time"]


@cache
def released() -> Release:
    return protect(snap(), scratch() / "snap-release")


def headerless() -> Path:
    return written("headerless.csv", lambda v: f'"{v.user}",{v.poi},n{len(v.user)},{v.lat},{v.lon},{v.time:%s}')


def test_inspect_tells_the_layout_and_that_there_is_no_category() -> None:
    text = called("inspect", snap()).stdout
    assert f"{len(visits()):,} check-ins of 56 users at" in text
    assert " venues without categories, " in text
    assert "poi    location id    its place (snap)" in text
    assert "(no category)" in " ".join(text.split())
    found = json.loads(called("inspect", snap(), "--json").stdout)
    assert (found["format"], found["categories"], "category" in found["columns"]) == ("snap", 0, False)


def test_the_release_has_the_layout_of_the_file() -> None:
    clean, out = snap().read_text().splitlines(), released().data.read_text().splitlines()
    assert released().data.name == "checkins.txt"
    assert [line.split("\t")[:2] for line in out] == [line.split("\t")[:2] for line in clean]
    places = {tuple(line.split("\t")[2:]) for line in clean}
    assert {tuple(line.split("\t")[2:]) for line in out} <= places
    assert sum(a != b for a, b in zip(clean, out, strict=True)) > len(clean) / 2
    manifest = released().manifest
    assert manifest["data"]["format"] == "snap"
    assert manifest["disclosure"]["category"] == "none"
    assert manifest["disclosure"]["aggregates"] == ["visits per venue, where fewer than 5 count as 5"]
    assert manifest["plausibility"]["category_match"] is None
    assert "; no category; " in " ".join(released().done.stdout.split())


def test_verify_audit_report_and_export_say_no_category(tmp_path: Path) -> None:
    for name in ("snap-release", "snap-release.private"):
        shutil.copytree(released().folder.parent / name, tmp_path / name)
    release = tmp_path / "snap-release"
    done = called("verify", release, "--against", snap())
    assert done.returncode == 0, done.stdout
    assert "pass  category         the file has no category" in done.stdout
    done = called("audit", snap(), release, *AUDIT)
    assert done.returncode == 0, done.stderr
    assert "substituted, no category, " in " ".join(done.stdout.split())
    assert "category popularity" not in done.stdout
    done = called("report", release)
    assert done.returncode == 0, done.stderr
    page, card = ((release / name).read_text() for name in ("report.html", "card.md"))
    for text in (page, card):
        assert "The file has no categories" in text
        assert "keep the category" not in text
        assert "Popularity of categories" not in text
    assert called("verify", release).returncode == 0
    assert called("report", release, "--with-clean", "--private", f"{release}.private").returncode == 0
    assert called("export", release, "--to", "recbole", "-o", tmp_path / "city").returncode == 0


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["protect", "-o", "OUT", "--method", "ghost"], LEARNED),
        (["protect", "-o", "OUT", "--method", "random", "--dry-run"], LEARNED),
        (["protect", "-o", "OUT", "--set", "method.category=exact"], "use --set method.category=any"),
        (["inspect", "--method", "ghost"], LEARNED),
        (["choose", "--keep-category", "group", "-o", "OUT.html"], "use --set method.category=any"),
    ],
)
def test_what_follows_categories_refuses(words: list[str], instead: str, tmp_path: Path) -> None:
    command, *more = (word.replace("OUT", str(tmp_path / "out")) for word in words)
    said = sentence(called(command, snap(), *more))
    assert said.startswith(f"{snap()} has no category, which the method follows; name its column with --map category=")
    assert said.endswith(instead)
    assert not list(tmp_path.iterdir())


def test_prepare_refuses(tmp_path: Path) -> None:
    said = sentence(called("prepare", snap(), "-o", tmp_path / "x.npz"))
    assert "has no category, which candidate sets follow" in said
    assert said.endswith("or use --set candidates.category=learned")


def test_the_api_works_without_a_category_and_refuses_what_needs_one() -> None:
    import polars as pl

    frame = pl.DataFrame(
        {name: [getattr(v, name) for v in visits()] for name in ("user", "poi", "lat", "lon", "time")}
    ).with_columns(pl.col("time").dt.replace_time_zone(None))
    out = ghostpoi.protect(frame, set={"filters.min_poi_checkins": 5}).table
    assert (out["time"].equals(frame["time"]), out["poi"].equals(frame["poi"])) == (True, False)
    with pytest.raises(InputError, match="the table has no category, which the method follows") as refused:
        ghostpoi.protect(frame, "random")
    assert str(refused.value).endswith('or use set={"candidates.category": "learned"} or method="crowd"')
    out = ghostpoi.protect(frame, "random", set={"filters.min_poi_checkins": 5, "candidates.category": "learned"}).table
    assert (out["time"].equals(frame["time"]), out["poi"].equals(frame["poi"])) == (True, False)


def test_columns_names_the_columns_of_a_file_without_a_header() -> None:
    release = protect(headerless(), scratch() / "headerless-release", *COLUMNS)
    clean, out = (path.read_text().splitlines() for path in (headerless(), release.data))
    rows = [[line.split(",") for line in lines] for lines in (clean, out)]
    for at in (0, 2, 5):  # user with its quotes, note, time
        assert [row[at] for row in rows[0]] == [row[at] for row in rows[1]]
    assert release.manifest["data"]["reading"] == {"columns": "user,poi,note,lat,lon,time"}
    done = called("verify", release.folder, "--against", headerless())
    assert done.returncode == 0, done.stdout
    assert called("report", release.folder).returncode == 0


def test_columns_that_do_not_fit() -> None:
    def says(path: Path, columns: str) -> str:
        return sentence(called("inspect", path, "--columns", columns)).removeprefix(f"{path}")

    assert says(headerless(), "user,poi,lat,lon,time") == ", line 1 has 6 columns, not 5; give 6 names with --columns"
    assert says(headerless(), "user,poi,,lat,lon,time").startswith("--columns 'user,poi,,lat,lon,time': name every")
    assert says(headerless(), "user,poi,lat,lat,lon,time").startswith("--columns 'user,poi,lat,lat,lon,time': name")
    assert says(headerless(), "who,poi,note,lat,lon,time").startswith(": no column looks like the user among who")
    parquet = scratch() / "some.parquet"
    if not parquet.exists():
        called("synth", "-o", parquet, "--users", 3, "--pois", 9, "--days", 9)
    assert says(parquet, "user") == " is Parquet, which names its columns itself; leave --columns out"
    lines = scratch() / "columns.jsonl"
    lines.write_text('{"user": 1, "poi": 2, "lat": 1, "lon": 2, "time": 3}\n')
    assert says(lines, "user,poi") == " is JSON, which names its columns itself; leave --columns out"


def test_brightkite_rows_and_windows_line_ends_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    line = "{}\t2010-10-17T01:48:53Z\t39.747652\t-104.99251\t88c46bf20db295831bd2d1718ad7e6f5\r\n"
    path.write_bytes("".join(line.format(i) for i in range(9)).encode())
    table = formats.read(path).table
    assert formats.read(path).format == "snap"
    assert (table.time.tolist(), table.lat.tolist()) == ([1287280133] * 9, [39.747652] * 9)
    assert table.venue_ids.tolist() == ["", "88c46bf20db295831bd2d1718ad7e6f5"]
