"""What would be lost or changed without a word is said: broken links, repeated keys, times without a zone."""

import json
from pathlib import Path

import pytest
from sample_releases import copied
from small_city import SETS, called, city, release, rich_frame, sentence

COLUMNS = ("Who", "spot", "catid", "lat", "lng", "timestamp")
MAP = ("--map", "user=Who", "--map", "poi=spot")


def test_a_broken_link_among_parts_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rich_frame().select(COLUMNS).write_csv(folder / "one.csv")
    (folder / "two.csv").symlink_to(tmp_path / "gone.csv")
    said = f"{folder / 'two.csv'} is a link that leads nowhere; remove it, or put the file there"
    assert sentence(called("inspect", folder, *MAP)) == said
    assert sentence(called("inspect", folder / "*.csv", *MAP)) == said
    (folder / "two.csv").unlink()
    assert called("inspect", folder, *MAP).returncode == 0


@pytest.mark.parametrize("form", ["lines", "array"])
def test_a_key_that_is_named_twice_is_refused(form: str, tmp_path: Path) -> None:
    rows = [json.dumps(row) for row in rich_frame().select(COLUMNS).iter_rows(named=True)]
    rows[3] = rows[3].replace('"Who"', '"spot": "other", "Who"')
    text = "\n".join(rows) if form == "lines" else f"[{', '.join(rows)}]"
    (tmp_path / "x.json").write_text(text)
    where = f"{tmp_path / 'x.json'}, line 4" if form == "lines" else str(tmp_path / "x.json")
    said = f"{where}: an object names 'spot' twice, so one value would be lost; correct it"
    assert sentence(called("inspect", tmp_path / "x.json", *MAP)) == said


def test_a_manifest_names_no_key_twice(tmp_path: Path) -> None:
    folder = copied(release("random"), tmp_path)
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace('"method"', '"method": "clean venues", "method"', 1))
    (folder / "manifest.sig").unlink()
    assert "manifest.json names 'method' twice in one object" in sentence(called("verify", folder))


def test_times_without_a_zone_are_said_to_count_as_utc(tmp_path: Path) -> None:
    import polars as pl

    form = "%a %b %d %H:%M:%S %z %Y"
    frame = rich_frame().select(COLUMNS).with_columns(pl.col("timestamp").str.to_datetime(form))
    frame.with_columns(pl.col("timestamp").dt.strftime("%Y-%m-%d %H:%M:%S")).write_csv(tmp_path / "x.csv")
    frame.with_columns(pl.col("timestamp").dt.replace_time_zone(None)).write_parquet(tmp_path / "x.parquet")
    remedies = {"x.csv": "name the zone with --timezone ZONE", "x.parquet": "store them with their zone"}
    for name, remedy in remedies.items():
        done = called("protect", tmp_path / name, "-o", tmp_path / f"{name}.r", "--method", "random", *MAP, *SETS)
        assert done.returncode == 0, done.stderr
        assert done.stderr == (
            f"warning: {frame.height:,} times state no time zone and count as UTC; {remedy} if it is another\n"
        )
    words = (*MAP, *SETS, "--method", "random", "--timezone", "UTC")
    done = called("protect", tmp_path / "x.csv", "-o", tmp_path / "stated", *words)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_columns_that_are_not_found_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("who,where,north,east,at\na,b,1,2,3\n")
    said = sentence(called("inspect", tmp_path / "x.csv"))
    assert "no column looks like the user among who, where, north, east, at; name it with --map user=COLUMN" in said
    assert said.endswith(
        "no column looks like the venue or the latitude or the longitude or the time either: --map poi=COLUMN "
        "--map lat=COLUMN --map lon=COLUMN --map time=COLUMN"
    )


def test_swapped_arguments_are_recognised(tmp_path: Path) -> None:
    folder = release("random").folder
    said = f"{folder} is a release, and {city()} is not; give the clean file first, then the release"
    assert sentence(called("audit", folder, city())) == said
