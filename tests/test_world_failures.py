"""What fails by regions: it is named, and what is done is kept or, if it is of no use, removed."""

import gzip
import shutil
from pathlib import Path

import polars as pl
import pytest
from small_city import called, sentence
from small_world import SEED, contents, parts, protected, rows

from ghostpoi.errors import InputError
from ghostpoi.world import assemble, columns, dataset, engine, protect_region, release, scatter, survey
from ghostpoi.world.job import remove_unfinished

LOCAL = ("--engine", "local")
NOWHERE = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts(tmp_path_factory.mktemp("world") / "data", 7)


@pytest.fixture(scope="module")
def undisturbed(world: Path) -> Path:
    return protected(world, world.with_name("release"), *LOCAL)


@pytest.mark.parametrize("words", [(*LOCAL, "--workers", "2"), NOWHERE, (*NOWHERE, "--memory", "2GB")])
def test_a_refused_engine_leaves_nothing(words: tuple[str, ...], world: Path, tmp_path: Path) -> None:
    sentence(called("protect", world, "-o", tmp_path / "release", *SEED, *words))
    assert not [*tmp_path.iterdir()]


def test_without_dask_nothing_is_left(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(extra: str) -> None:
        raise InputError(f"{extra} is not installed")

    monkeypatch.setattr(engine, "need", missing)
    said = sentence(called("protect", world, "-o", tmp_path / "release", *SEED, "--engine", "dask"))
    assert said == "dask is not installed"
    assert not [*tmp_path.iterdir()]


def test_compressed_parquet_may_have_the_name_of_parquet(world: Path, undisturbed: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(world, data)
    for path in data.iterdir():
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert contents(protected(data, tmp_path / "release", *LOCAL)) == contents(undisturbed)


def test_text_may_have_the_name_of_parquet(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 2, ending=".csv")
    expected = [*contents(protected(data, tmp_path / "named", *LOCAL)).values()]
    for path in [*data.iterdir()]:
        path.rename(path.with_suffix(".parquet"))
    misnamed = protected(data, tmp_path / "release", *LOCAL)
    assert [*contents(misnamed).values()] == expected
    assert called("verify", misnamed, "--against", data, *LOCAL).returncode == 0


STAGES = {  # where a task is looked up, and what messages call it
    "survey": (dataset, survey.survey, 5, "part-005.parquet"),
    "scatter": (dataset, scatter.scatter, 5, "part-005.parquet"),
    "find_crossings": (dataset, dataset.find_crossings, 0, "range 1 of ids"),
    "test_columns": (release, columns.test_columns, -1, "data"),
    "assemble": (release, assemble.assemble, 5, "part-005.parquet"),
}


@pytest.mark.parametrize("name", STAGES)
def test_what_does_not_fit_is_named_and_the_rest_is_kept(
    name: str, world: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, task, bad, named = STAGES[name]

    def fails(job: object, number: int, *more: object) -> object:
        if number == bad:
            raise MemoryError
        return task(job, number, *more)

    out = tmp_path / "release"
    monkeypatch.setattr(place, name, fails)
    failed = called("protect", world, "-o", out, *SEED, *LOCAL)
    assert failed.returncode == 1
    assert f"{named}: it does not fit into the memory; " in failed.stderr
    assert failed.stderr.endswith("; then continue with --resume\n")
    assert not out.exists()
    monkeypatch.setattr(place, name, task)
    assert contents(protected(world, out, *LOCAL, "--resume")) == contents(undisturbed)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("venue 4b05 is odd"), "it ended with an error (ValueError); see "),
        (OSError(28, "No space left on device"), "its files could not be read or written (no space left on device)"),
    ],
)
def test_whatever_fails_in_a_region_the_others_finish(
    error: Exception, said: str, world: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(job: object, number: int) -> None:
        if number == 1:
            raise error
        protect_region.protect_region(job, number)

    out = tmp_path / "release"
    monkeypatch.setattr(release, "protect_region", fails)
    failed = called("protect", world, "-o", out, *SEED, *LOCAL)
    assert failed.returncode == 1
    assert "2 of 3 regions are protected, but not region 2 (near " in failed.stderr
    assert said in failed.stderr
    assert "4b05" not in failed.stderr
    log = tmp_path / "release.private" / "unfinished" / "world" / "errors.log"
    assert f"{type(error).__name__}: {error}" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(release, "protect_region", protect_region.protect_region)
    protected(world, out, *LOCAL, "--resume")
    assert contents(out) == contents(undisturbed)
    assert not log.exists()


@pytest.mark.parametrize("count", [1, 12])
def test_the_division_into_parts_does_not_decide_what_is_refused(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "ORDERED", 100)
    city = rows()["city"].value_counts(sort=True)["city"][-1]
    one, others = rows().filter(pl.col("city") == city), rows().filter(pl.col("city") != city)
    grouped = one.sort(pl.col("utc_time").dt.truncate("7d"), "venue_id")
    data = parts(tmp_path / "data", count, pl.concat([others, grouped]))
    done = called("protect", data, "-o", tmp_path / "release", *SEED, *LOCAL)
    assert done.returncode == 1
    assert "2 of 3 regions are protected" in done.stderr


def test_what_killed_stages_and_tasks_left_is_removed(tmp_path: Path) -> None:
    for left in (".stage.x", "released/.000001.y", "released/000002"):
        (tmp_path / left).mkdir(parents=True)
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["000002", "released"]
