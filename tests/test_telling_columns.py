"""Columns that give clean venues away are refused by protect, can be dropped, and fail verify if they are kept."""

import base64
import hashlib
import json
import random
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_city import MAP, SETS, Done, called, rich_frame, sentence

from ghostpoi.data.geo import haversine_km


def city() -> pl.DataFrame:
    """The small city in time order per user, with the columns that people really have."""
    draw = random.Random(3)
    frame = rich_frame().drop("checkin", "mood").with_columns(
        time=pl.col("timestamp").str.to_datetime("%a %b %d %H:%M:%S %z %Y").dt.epoch("s")
    )  # fmt: skip
    shift = [pl.col(c).shift(1).over("Who", order_by="time").alias(f"prev_{c}") for c in ("spot", "lat", "lng")]
    home = pl.col("spot").mode().sort().first().over("Who").alias("home_venue")
    frame = frame.with_columns(*shift, home)
    lat = dict(zip(frame["spot"], frame["lat"], strict=True))
    km = haversine_km(*(frame[c].fill_null(0).to_numpy() for c in ("lat", "lng", "prev_lat", "prev_lng")))
    row = list(zip(frame["Who"], frame["spot"], frame["time"], frame["title"], strict=True))
    number = {spot: i for i, spot in enumerate(frame["spot"].unique().sort())}
    return frame.select(
        *rich_frame().drop("checkin", "mood").columns,
        prev_venue=pl.col("prev_spot").fill_null(""),
        home_venue="home_venue",
        home_lat=pl.Series([lat[v] for v in frame["home_venue"]]),
        dist_prev_km=pl.Series(np.where(frame["prev_lat"].is_null(), 0, km).round(3)),
        token=pl.Series([base64.b64encode(f"{u}:{v}:{t}".encode()).decode() for u, v, t, _ in row]),
        digest=pl.Series([hashlib.sha1(f"{u}|{v}|{t}".encode()).hexdigest() for u, v, t, _ in row]),
        terminal=pl.Series([f"T{number[v] * 6 + draw.randrange(6):05d}" for _, v, _, _ in row]),
        note=pl.Series([f"at {name}" if draw.random() < 0.7 else "lunch" for *_, name in row]),
        phone=pl.Series([draw.choice(["ios", "android"]) for _ in row]),
    )


TELLING = {
    "prev_venue": "contains the id of the user's previous venue",
    "home_venue": "contains the id of the user's most visited venue",
    "home_lat": "holds a coordinate of the user's most visited venue",
    "dist_prev_km": "holds the distance to the user's previous venue",
    "token": "contains the id of the clean venue",
    "digest": "is a hash of the venue",
    "terminal": "predicts the clean venue",
    "note": "contains the name or address of the clean venue",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("city") / "city.csv"
    city().write_csv(path)
    return path


def protect(file: Path, folder: Path, *more: str) -> Done:
    return called("protect", file, "-o", folder, "--method", "random", *MAP, *SETS, *more)


def drops(*keep: str) -> list[str]:
    return [word for name in TELLING if name not in keep for word in ("--drop", name)]


def test_one_sentence_names_every_column_that_tells_and_its_share(file: Path, tmp_path: Path) -> None:
    text = sentence(protect(file, tmp_path / "r"))
    assert text.startswith(f"{file}: 8 columns could reveal clean venues: 'prev_venue' contains")
    for name, reason in TELLING.items():
        share = text.split(f"'{name}' {reason} (")[1].split("%")[0]
        assert 30 < float(share) <= 100, name
    assert f"; leave them out with {' '.join(drops())}, or keep them at your own risk with --keep prev_venue " in text
    assert "phone" not in text
    assert not (tmp_path / "r").exists()


def test_dropped_columns_are_not_in_the_release(file: Path, tmp_path: Path) -> None:
    done = protect(file, tmp_path / "r", *drops())
    assert done.returncode == 0, done.stderr
    released, clean = pl.read_csv(tmp_path / "r" / "checkins.csv"), pl.read_csv(file)
    assert released.columns == [c for c in clean.columns if c not in TELLING]
    for name in ("Who", "gender", "timestamp", "phone"):
        assert released[name].equals(clean[name])
    columns = json.loads((tmp_path / "r" / "manifest.json").read_text())["columns"]
    assert columns["dropped"] == list(TELLING)
    assert columns["kept"] == ["gender", "phone"]
    verified = called("verify", tmp_path / "r", "--against", file)
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize("name", ["prev_venue", "home_lat", "terminal"])
def test_verify_finds_a_column_that_was_kept_at_the_publishers_risk(name: str, file: Path, tmp_path: Path) -> None:
    done = protect(file, tmp_path / "r", *drops(name), "--keep", name)
    assert done.returncode == 0
    assert f"warning: the column '{name}', which --keep names, {TELLING[name]} (" in done.stderr
    verified = called("verify", tmp_path / "r", "--against", file)
    assert verified.returncode == 1
    assert f"FAIL  kept columns     '{name}' {TELLING[name]}" in " ".join(verified.stdout.split("\n"))


def test_a_format_without_a_header_cannot_lose_a_column(tmp_path: Path) -> None:
    from small_city import city as tsmc

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
def test_a_column_to_drop_must_exist_and_may_not_be_needed(
    more: list[str], says: str, file: Path, tmp_path: Path
) -> None:
    assert re.match(says, sentence(protect(file, tmp_path / "r", *more)))
