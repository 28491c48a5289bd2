"""Dask as an engine: one command, and the messages where it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import urlopen

import distributed
import pytest
from small_city import called, sentence
from small_world import SEED, contents, parts, protected

from ghostpoi import __version__
from ghostpoi.errors import EngineFailed
from ghostpoi.regions import protect
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


def listening() -> set[int]:
    """The ports on which processes of this machine listen."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == "0A"}


def test_other_users_of_the_machine_find_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, tried = protect.engine_of, set[int]()

    @contextmanager
    def watched(*arguments: Any, **options: Any) -> Iterator[Any]:
        before = listening()
        with start(*arguments, **options) as started:
            for port in listening() - before:
                tried.add(port)
                for page in ("status", "info/main/workers.html", "json/counts.json", "metrics", "health"):
                    with pytest.raises(OSError, match=r"404|reset|closed"):
                        urlopen(f"http://127.0.0.1:{port}/{page}", timeout=600)
            yield started

    monkeypatch.setattr(protect, "engine_of", watched)
    done = called(
        "protect", parts(tmp_path / "data", 2), "-o", tmp_path / "r", *SEED, "--engine", "dask", "--workers", 1
    )
    assert done.returncode == 0, done.stderr
    assert tried


def test_a_worker_that_cannot_start_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**options: object) -> None:
        raise RuntimeError("Nanny failed to start.")

    world = parts(tmp_path / "data", 2)
    monkeypatch.setattr(distributed, "LocalCluster", fail)
    said = sentence(called("protect", world, "-o", tmp_path / "r", *SEED, "--engine", "dask", "--workers", 3))
    assert said.startswith("a worker of Dask ended while it started (RuntimeError); see whether there is enough memory")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_dask_makes_and_verifies_the_same_release(tmp_path: Path) -> None:
    world, dask = parts(tmp_path / "data", 3), ("--engine", "dask", "--workers", 1)
    words = ("--times", "part-of-day", "--pseudonyms", "session")
    local = protected(world, tmp_path / "local", "--engine", "local", *words)
    assert contents(protected(world, tmp_path / "release", *dask, *words)) == contents(local)
    done = called("verify", tmp_path / "release", "--against", world, *dask)
    assert done.returncode == 0, done.stdout


def test_a_scheduler_that_does_not_answer(tmp_path: Path) -> None:
    words = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    said = sentence(called("protect", parts(tmp_path / "data", 1), "-o", tmp_path / "release", *SEED, *words))
    assert said.startswith("--scheduler tcp://127.0.0.1:9: no scheduler answers there")
