"""`audit` of releases with each kind of method, and of a foreign file; all keep a number that varies."""

import json
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from small_city import SEED, SETS, called, scratch

from ghostpoi.data import synthetic as synth
from ghostpoi.data.synthetic_files import city_frame

SPLIT = (
    "filters.min_poi_checkins=5",
    "filters.min_session_length=2",
    "filters.train_share=0.6",
    "filters.val_share=0.2",
)
FAST = ["--victim", "markov", "--seeds", "1", "--no-naturalness", *(w for text in SPLIT for w in ("--set", text))]


@cache
def city() -> Path:
    """A tiny city with a number that nobody decides. Rare venues have no candidate."""
    frame, path = city_frame(synth.make_city(40, 150, 40, 3), 3), scratch() / "tiny.csv"
    rare = pl.int_range(pl.len()).over("venue_id") == 0
    frame = frame.with_columns(
        bars=pl.int_range(pl.len()) * 7919 % 101 % 5,
        category_id=pl.when(rare & (pl.col("venue_id").hash(1) % 4 == 0)).then(pl.lit("only")).otherwise("category_id"),
    )
    of_venue = frame.group_by("venue_id", maintain_order=True).agg(pl.col("category_id").last())
    frame.drop("category_id", "category").join(of_venue, on="venue_id", maintain_order="left").write_csv(path)
    return path


@pytest.mark.parametrize("method", ["random", "ghost", "pgd", "geo-indistinguishability"])
def test_audit_of_a_release(method: str, tmp_path: Path) -> None:
    words = ("--method", method, "--seed", SEED, *SETS, "--keep", "bars", "--keep", "timezone_offset")
    done = called("protect", city(), "-o", tmp_path / "r", *words)
    assert done.returncode == 0, done.stderr
    done = called("audit", city(), tmp_path / "r", *FAST, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert "kept-columns" in json.loads(done.stdout)["adversaries"]


def test_audit_of_a_foreign_file(tmp_path: Path) -> None:
    frame = pl.read_csv(city())
    venue = [name for name in frame.columns if name in ("venue_id", "category_id", "latitude", "longitude")]
    moved = frame.with_columns(frame.select(venue).sample(fraction=1, shuffle=True, seed=1))
    moved.write_csv(tmp_path / "theirs.csv")
    done = called("audit", city(), tmp_path / "theirs.csv", *FAST, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["adversaries"]
