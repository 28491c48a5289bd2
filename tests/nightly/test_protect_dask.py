"""Dask runs the same tasks: any number of workers gives the same bytes, and a worker that dies loses nothing."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import cast

import dask
import polars as pl
import psutil
import pytest
from distributed import Client, LocalCluster, SpecCluster, Worker, get_worker
from small_city import called, scratch
from small_world import FAST, SEED, contents, parts, protected, released, rows

from ghostpoi.draw.methods import METHODS
from ghostpoi.errors import InputError
from ghostpoi.regions import dataset
from ghostpoi.regions import engine as engine_module
from ghostpoi.regions import protect as release_of_regions
from ghostpoi.regions.dataset import Stages
from ghostpoi.regions.engine import GPU, NO_MEMORY, Dask, Failure, Scale, engine_of
from ghostpoi.regions.job import Job

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, about sockets and event loops


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts(tmp_path_factory.mktemp("world") / "data", 7)


@pytest.fixture(scope="module")
def release(world: Path) -> Path:
    return protected(world, world.with_name("release"), "--engine", "local")


@contextmanager
def divided_once() -> Iterator[None]:
    """Divide data and test columns for the first method only: others would find the same."""
    divide, test, first = release_of_regions.divided, release_of_regions.test_all_columns, list[Job]()

    def divided(job: Job, stages: Stages) -> Job:
        if not first:
            return divide(job, stages)
        for stage in ("fragments", "regions", "crossings"):
            (job.folder / stage).symlink_to(first[0].folder / stage)
        known = {name: getattr(first[0], name) for name in ("regions", "format", "fields", "source", "category_groups")}
        return replace(job, **known)

    def tested(job: Job, stages: Stages) -> Job:
        if not first:
            kept = Path(mkdtemp(dir=scratch()))
            first.append(replace(test(job, stages), folder=copytree(job.folder, kept, dirs_exist_ok=True)))
        return replace(job, columns=first[0].columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_of_regions, "divided", divided)
        patch.setattr(release_of_regions, "test_all_columns", tested)
        yield


def test_workers_and_parts_change_nothing_with_any_method(tmp_path: Path) -> None:
    """Every method meets 1, 2 and 4 workers, and 1, 7 and 64 parts."""
    few = rows().filter(pl.col("city") != rows()["city"][0], pl.col("user").hash(0) % 2 == 0)
    (config := tmp_path / "fast.toml").write_text(FAST)

    def released_with(count: int, name: str, *engine: object) -> Iterator[tuple[str, Path]]:
        data = parts(tmp_path / name, count, few)
        with divided_once():
            for method in METHODS:
                yield (
                    method,
                    protected(
                        data, tmp_path / f"{name}-{method}", "--method", method, "--config", config, "--engine", *engine
                    ),
                )

    reference = dict(released_with(1, "one", "local"))
    assert not [method for method, found in reference.items() if released(found).equals(few)]
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster:
        for workers, count in ((4, 1), (2, 7), (1, 64)):
            cluster.scale(workers)
            while len(cluster.scheduler.workers) != workers:
                time.sleep(0.01)
            found = dict(released_with(count, f"{count} parts", "dask", "--scheduler", cluster.scheduler_address))
            differ = [method for method in METHODS if not released(found[method]).equals(released(reference[method]))]
            assert not differ, (workers, count)
            if count == 1:
                assert [contents(found[method]) for method in METHODS] == [*map(contents, reference.values())]


@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_is_killed_loses_nothing(world: Path, release: Path, tmp_path: Path, count: int) -> None:
    killed: list[int] = []
    run = tmp_path / "release.private" / "unfinished"

    def kill() -> None:
        while not any(run.glob("world-*/fragments/0*")):
            time.sleep(0.01)
        # The workers are processes that Dask's nannies, children of this process, have started.
        workers = [p for p in psutil.Process().children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]
        if workers:
            os.kill(workers[0].pid, signal.SIGKILL)
            killed.append(workers[0].pid)

    thread = threading.Thread(target=kill)
    thread.start()
    other = protected(world, tmp_path / "release", "--engine", "dask", "--workers", count)
    thread.join()
    assert killed
    assert contents(other) == contents(release)


def test_a_run_whose_processes_are_all_killed_goes_on(world: Path, release: Path, tmp_path: Path) -> None:
    out, dask = tmp_path / "release", ("--engine", "dask", "--workers", "2")
    words = [sys.executable, "-m", "ghostpoi", "protect", world, "-o", out, *SEED, *dask]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run = tmp_path / "release.private" / "unfinished"
    while not any(run.glob("world-*/released/0*")):
        assert running.poll() is None
        time.sleep(0.01)
    main = psutil.Process(running.pid)
    main.suspend()  # else it starts new workers
    others = main.children(recursive=True)
    assert len([one for one in others if "spawn_main" in " ".join(one.cmdline())]) >= 2  # the workers
    for process in (main, *others):
        process.kill()
    running.wait()
    while [one for one in others if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]:
        time.sleep(0.01)
    assert not out.exists()
    assert contents(protected(world, out, *dask, "--resume")) == contents(release)


class OnlyFolder(SimpleNamespace):
    """A job of which tasks know the folder alone, here and on workers."""

    def on_worker(self) -> "OnlyFolder":
        return self


def where(job: Job, number: int) -> str:
    return str(get_worker().name)


@pytest.mark.parametrize("resources", [{GPU: 1}, {}])
def test_methods_with_models_run_on_workers_with_a_gpu_if_there_are_any(
    resources: dict[str, int], tmp_path: Path
) -> None:
    job = cast("Job", OnlyFolder(folder=tmp_path))
    workers = {"plain": {"cls": Worker}, "card": {"cls": Worker, "options": {"resources": resources}}}
    with SpecCluster(workers) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        for on_gpu in (True, False):
            found, failed = Dask(client).run(where, job, range(20), lambda number: None, on_gpu=on_gpu)
            assert set(found.values()) == ({"card"} if on_gpu and resources else {"plain", "card"})
            assert not failed


def dies(job: Job, number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_only_a_task_that_kills_its_workers_is_named(tmp_path: Path) -> None:
    """As the system does when memory runs out. The worker holds all tasks, so Dask blames all of them."""
    job, done = cast("Job", OnlyFolder(folder=tmp_path)), list[int]()
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": 20.0}),
        engine_of(Scale(engine="dask", workers=1)) as engine,
    ):
        found, failed = engine.run(dies, job, range(6), done.append)
    assert (found, failed) == ({n: n for n in range(6) if n != 1}, [Failure(1, NO_MEMORY, killed=True)])
    assert sorted(done) == [0, 2, 3, 4, 5]


def fails(job: Job, number: int) -> int:
    if number == 1:
        raise ValueError("a clean value")
    return number


def test_a_task_that_ends_with_an_error_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = cast("Job", OnlyFolder(folder=tmp_path))
    with engine_of(Scale(engine="dask", workers=1)) as engine:
        found, [failed] = engine.run(fails, job, range(3), lambda number: None, goes_on=True)
    assert (found, failed.number, failed.refused) == ({0: 0, 2: 2}, 1, False)
    assert "a clean value" in (tmp_path / "errors.log").read_text()
    assert "a clean value" not in failed.why + "".join(capfd.readouterr())


def test_an_error_of_a_task_is_raised_here_and_not_logged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = cast("Job", OnlyFolder(folder=tmp_path))
    with (
        engine_of(Scale(engine="dask", workers=1)) as engine,
        pytest.raises(ValueError, match="a clean value") as raised,
    ):
        engine.run(fails, job, range(3), lambda number: None)
    assert "in fails" in raised.value.__notes__[0]
    assert "a clean value" not in "".join(capfd.readouterr())
    assert not [*tmp_path.iterdir()]


def test_a_scheduler_without_workers_or_keys_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "PATIENCE", 0.1)
    with SpecCluster({}) as cluster:
        address = cluster.scheduler_address
        for scheduler, said in ((address, "it has no workers; start some with: dask worker tcp:"),
                                (address.replace("tcp", "tls"), "no scheduler answers there")):  # fmt: skip
            with pytest.raises(InputError, match=said), engine_of(Scale(engine="dask", scheduler=scheduler)):
                pass


def test_fewer_workers_go_on_if_memory_is_short(world: Path, release: Path, tmp_path: Path) -> None:
    words = ("--engine", "dask", "--workers", 3, "--memory", "1300MB")
    assert contents(protected(world, tmp_path / "release", *words)) == contents(release)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A cluster whose worker has another working folder."""
    folder, here = tmp_path_factory.mktemp("elsewhere"), Path.cwd()
    os.chdir(folder)
    try:
        with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
            os.chdir(here)
            yield cluster.scheduler_address, folder
    finally:
        os.chdir(here)


def test_workers_may_have_another_working_folder(
    elsewhere: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, folder = elsewhere
    monkeypatch.chdir(tmp_path)
    world = parts(Path("world"), 3)
    release = protected(world, Path("release"), "--engine", "dask", "--scheduler", scheduler)
    assert released(release).height == rows().height
    assert not [path for path in folder.rglob("*") if "world" in path.parts or "private" in path.name]


def test_workers_that_do_not_see_the_same_folders_are_noticed(
    elsewhere: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = parts(tmp_path / "world", 2)
    monkeypatch.setattr(dataset, "is_done", lambda folder: False)  # as if it were on another machine
    words = ("--engine", "dask", "--scheduler", elsewhere[0])
    done = called("protect", world, "-o", tmp_path / "release", *SEED, *words)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "give all machines of the cluster the same folders and user, or name a private folder in a store with "
        "--private s3://BUCKET/PATH; then continue with --resume\n"
    )
    assert not (tmp_path / "release").exists()
