"""Dask runs the same tasks: any number of workers gives the same bytes, and a worker that dies loses nothing."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import polars as pl
import psutil
import pytest
from distributed import Client, LocalCluster, SpecCluster, Worker, get_worker
from small_city import called, sentence
from small_world import FAST, SEED, contents, parts, protected, released, rows

from ghostpoi.publish.methods import METHODS
from ghostpoi.world.engine import GPU, NO_MEMORY, Dask, Failure, engine_of
from ghostpoi.world.job import Job

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, about sockets and event loops


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts(tmp_path_factory.mktemp("world") / "data", 7)


@pytest.fixture(scope="module")
def release(world: Path) -> Path:
    return protected(world, world.with_name("release"), "--engine", "local")


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_workers_changes_nothing(workers: int, world: Path, release: Path, tmp_path: Path) -> None:
    other = protected(world, tmp_path / "release", "--engine", "dask", "--workers", workers)
    assert contents(other) == contents(release)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("method", METHODS)
def test_a_cluster_and_other_parts_give_the_same_with_every_method(
    method: str, scheduler: str, tmp_path: Path
) -> None:  # fmt: skip
    few = rows().filter(pl.col("city") != rows()["city"][0])
    words = ("--method", method, *FAST)
    one = protected(parts(tmp_path / "1", 1, few), tmp_path / "one", "--engine", "local", *words)
    cluster = ("--engine", "dask", "--scheduler", scheduler)
    two = protected(parts(tmp_path / "7", 7, few), tmp_path / "two", *cluster, *words)
    assert released(one).equals(released(two))
    assert not released(one)["venue_id"].equals(few["venue_id"])


@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_is_killed_loses_nothing(world: Path, release: Path, tmp_path: Path, count: int) -> None:
    killed: list[int] = []
    stage = tmp_path / "release.private" / "unfinished" / "world" / "fragments"

    def kill() -> None:
        while not any(stage.glob("0*")):
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


def where(job: Job, number: int) -> str:
    return str(get_worker().name)


@pytest.mark.parametrize("resources", [{GPU: 1}, {}])
def test_methods_with_models_run_on_workers_with_a_gpu_if_there_are_any(
    resources: dict[str, int], tmp_path: Path
) -> None:
    job = cast("Job", SimpleNamespace(folder=tmp_path))
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


def test_a_task_that_kills_its_workers_is_named(tmp_path: Path) -> None:
    """As the system does when memory runs out."""
    job = cast("Job", SimpleNamespace(folder=tmp_path))
    with engine_of("dask", 1, "", None, lambda text: None) as engine:
        found, failed = engine.run(dies, job, range(3), lambda number: None)
    assert (found, failed) == ({0: 0, 2: 2}, [Failure(1, NO_MEMORY)])


def test_fewer_workers_go_on_if_memory_is_short(world: Path, release: Path, tmp_path: Path) -> None:
    words = ("--engine", "dask", "--workers", 3, "--memory", "1300MB")
    assert contents(protected(world, tmp_path / "release", *words)) == contents(release)


def test_verify_runs_on_dask(world: Path, release: Path) -> None:
    done = called("verify", release, "--against", world, "--engine", "dask", "--workers", 2)
    assert done.returncode == 0, done.stdout


def test_a_scheduler_that_does_not_answer(world: Path, tmp_path: Path) -> None:
    words = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    said = sentence(called("protect", world, "-o", tmp_path / "release", *SEED, *words))
    assert said.startswith("--scheduler tcp://127.0.0.1:9: no scheduler answers there")
