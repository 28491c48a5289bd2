"""Columns that give clean venues away are refused by protect, can be dropped, and fail verify if they are kept."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from small_city import MAP, SETS, Done, called, sentence
from small_city import city as tsmc
from telling_city import TELLING, drops, telling_csv


def protect(folder: Path, *more: str) -> Done:
    return called("protect", telling_csv(), "-o", folder, "--method", "random", *MAP, *SETS, *more)


def test_one_sentence_names_every_column_that_tells_and_its_share(tmp_path: Path) -> None:
    text = sentence(protect(tmp_path / "r"))
    assert text.startswith(f"{telling_csv()}: 8 columns could reveal clean venues: 'prev_venue' contains")
    for name, reason in TELLING.items():
        share = text.split(f"'{name}' {reason} (")[1].split("%")[0]
        assert 30 < float(share) <= 100, name
    assert f"; leave them out with {' '.join(drops())}, or keep them at your own risk with --keep prev_venue " in text
    assert "phone" not in text
    assert not (tmp_path / "r").exists()


def test_dropped_columns_are_not_in_the_release(tmp_path: Path) -> None:
    done = protect(tmp_path / "r", *drops())
    assert done.returncode == 0, done.stderr
    released, clean = pl.read_csv(tmp_path / "r" / "checkins.csv"), pl.read_csv(telling_csv())
    assert released.columns == [c for c in clean.columns if c not in TELLING]
    for name in ("Who", "gender", "timestamp", "phone"):
        assert released[name].equals(clean[name])
    columns = json.loads((tmp_path / "r" / "manifest.json").read_text())["columns"]
    assert columns["dropped"] == list(TELLING)
    assert columns["kept"] == ["gender", "phone"]
    verified = called("verify", tmp_path / "r", "--against", telling_csv())
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize("name", ["prev_venue", "home_lat", "terminal"])
def test_verify_finds_a_column_that_was_kept_at_the_publishers_risk(name: str, tmp_path: Path) -> None:
    done = protect(tmp_path / "r", *drops(name), "--keep", name)
    assert done.returncode == 0
    assert f"warning: the column '{name}', which --keep names, {TELLING[name]} (" in done.stderr
    verified = called("verify", tmp_path / "r", "--against", telling_csv())
    assert verified.returncode == 1
    assert f"FAIL  kept columns     '{name}' {TELLING[name]}" in " ".join(verified.stdout.split("\n"))


def test_a_format_without_a_header_cannot_lose_a_column(tmp_path: Path) -> None:
    done = called("protect", tsmc(), "-o", tmp_path / "r", "--drop", "timezone_offset", *SETS)
    assert "has no header line, so its format has fixed columns; convert it to CSV first" in sentence(done)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--drop", "nope"], "--drop nope: .* has no column 'nope'"),
        (["--drop", "Who"], "--drop Who: a release needs this column"),
        (["--drop", "note", "--keep", "note"], "--keep note and --drop note contradict each other"),
    ],
)
def test_a_column_to_drop_must_exist_and_may_not_be_needed(more: list[str], says: str, tmp_path: Path) -> None:
    assert re.match(says, sentence(protect(tmp_path / "r", *more)))


def test_offsets_of_times_that_depend_on_the_venue_are_refused(tmp_path: Path) -> None:
    frame = pl.read_csv(telling_csv()).drop(TELLING)
    time = pl.col("timestamp").str.to_datetime("%a %b %d %H:%M:%S %z %Y")
    iso = [time.dt.offset_by(f"{hours}h").dt.strftime(f"%Y-%m-%dT%H:%M:%S{hours:+03d}:00") for hours in (-4, -5)]
    west = pl.col("lng") < pl.col("lng").median()
    frame.with_columns(timestamp=pl.when(west).then(iso[1]).otherwise(iso[0])).write_csv(tmp_path / "x.csv")
    text = sentence(called("protect", tmp_path / "x.csv", "-o", tmp_path / "r", *MAP, *SETS))
    assert text.startswith(
        f"{tmp_path / 'x.csv'}: the notation (offset, fraction of a second, spelling, padding) of the values in the "
        "column 'timestamp' predicts "
    )
    assert text.endswith("in one form with --normalise timestamp; write times in UTC and whole seconds")
