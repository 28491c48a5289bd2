"""Engines: where tasks run. Each task is a function of a job and a number, and may run again.

The engine of one process is the reference. Dask runs the same tasks in many processes, here or on a cluster whose
machines share the folders: it starts the workers, hands out tasks, and runs those of a dead worker again.
"""

import atexit
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from ghostpoi import __version__, stores
from ghostpoi.errors import ConnectionLost, EngineFailed, InputError
from ghostpoi.files import make_private_folder, replacing
from ghostpoi.options import option
from ghostpoi.plugins import need
from ghostpoi.regions.job import Job, unseen
from ghostpoi.settings import RegionSettings
from ghostpoi.stores import here

Task = Callable[..., Any]  # of a job, a number and further arguments
GPU = "GPU"  # the resource that a Dask worker with a GPU announces


@dataclass(frozen=True)
class Failure:
    """A task that could not be done."""

    number: int
    why: str
    refused: bool = False  # its input cannot be used; else it may be done in another run
    killed: bool = False  # workers died while they held it


class Engine:
    """Runs tasks one after the other in this process."""

    has_workers = False  # other processes, which run the tasks

    def keep_workers(self, count: int) -> None:
        """Go on with this many workers."""

    def run(
        self, task: Task, job: Job, numbers: Sequence[int], done: Callable[[int], None], *more: object,
        on_gpu: bool = False, goes_on: bool = False,
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        """Run a task for every number; call `done` after each. Return the results, and the tasks that failed.

        `goes_on`: whatever happens in a task, the others are run. Its traceback is in a file in the folder of the job.
        """
        found, failed = {}, []
        for number in numbers:
            if isinstance(result := _tried(task, job, number, *more, goes_on=goes_on), Failure):
                failed.append(result)
            else:
                found[number] = result
                done(number)
        return found, failed


def _tried(task: Task, job: Job, number: int, *more: object, goes_on: bool) -> Any:
    """Run a task; if it cannot be done, return why. Dask would log an exception with clean values in it."""
    try:
        return task(job, number, *more)
    except (EngineFailed, ConnectionLost):
        raise
    except InputError as e:
        return Failure(number, e.text, refused=True)
    except MemoryError:
        return Failure(number, NO_MEMORY)
    except Exception as e:
        if isinstance(e, RuntimeError) and any(text in str(e) for text in NO_MEMORY_IN_TORCH):
            return Failure(number, NO_MEMORY)
        if not goes_on:
            raise
        return Failure(number, _logged(job, number, e))


def _logged(job: Job, number: int, error: Exception) -> str:
    """Note an error in the folder of the job, which is private: it may quote clean values. Return what to say."""
    why = f"it ended with an error ({type(error).__name__})"
    if isinstance(error, OSError) and error.strerror:
        why = f"its files could not be read or written ({error.strerror.lower()})"
    log = job.folder / LOG
    text = "".join(traceback.format_exception(error))
    with (
        suppress(OSError),
        open(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as out,
    ):
        out.write(f"task {number + 1}\n{text}\n")
    return f"{why}; see {log}"


def _tried_on_worker(task: Task, stage: Path, number: int, goes_on: bool, version: str) -> None:
    """Run a task on a worker, with what is stored for all tasks of a stage, and store its result."""
    if version != __version__:
        raise EngineFailed(f"a worker has ghostpoi {__version__}, not {version}; install the same version everywhere")
    own = here(stage)
    try:
        stores.fetch(own / GIVEN)
        job, more = _stored(own / GIVEN)
    except OSError:
        raise unseen(stage.parent) from None
    try:
        result = _tried(task, job, number, *more, goes_on=goes_on)
    except (EngineFailed, ConnectionLost):
        raise
    except Exception as e:  # Dask would log it, and it may quote clean values
        text = "".join(traceback.format_exception(e))
        try:
            result = pickle.loads(pickle.dumps(e))
        except Exception:
            result = RuntimeError(f"a task ended with {type(e).__name__}")
        result.add_note(text)
    with replacing(own / str(number), mode=0o600) as out:
        out.write(pickle.dumps(result))
    stores.send(own / str(number))


@lru_cache(maxsize=1)
def _stored(given: Path) -> Any:
    job, more = pickle.loads(given.read_bytes())
    return job.on_worker(), [one.on_worker() if isinstance(one, Job) else one for one in more]


NO_MEMORY = (
    f"it does not fit into the memory; free some, use fewer {option('workers')}, or make regions smaller "
    f"({option('set', 'regions.most_rows=200000')}), which divides the dataset again"
)


NO_MEMORY_IN_TORCH = ("out of memory", "allocate memory")  # in the texts of its errors
LOG = "errors.log"  # in the folder of a job
GIVEN = "given"  # in the folder of a stage: what all of its tasks need; their results, by number, lie next to it


@dataclass(frozen=True)
class Dask(Engine):
    """Runs tasks on a Dask cluster."""

    client: Any
    has_workers = True

    def keep_workers(self, count: int) -> None:
        self.client.cluster.scale(count)

    def run(
        self, task: Task, job: Job, numbers: Sequence[int], done: Callable[[int], None], *more: object,
        on_gpu: bool = False, goes_on: bool = False,
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        # What tasks need and return is in files, because data that only workers hold are lost with them.
        make_private_folder(job.folder)
        stage = Path(mkdtemp(prefix=".stage.", dir=job.folder))
        try:
            with replacing(stage / GIVEN, mode=0o600) as out:
                out.write(pickle.dumps((job, more)))
            stores.send(stage / GIVEN)
            return self._run(task, stage, numbers, done, on_gpu, goes_on)
        finally:
            for _ in range(REMOVALS):  # tasks that go on after an error may still write
                rmtree(stage, ignore_errors=True)
                stores.remove_all(stage)
                if not stage.exists():
                    break

    def _run(
        self, task: Task, stage: Path, numbers: Sequence[int], done: Callable[[int], None], on_gpu: bool, goes_on: bool
    ) -> tuple[dict[int, Any], list[Failure]]:  # fmt: skip
        from distributed import KilledWorker, as_completed

        # By default, some versions return five workers.
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values() if on_gpu else ()
        has_gpu = any(worker.get("resources", {}).get(GPU) for worker in workers)
        every = {"pure": False, "resources": {GPU: 1} if has_gpu else None}

        def results(together: Sequence[int]) -> Iterator[tuple[int, Any]]:
            asked = ((number, (_tried_on_worker, task, stage, number, goes_on, __version__)) for number in together)
            futures = {self.client.submit(*call, **every): number for number, call in asked}
            for future in as_completed(list(futures)):
                number = futures.pop(future)
                error = future.exception() if future.status == "error" else None
                if isinstance(error, KilledWorker):
                    result = Failure(number, NO_MEMORY, killed=True)
                elif isinstance(error, EngineFailed | ConnectionLost | OSError):
                    raise error
                elif error is not None:
                    raise EngineFailed(
                        f"a worker could not run a task ({type(error).__name__}); install ghostpoi {__version__} and "
                        "the same extras on all machines of the cluster"
                    )
                elif future.status != "finished":
                    raise EngineFailed("the connection to the scheduler of Dask was lost; see whether it runs")
                elif not stores.fetch(stage / str(number)):
                    raise unseen(stage.parent)
                elif isinstance(result := pickle.loads((stage / str(number)).read_bytes()), Exception):
                    raise result
                if not isinstance(result, Failure):
                    done(number)
                yield number, result

        found = dict(results(numbers))
        # Dask blames every task that a dead worker held. Alone, only a task that kills workers fails again.
        for number, failure in sorted(found.items()):
            if isinstance(failure, Failure) and failure.killed:
                found |= results([number])
        failed = [result for _, result in sorted(found.items()) if isinstance(result, Failure)]
        return {number: result for number, result in found.items() if not isinstance(result, Failure)}, failed


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How a dataset is divided, and where its tasks run."""

    settings: RegionSettings = field(default_factory=RegionSettings)
    region_column: str = ""
    engine: str = "local"
    device: str = "auto"  # where models run: each worker chooses for itself
    workers: int = 0
    scheduler: str = ""
    memory: int | None = None


@contextmanager
def engine_of(scale: Scale) -> Iterator[Engine]:
    """Start an engine: `local` or `dask`. Without the address of a scheduler, Dask starts workers on this machine."""
    workers, scheduler = scale.workers, scale.scheduler
    if scale.engine not in ("local", "dask"):
        raise InputError(f"{option('engine', scale.engine)}: unknown engine; use local or dask")
    if scale.engine == "local":
        if scheduler or workers > 1:
            raise InputError(
                f"{option('workers')} and {option('scheduler')} are for Dask; add {option('engine', 'dask')}"
            )
        yield Engine()
        return
    need("dask")
    import logging

    import dask
    from distributed import Client, LocalCluster, Security
    from distributed.deploy.spec import close_clusters

    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        for name, level in (("distributed", logging.ERROR), ("asyncio", logging.CRITICAL)):
            logging.getLogger(name).setLevel(level)  # asyncio would print the errors of workers that were killed
        if scheduler and (scale.memory is not None or workers):
            raise InputError(
                f"{option('memory')} and {option('workers')} are for workers on this machine; leave them out with "
                f"{option('scheduler')}"
            )
        if scheduler:
            try:
                client = stack.enter_context(Client(scheduler, timeout="5s"))
            except (OSError, ValueError, TypeError, RuntimeError, ImportError) as e:  # such as for want of TLS keys
                raise InputError(
                    f"{option('scheduler', scheduler)}: no scheduler answers there ({e}); check the address"
                ) from None
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise InputError(
                    f"{option('scheduler', scheduler)}: it has no workers; start some with: dask worker {scheduler}"
                ) from None
        else:
            # This block closes the cluster. At exit, Dask would fail on one that was interrupted while it started.
            atexit.unregister(close_clusters)
            secret = Security.temporary()  # other users of this machine must not reach the tasks: they know the seed
            try:
                cluster = stack.enter_context(
                    LocalCluster(
                        loop=stack.enter_context(_deaf_loop()),
                        security=secret,
                        n_workers=workers or 1,
                        threads_per_worker=1,
                        memory_limit=0,  # tasks are cut to size instead: see `memory`
                        # All users of this machine could read a dashboard: there is none, and no other page either.
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False},
                        silence_logs=logging.CRITICAL,
                    )
                )
                client = stack.enter_context(Client(cluster, security=secret))
            except (OSError, RuntimeError, ValueError) as e:  # for want of memory or processes, or killed
                raise EngineFailed(
                    f"a worker of Dask ended while it started ({type(e).__name__}); see whether there is enough memory "
                    f"for {workers or 1} of them, and run the command again"
                ) from None
        yield Dask(client)


@contextmanager
def _deaf_loop() -> Iterator[Any]:
    """Start the loop of Dask in a thread that gets no Ctrl-C, nor do the workers that it starts: this process decides.

    A worker that is interrupted while it imports its modules would print a traceback.
    """
    from multiprocessing import resource_tracker

    from distributed.utils import LoopRunner

    resource_tracker.ensure_running()  # its start would let Ctrl-C through again
    runner = LoopRunner(asynchronous=False)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        runner.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield runner.loop
    finally:
        runner.stop()


REMOVALS = 5  # attempts to remove the folder of a stage
PATIENCE = 60  # seconds in which the first worker of a cluster must be there
SETTINGS = {
    "distributed.scheduler.http.routes": [],  # pages for other users of the machine; workers have the same
    "distributed.worker.http.routes": [],
    "distributed.worker.daemon": False,  # tasks may start processes
    "distributed.worker.memory.target": False,  # results are files: there is nothing to spill
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.deploy.lost-worker-timeout": "1000 days",  # a cluster gives up workers that are being restarted then
    "distributed.scheduler.allowed-failures": 3,  # workers that may die of one task
    "distributed.nanny.pre-spawn-environ": {  # return less memory at once, which took a third of the time
        "MALLOC_TRIM_THRESHOLD_": 1 << 28,
        "MALLOC_MMAP_THRESHOLD_": 1 << 28,
        "OMP_NUM_THREADS": 1,
        "MKL_NUM_THREADS": 1,
        "OPENBLAS_NUM_THREADS": 1,
    },
}
