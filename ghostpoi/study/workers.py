"""Releases and restorations of a study in parallel processes; the cache on disk carries what they make.

Most adversaries use one core, and a release on CUDA waits for its own host more than for the device.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Protocol

import torch

from ghostpoi.evaluate.restoration import Contest
from ghostpoi.progress import Say

EVERY_S = 10.0  # between two lines about progress
THREADS = "OMP_NUM_THREADS"  # read by a process when it starts

Task = tuple[str | Contest, int]  # a release or a contest, under a seed


class Maker(Protocol):
    """What makes releases and restorations, and leaves them in the cache."""

    def published(self, method: str, seed: int) -> object: ...

    def restoration(self, contest: Contest, seed: int) -> object: ...


_maker: Maker  # in a worker process


def prepare(maker: Maker, releases: Sequence[Task], contests: Sequence[Task], workers: int, say: Say) -> None:
    """Make releases, then restorations. Every process gets a copy of the maker."""
    with _pool(maker, workers) as pool:
        for what, tasks in (("releases", releases), ("restorations", contests)):
            begin = told = time.perf_counter()
            futures = [pool.submit(_work, task) for task in tasks]
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                now = time.perf_counter()
                if now - told > EVERY_S or done == len(tasks):
                    left = (now - begin) / done * (len(tasks) - done)
                    told = now
                    say(f"{what}: {done} of {len(tasks)}, about {left:.0f} s left")


@contextmanager
def _pool(maker: Maker, workers: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads in an unknown state
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    pool = ProcessPoolExecutor(workers, context, _start, (maker,))
    try:
        yield pool
    finally:  # also when interrupted: nobody waits for the remaining tasks
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        _restore(before)


def _restore(threads: str | None) -> None:
    os.environ.pop(THREADS)
    if threads is not None:
        os.environ[THREADS] = threads


def _start(maker: Maker) -> None:
    global _maker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    torch.set_num_threads(1)
    _maker = maker


def _work(task: Task) -> None:
    what, seed = task
    if isinstance(what, Contest):
        _maker.restoration(what, seed)
    else:
        _maker.published(what, seed)
