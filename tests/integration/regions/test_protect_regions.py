"""Datasets larger than memory: protected region by region, with the same result however they are divided."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_city import called, sentence
from small_world import SEED, contents, manifest, parts, protected, released, rows

from ghostpoi.data.geo import haversine_km
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.draw.publication import publication
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.progress import no_report
from ghostpoi.randomness import Seed
from ghostpoi.regions import divide, protect
from ghostpoi.regions.dataset import Stages, fit, fit_pieces
from ghostpoi.regions.divide import (
    find_crossings,
    find_regions,
    in_range,
    join_venues,
    keys,
    read_region,
    scatter,
    survey,
    with_kind,
    with_pieces,
)
from ghostpoi.regions.engine import Scale
from ghostpoi.regions.job import Job, Region
from ghostpoi.regions.pieces import Piece, find_pieces
from ghostpoi.release.private_folder import RowsRequest
from ghostpoi.settings import RegionSettings

LOCAL = ("--engine", "local")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts(tmp_path_factory.mktemp("world") / "data", 7)


@pytest.fixture(scope="module")
def release(world: Path) -> Path:
    return protected(world, world.with_name("release"), *LOCAL)


def test_a_release_has_the_parts_rows_and_columns_of_the_dataset(world: Path, release: Path) -> None:
    assert [*contents(release)] == [path.name for path in sorted(world.iterdir())]
    assert released(release).schema == rows().schema
    same = ["user", "utc_time", "timezone_offset"]
    assert released(release).select(same).equals(rows().select(same))
    assert manifest(release)["regions"]["count"] == 3
    assert manifest(release)["data"]["rows"] == rows().height


def test_substitutes_stay_in_their_region(release: Path) -> None:
    clean, new = (frame.select("latitude", "longitude", "city") for frame in (rows(), released(release)))
    assert new["city"].equals(clean["city"])
    km = haversine_km(*(frame[axis].to_numpy() for frame in (clean, new) for axis in ("latitude", "longitude")))
    assert km.max() < 10
    assert (km > 0).mean() > 0.5


def test_venues_and_users_are_joined_by_ranges(
    world: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(divide.AT_ONCE, "rows", 500)
    monkeypatch.setitem(divide.AT_ONCE, "venues", 200)
    numbers: dict[str, set[int]] = {"venues": set(), "crossings": set()}
    own = Job.result
    monkeypatch.setattr(Job, "result", lambda self, stage, number: (
        numbers.get(stage, set()).add(number), own(self, stage, number))[1])  # fmt: skip
    assert contents(protected(world, tmp_path / "release", *LOCAL)) == contents(release)
    assert all(len(found) >= rows().height // 1000 for found in numbers.values())


@given(st.sets(st.text(max_size=3), max_size=40), st.integers(1, 30))
def test_every_key_is_in_one_range(ids: set[str], count: int) -> None:
    every = pl.DataFrame({"key": np.sort(keys(ids))})
    found = [every.filter(in_range("key", number, count)) for number in range(count)]
    assert pl.concat(found).equals(every)


def test_ranges_have_about_the_same_size() -> None:
    every = pl.DataFrame({"key": keys(range(20_000))})
    assert max(every.filter(in_range("key", number, 4)).height for number in range(4)) < 5300


def test_a_file_is_read_in_pieces(release: Path, tmp_path: Path) -> None:
    rows().write_parquet(tmp_path / "one.parquet", row_group_size=500)
    small = protected(tmp_path / "one.parquet", tmp_path / "small", *LOCAL, "--set", "regions.most_rows=5000")
    assert pl.read_parquet(small / "checkins.parquet").equals(released(release))


def test_one_region_is_protected_as_one_file_is(tmp_path: Path) -> None:
    write_city(tmp_path / "city.csv", 40, 120, 60, 1)
    for name, words in (("whole", ()), ("regions", LOCAL)):
        protected(tmp_path / "city.csv", tmp_path / name, *words)
    one, two = (tmp_path / name for name in ("whole", "regions"))
    assert (one / "checkins.csv").read_bytes() == (two / "checkins.csv").read_bytes()
    assert manifest(one) == manifest(two)


def test_text_parts_keep_every_byte_that_does_not_change(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 3, rows(), ".csv")
    last = data / "part-002.csv"
    last.write_bytes(last.read_bytes().rstrip(b"\n"))
    found = contents(protected(data, tmp_path / "release", *LOCAL))
    for path in sorted(data.iterdir()):
        clean, new = path.read_bytes(), found[path.name]
        assert clean.split(b"\n", 1)[0] == new.split(b"\n", 1)[0]
        assert clean.count(b"\n") == new.count(b"\n")
        assert clean.endswith(b"\n") == new.endswith(b"\n")


def test_regions_follow_a_column(world: Path, tmp_path: Path) -> None:
    by_column = protected(world, tmp_path / "release", "--map", "region=city")
    assert manifest(by_column)["regions"] == {
        "count": 3, "column": "city", "most_venues": 30_000, "most_rows": 2_000_000,
    }  # fmt: skip


def test_a_large_region_is_cut(world: Path, tmp_path: Path) -> None:
    cut = protected(world, tmp_path / "release", "--set", "regions.most_venues=60")
    assert manifest(cut)["regions"]["count"] >= 6
    assert called("verify", cut, "--against", world).returncode == 0


def test_withheld_rows_are_left_out_of_their_part(world: Path, tmp_path: Path) -> None:
    words = ("--method", "random", "--no-candidate", "withhold", "--set", "candidates.max_widenings=0")
    found = protected(world, tmp_path / "release", *LOCAL, *words)
    withheld = manifest(found)["rows"]["withheld"]
    assert 0 < withheld == rows().height - released(found).height
    assert called("verify", found, "--against", world).returncode == 0


def test_verify_compares_every_region(world: Path, release: Path, tmp_path: Path) -> None:
    done = called("verify", release, "--against", world, "--json")
    checks = {check["check"]: check["passed"] for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, done.stdout
    assert all(checks.values())
    assert {"regions", "rows", "parts", "radius", "venue fields", "speed", "counts", "plausibility"} <= set(checks)
    other = parts(tmp_path / "other", 7, rows().with_columns(pl.col("venue_id").reverse()))
    assert called("verify", release, "--against", other).returncode == 1
    fewer = parts(tmp_path / "fewer", 7, rows()[:-5])
    assert called("verify", release, "--against", fewer).returncode == 1


def test_nothing_private_is_left(release: Path) -> None:
    private = Path(f"{release}.private")
    assert {path.name for path in private.iterdir()} == {"pairs", "run.json", "signing.key"}
    assert len([*(private / "pairs").iterdir()]) == 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in (private, *private.iterdir()))


def test_an_interrupted_run_goes_on(
    world: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    own = protect.protect_table

    def dies(*arguments: object, **more: object) -> object:
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(1)
        return own(*arguments, **more)

    out = tmp_path / "release"
    monkeypatch.setattr(protect, "protect_table", dies)
    stopped = called("protect", world, "-o", out, *SEED, *LOCAL)
    assert stopped.returncode == 130
    assert "go on with --resume" in stopped.stderr
    assert not out.exists()
    monkeypatch.setattr(protect, "protect_table", lambda *a, **k: done.append(1) or own(*a, **k))
    protected(world, out, *LOCAL, "--resume")
    assert len(done) == 3  # the region that was done is not drawn again
    assert contents(out) == contents(release)


def test_other_regions_are_divided_again(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = protect.protect_table

    def fails_later(*arguments: object, **more: object) -> object:
        monkeypatch.setattr(protect, "protect_table", fails)
        return own(*arguments, **more)

    def fails(*arguments: object, **more: object) -> object:
        raise MemoryError

    monkeypatch.setattr(protect, "protect_table", fails_later)
    failed = called("protect", world, "-o", tmp_path / "release", *SEED, *LOCAL)
    assert failed.returncode == 1
    assert "1 of 3 regions are protected" in failed.stderr
    monkeypatch.setattr(protect, "protect_table", own)
    smaller = (*LOCAL, "--set", "regions.most_rows=1000")
    done = called("protect", world, "-o", tmp_path / "release", *SEED, *smaller, "--resume")
    assert done.returncode == 0, done.stderr
    assert "the dataset is divided again" in done.stderr
    assert contents(tmp_path / "release") == contents(protected(world, tmp_path / "new", *smaller))
    assert manifest(tmp_path / "new")["regions"]["count"] > 3


def test_a_region_that_fails_is_named_and_the_others_finish(
    world: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, out = protect.protect_table, tmp_path / "release"
    done: list[int] = []

    def fails(whole: object, *arguments: object, **more: object) -> object:
        done.append(1)
        if len(done) == 2:
            raise MemoryError
        return own(whole, *arguments, **more)

    monkeypatch.setattr(protect, "protect_table", fails)
    failed = called("protect", world, "-o", out, *SEED, *LOCAL)
    assert failed.returncode == 1
    assert len(done) == 3
    assert "2 of 3 regions are protected, but not region 2 (near " in failed.stderr
    assert "--set regions.most_rows=" in failed.stderr
    assert not out.exists()
    monkeypatch.setattr(protect, "protect_table", own)
    protected(world, out, *LOCAL, "--resume")
    assert contents(out) == contents(release)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "spark"), "--engine spark: unknown engine; use local or dask"),
        (("--workers", "2"), "--workers and --scheduler are for Dask; add --engine dask"),
        (("--memory", "much"), "--memory 'much' is not a size; give a number with a unit, e.g. --memory 20GB"),
        ((*LOCAL, "--map", "region=town"), "has no column 'town'"),
        (("--set", "regions.gap_km=0"), "--set regions.gap_km=0: regions.gap_km must be at least"),
    ],
)
def test_refusals(world: Path, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    assert said in sentence(called("protect", world, "-o", tmp_path / "release", *SEED, *words))
    assert not (tmp_path / "release").exists()


def test_parts_must_be_of_one_kind(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 2)
    pl.read_parquet(data / "part-001.parquet").rename({"city": "town"}).write_parquet(data / "part-001.parquet")
    said = sentence(called("protect", data, "-o", tmp_path / "release", *SEED, *LOCAL))
    assert "differs from earlier files in its format" in said


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 2)
    (data / "part-001.parquet").write_bytes(b"PAR1 nothing else")
    said = sentence(called("protect", data, "-o", tmp_path / "release", *SEED, *LOCAL))
    assert "part-001.parquet is a damaged Parquet file" in said


def test_a_part_without_rows_stays(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 2)
    rows()[:0].write_parquet(data / "part-000-empty.parquet")
    found = protected(data, tmp_path / "release", *LOCAL)
    assert pl.read_parquet(found / "checkins" / "part-000-empty.parquet").schema == rows().schema


def test_a_row_after_a_journey_is_a_crossing(tmp_path: Path) -> None:
    lines = ["user,venue_id,category,latitude,longitude,utc_time"]
    at = {"a": "40.0,-74.0", "b": "42.0,-71.0"}
    for user, path in (("one", "aabab"), ("two", "aaaaa")):
        lines += [f"{user},{v}{n},bar,{at[v]},2026-01-01T0{n}:00:00Z" for n, v in enumerate(path)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    source = Source(tmp_path / "data.csv")
    pieces = find_pieces(source, 1000)
    request = RowsRequest(settings=publication("random"), method="random", protocol="", device=None, mapping={})
    (tmp_path / "work").mkdir()
    job = Job(tmp_path / "work", pieces, request, source, RegionSettings(), "", Seed(0), "")
    survey(job, 0)
    job = with_kind(job)
    join_venues(job, 0, 1)
    job = replace(job, regions=find_regions(job))
    scatter(job, 0)
    find_crossings(job, 0, 1)
    job = with_pieces(job)
    a, b = job.regions
    assert read_region(job, a).table.crossing.tolist() == [False, False, True, False, False, False, False, False]
    assert read_region(job, b).table.crossing.tolist() == [True, True]


def test_the_memory_is_bounded(world: Path, release: Path, tmp_path: Path) -> None:
    said = sentence(called("protect", world, "-o", tmp_path / "release", *SEED, "--memory", "300MB"))
    assert re.fullmatch(r"region 1 \(near .*; .* rows\) needs about 800MB; allow that with --memory 800MB", said)
    enough = protected(world, tmp_path / "release", "--memory", "1GB")
    assert contents(enough) == contents(release)


def limited(kept: list[int], memory: int | None, workers: int) -> Stages:
    """Stages with this memory, whose engine notes how many workers it is told to keep."""
    engine = SimpleNamespace(keep_workers=kept.append, has_workers=True)
    return Stages(engine, no_report, Scale(settings=RegionSettings(), memory=memory, workers=workers))


def test_fewer_workers_go_on_if_the_largest_region_needs_it() -> None:
    kept: list[int] = []
    region = Region(0, "a", "near 0, 0", 10, 2_000_000, (0,))
    for memory in (None, 10**10, 5 * 10**9):
        fit(limited(kept, memory, 4), [region])
    assert kept == [2]
    with pytest.raises(InputError, match=r"needs about 2.4GB; .* or cut it with --set regions.most_rows=1000000$"):
        fit(limited(kept, 2 * 10**9, 1), [region])


def test_fewer_workers_read_if_memory_is_short(tmp_path: Path) -> None:
    kept: list[int] = []
    (tmp_path / "x.csv").write_text("user\n1\n")
    for memory in (None, 10**10, 2 * 10**9, 10**9):
        fit_pieces(limited(kept, memory, 8), Source(tmp_path), [Piece(0, 0, tmp_path / "x.csv")])
    assert kept == [2, 1]  # besides the main process with 400 MB, each has up to 800 MB


def test_each_worker_chooses_its_device(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(protect, "device_for", lambda name, settings: asked.append(name))
    protected(world, tmp_path / "release", *LOCAL, "--device", "cpu")
    assert asked == ["cpu"] * 3


def test_clean_rows_of_regions_are_not_joined(release: Path, tmp_path: Path) -> None:
    private = f"{release}.private"
    said = sentence(called("export", release, "--to", "getnext", "-o", tmp_path / "out", "--private", private))
    assert f"--private {private} holds pairs by region" in said


def test_a_run_that_dies_at_its_end_keeps_the_pairs(
    world: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, private = tmp_path / "release", tmp_path / "release.private"
    own = os.replace
    for last in ("run.json", "pairs"):

        def dies(source: Path, target: Path, last: str = last) -> None:
            if Path(target) == private / last:
                raise KeyboardInterrupt
            own(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", dies)
            assert called("protect", world, "-o", out, *SEED, *LOCAL, "--force").returncode == 130
        protected(world, out, *LOCAL, "--resume")
        assert contents(out) == contents(release)
        assert sorted(path.name for path in (private / "pairs").iterdir()) == [f"00000{n}.npz" for n in range(3)]
