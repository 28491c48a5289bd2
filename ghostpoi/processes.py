"""A pool of worker processes with one thread each by default.

Workers ignore Ctrl-C; the parent ends them when it leaves the block. They also end if the parent is killed.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from threading import Thread
from typing import Any

THREADS = "OMP_NUM_THREADS"  # read by numpy and torch when a process starts


@contextmanager
def process_pool(
    workers: int, start: Callable[..., None] | None = None, arguments: tuple[Any, ...] = (), threads: int = 1
) -> Iterator[ProcessPoolExecutor]:
    """Open a pool. Every process first calls `start`. Leaving the block ends all processes, finished or not."""
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads in an unknown state
    before = os.environ.get(THREADS)
    os.environ[THREADS] = str(threads)
    pool = ProcessPoolExecutor(workers, context, _begin, (start, arguments))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        del os.environ[THREADS]
        if before is not None:
            os.environ[THREADS] = before


def _begin(start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    Thread(target=_end_with_parent, daemon=True).start()
    if start:
        start(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
