"""Dask as an engine: one command, and the messages where it fails."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import distributed
import pytest
from small_city import called, sentence
from small_world import SEED, contents, parts, protected

from ghostpoi import __version__
from ghostpoi.errors import EngineFailed
from ghostpoi.regions.engine import Dask, _tried_on_worker
from ghostpoi.regions.job import Job

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, about sockets and event loops


def never(job: Job, number: int) -> int:
    raise AssertionError


def test_a_worker_with_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match=rf"a worker has ghostpoi {__version__}, not 9.9; install the same version"):
        _tried_on_worker(never, tmp_path, 0, False, "9.9")


class Ended:
    """A future of Dask that will never have a result."""

    def __init__(self, status: str, error: Exception | None = None) -> None:
        self.status, self.error = status, error

    def exception(self) -> Exception | None:
        return self.error


@pytest.mark.parametrize(
    ("future", "said"),
    [
        (Ended("cancelled"), "the connection to the scheduler of Dask was lost"),
        (
            Ended("error", ModuleNotFoundError("ghostpoi")),
            r"could not run a task \(ModuleNotFoundError\); install ghost",
        ),
        (Ended("error", EngineFailed("elsewhere")), "elsewhere"),
    ],
)
def test_a_cluster_that_fails_is_told_from_a_task(
    future: Ended, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = cast("Job", SimpleNamespace(folder=tmp_path))
    monkeypatch.setattr(distributed, "as_completed", iter)
    with pytest.raises(EngineFailed, match=said):
        Dask(SimpleNamespace(submit=lambda *a, **k: future)).run(never, job, [0], lambda number: None)


def test_dask_makes_and_verifies_the_same_release(tmp_path: Path) -> None:
    world, dask = parts(tmp_path / "data", 3), ("--engine", "dask", "--workers", 1)
    local = protected(world, tmp_path / "local", "--engine", "local")
    assert contents(protected(world, tmp_path / "release", *dask)) == contents(local)
    done = called("verify", tmp_path / "release", "--against", world, *dask)
    assert done.returncode == 0, done.stdout


def test_a_scheduler_that_does_not_answer(tmp_path: Path) -> None:
    words = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    said = sentence(called("protect", parts(tmp_path / "data", 1), "-o", tmp_path / "release", *SEED, *words))
    assert said.startswith("--scheduler tcp://127.0.0.1:9: no scheduler answers there")
