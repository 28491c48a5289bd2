"""What fails by regions: it is named, and what is done is kept or, if it is useless, removed."""

import gzip
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from small_city import called, sentence
from small_world import SEED, contents, parts, protected, rows

from ghostpoi.errors import InputError
from ghostpoi.regions import columns, dataset, divide, engine, protect
from ghostpoi.regions.job import Job, remove_unfinished, unseen
from ghostpoi.release import private_folder

LOCAL = ("--engine", "local")
NOWHERE = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
PROTECT, PROTECT_REGION, ASSEMBLE = protect.protect_table, protect.protect_region, protect.assemble


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
    "survey": (dataset, divide.survey, 5, "part-005.parquet"),
    "scatter": (divide, divide.scatter, 5, "part-005.parquet"),
    "find_crossings": (divide, divide.find_crossings, 0, "range 1 of ids"),
    "test_columns": (columns, columns.test_columns, -1, "data"),
    "assemble": (protect, ASSEMBLE, 5, "part-005.parquet"),
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
    def fails(job: Job, number: int) -> None:
        if number == 1:
            raise error
        PROTECT_REGION(job, number)

    out = tmp_path / "release"
    monkeypatch.setattr(protect, "protect_region", fails)
    failed = called("protect", world, "-o", out, *SEED, *LOCAL)
    assert failed.returncode == 1
    assert "2 of 3 regions are protected, but not region 2 (near " in failed.stderr
    assert said in failed.stderr
    assert "4b05" not in failed.stderr
    (log,) = (tmp_path / "release.private" / "unfinished").glob("world-*/errors.log")
    assert f"{type(error).__name__}: {error}" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(protect, "protect_region", PROTECT_REGION)
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


def stopped(*words: object) -> None:
    """Let a command be interrupted."""
    assert called(*words).returncode == 130


@pytest.mark.parametrize("fault", ["a worker without the folder", "parts written elsewhere"])
def test_a_cluster_that_fails_loses_no_region(
    fault: str, world: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, again = tmp_path / "release", list[int]()

    def third_is_elsewhere(job: Job, number: int) -> None:
        if number == 2:
            raise unseen(job.folder)
        PROTECT_REGION(job, number)

    with monkeypatch.context() as patch:
        if fault == "a worker without the folder":
            patch.setattr(protect, "protect_region", third_is_elsewhere)
        else:
            patch.setattr(protect, "assemble", lambda job, part: None)
        failed = called("protect", world, "-o", out, *SEED, *LOCAL)
    assert failed.returncode == 1
    assert failed.stderr.endswith("--private s3://BUCKET/PATH; then continue with --resume\n")
    assert not out.exists()
    monkeypatch.setattr(protect, "protect_table", lambda *a, **k: again.append(1) or PROTECT(*a, **k))
    assert contents(protected(world, out, *LOCAL, "--resume")) == contents(undisturbed)
    assert len(again) == (fault == "a worker without the folder")


def test_a_task_of_an_interrupted_run_does_not_reach_the_next(
    world: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, late = tmp_path / "release", list[Job]()

    def interrupted(job: Job, number: int) -> None:
        late.append(job)
        raise KeyboardInterrupt

    def after_the_old_one(job: Job, number: int) -> None:
        with pytest.raises(FileNotFoundError):
            PROTECT_REGION(late[0], number)
        PROTECT_REGION(job, number)

    with monkeypatch.context() as patch:
        patch.setattr(protect, "protect_region", interrupted)
        stopped("protect", world, "-o", out, "--seed", 5**40, *SEED[2:], *LOCAL)
    monkeypatch.setattr(protect, "protect_region", after_the_old_one)
    assert contents(protected(world, out, *LOCAL, "--force")) == contents(undisturbed)
    assert not late[0].folder.exists()


def test_another_version_does_not_go_on_with_the_regions_of_the_last(
    world: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, done = tmp_path / "release", list[int]()

    def second_is_interrupted(job: Job, number: int) -> None:
        if number == 1:
            raise KeyboardInterrupt
        PROTECT_REGION(job, number)

    with monkeypatch.context() as patch:
        patch.setattr(protect, "protect_region", second_is_interrupted)
        patch.setattr(private_folder, "__version__", "0.0.1")
        stopped("protect", world, "-o", out, *SEED, *LOCAL)
    monkeypatch.setattr(protect, "protect_table", lambda *a, **k: done.append(1) or PROTECT(*a, **k))
    went_on = called("protect", world, "-o", out, *SEED, *LOCAL, "--resume")
    assert "version are not those of the interrupted run, so the dataset is divided again" in went_on.stderr
    assert len(done) == 3
    assert contents(out) == contents(undisturbed)


def test_a_division_that_is_half_removed_is_not_used_again(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, smaller = tmp_path / "release", (*LOCAL, "--set", "regions.most_rows=1000")

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    def half_removed(folders: list[Path]) -> None:
        for folder in folders:
            shutil.rmtree(folder / "survey" / "000000")
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(protect, "protect_region", interrupted)
        stopped("protect", world, "-o", out, *SEED, *LOCAL)
    with monkeypatch.context() as patch:
        patch.setattr(protect, "_remove", half_removed)
        stopped("protect", world, "-o", out, *SEED, *smaller, "--resume")
    protected(world, out, *LOCAL, "--resume")
    assert called("verify", out, "--against", world, *LOCAL).returncode == 0
    assert sum(path.name.startswith((".world-", "world-")) for path in tmp_path.rglob("*")) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_part_that_cannot_be_read_is_named(world: Path, tmp_path: Path) -> None:
    data = shutil.copytree(world, tmp_path / "data")
    (data / "part-001.parquet").chmod(0)
    said = sentence(called("protect", data, "-o", tmp_path / "release", *SEED, *LOCAL))
    assert (
        said == f"{data / 'part-001.parquet'} cannot be read by this user; change its permissions or run as its owner"
    )


def test_what_killed_stages_and_tasks_left_is_removed(tmp_path: Path) -> None:
    for left in (".stage.x", "released/.000001.y", "released/000002"):
        (tmp_path / left).mkdir(parents=True)
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["000002", "released"]
