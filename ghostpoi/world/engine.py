"""Engines: where tasks run. Each task is a function of a job and a number, and may run again.

The engine of one process is the reference. Dask runs the same tasks in many processes, here or on a cluster whose
machines share the folders: it starts the workers, hands out tasks, and runs those of a dead worker again.
"""

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from ghostpoi.errors import InputError
from ghostpoi.extras import need
from ghostpoi.files import make_private_folder, replacing
from ghostpoi.progress import Say
from ghostpoi.world.job import Job
from ghostpoi.world.refusals import unseen

Task = Callable[..., Any]  # of a job, a number and further arguments
GPU = "GPU"  # the resource that a Dask worker with a GPU announces


@dataclass(frozen=True)
class Failure:
    """A task that could not be done."""

    number: int
    why: str


class Engine(Protocol):
    """Runs tasks."""

    def run(
        self, task: Task, job: Job, numbers: Sequence[int], done: Callable[[int], None], *more: object,
        on_gpu: bool = False,
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        """Run a task for every number; call `done` after each. Return the results, and the tasks that failed."""

    def keep_workers(self, count: int) -> None:
        """Go on with this many workers."""


class OneProcess:
    """Runs tasks one after the other in this process."""

    def keep_workers(self, count: int) -> None:
        """Do nothing: there is one."""

    def run(
        self, task: Task, job: Job, numbers: Sequence[int], done: Callable[[int], None], *more: object,
        on_gpu: bool = False,
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        found, failed = {}, []
        for number in numbers:
            if isinstance(result := _tried(task, job, number, *more), Failure):
                failed.append(result)
            else:
                found[number] = result
                done(number)
        return found, failed


def _tried(task: Task, job: Job, number: int, *more: object) -> Any:
    """Run a task; if it cannot be done, return why. Dask would log an exception with clean values in it."""
    try:
        return task(job, number, *more)
    except InputError as e:
        return Failure(number, str(e))
    except MemoryError:
        return Failure(number, NO_MEMORY)
    except RuntimeError as e:  # torch has errors of its own
        if "out of memory" not in str(e) and "allocate memory" not in str(e):
            raise
        return Failure(number, NO_MEMORY)


def _tried_on_worker(task: Task, given: Path, number: int) -> Any:
    """Run a task on a worker, with what is stored for all tasks of a stage."""
    try:
        job, more = _stored(given)
    except FileNotFoundError:
        return Failure(number, str(unseen(given.parent)))
    return _tried(task, job, number, *more)


@lru_cache(maxsize=1)
def _stored(given: Path) -> Any:
    return pickle.loads(given.read_bytes())


NO_MEMORY = (
    "it does not fit into the memory; free some or use fewer --workers, or start again with --force and smaller "
    "regions (--set regions.most_rows=200000)"
)


@dataclass(frozen=True)
class Dask:
    """Runs tasks on a Dask cluster."""

    client: Any

    def keep_workers(self, count: int) -> None:
        self.client.cluster.scale(count)

    def run(
        self, task: Task, job: Job, numbers: Sequence[int], done: Callable[[int], None], *more: object,
        on_gpu: bool = False,
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        # In a file, because data that only workers hold are lost with them.
        make_private_folder(job.folder)
        given = job.folder / f".given.{uuid4().hex}"
        with replacing(given, mode=0o600) as out:
            out.write(pickle.dumps((job, more)))
        try:
            return self._run(task, given, numbers, done, on_gpu)
        finally:
            given.unlink(missing_ok=True)

    def _run(
        self, task: Task, given: Path, numbers: Sequence[int], done: Callable[[int], None], on_gpu: bool
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        from distributed import KilledWorker, as_completed

        resources = {GPU: 1} if on_gpu and self._has_gpu() else None
        futures = {
            self.client.submit(_tried_on_worker, task, given, number, pure=False, resources=resources): number
            for number in numbers
        }
        found, failed = {}, []
        for future in as_completed(futures):
            number = futures[future]
            error = future.exception() if future.status == "error" else None
            if isinstance(error, KilledWorker):
                failed.append(Failure(number, NO_MEMORY))
            elif error is not None:
                raise error
            elif isinstance(result := future.result(), Failure):
                failed.append(result)
            else:
                found[number] = result
                done(number)
        return found, sorted(failed, key=lambda one: one.number)

    def _has_gpu(self) -> bool:
        workers = self.client.scheduler_info()["workers"].values()
        return any(worker.get("resources", {}).get(GPU) for worker in workers)


@contextmanager
def engine_of(name: str, workers: int, scheduler: str, memory: int | None, say: Say) -> Iterator[Engine]:
    """Start an engine: `local` or `dask`. Without the address of a scheduler, Dask starts workers on this machine."""
    if name not in ("local", "dask"):
        raise InputError(f"--engine {name}: there is no such engine; use local or dask")
    if name == "local":
        if scheduler or workers > 1:
            raise InputError("--workers and --scheduler are for Dask; add --engine dask")
        yield OneProcess()
        return
    need("dask")
    import logging

    import dask
    from distributed import Client, LocalCluster, Security

    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        logging.getLogger("distributed").setLevel(logging.ERROR)
        if scheduler and (memory is not None or workers):
            raise InputError("--memory and --workers are for workers on this machine; leave them out with --scheduler")
        if scheduler:
            try:
                client = stack.enter_context(Client(scheduler, timeout="5s"))
            except (OSError, ValueError) as e:
                raise InputError(
                    f"--scheduler {scheduler}: no scheduler answers there ({e}); check the address"
                ) from None
        else:
            secret = Security.temporary()  # other users of this machine must not reach the tasks: they know the seed
            cluster = stack.enter_context(
                LocalCluster(
                    security=secret,
                    n_workers=workers or 1,
                    threads_per_worker=1,
                    memory_limit=0,  # tasks are cut to size instead: see `memory`
                    dashboard_address="127.0.0.1:0",  # tasks know clean data, so nobody else may look
                    silence_logs=logging.ERROR,
                )
            )
            client = stack.enter_context(Client(cluster, security=secret))
        if sys.stderr.isatty() and find_spec("bokeh"):
            say(f"Dask's dashboard: {client.dashboard_link}")
        yield Dask(client)


SETTINGS = {
    "distributed.worker.daemon": False,  # tasks may start processes
    "distributed.worker.memory.target": False,  # results are files: there is nothing to spill
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.scheduler.allowed-failures": 3,  # workers that may die of one task
    "distributed.nanny.pre-spawn-environ": {  # return less memory at once, which took a third of the time
        "MALLOC_TRIM_THRESHOLD_": 1 << 28,
        "MALLOC_MMAP_THRESHOLD_": 1 << 28,
        "OMP_NUM_THREADS": 1,
        "MKL_NUM_THREADS": 1,
        "OPENBLAS_NUM_THREADS": 1,
    },
}
