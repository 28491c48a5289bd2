"""Releases and restorations of a study in parallel processes; the cache on disk carries what they make.

Most adversaries use one core, and a release on CUDA waits for its own host more than for the device.
"""

import time
from collections.abc import Sequence
from concurrent.futures import as_completed
from typing import Protocol

from ghostpoi.evaluate.restoration import Contest
from ghostpoi.processes import process_pool
from ghostpoi.progress import Say

EVERY_S = 10.0  # between two lines about progress

Task = tuple[str | Contest, int]  # a release or a contest, under a seed


class Maker(Protocol):
    """What makes releases and restorations, and leaves them in the cache."""

    def published(self, method: str, seed: int) -> object: ...

    def restoration(self, contest: Contest, seed: int) -> object: ...


_maker: Maker  # in a worker process


def prepare(maker: Maker, releases: Sequence[Task], contests: Sequence[Task], workers: int, say: Say) -> None:
    """Make releases, then restorations. Every process gets a copy of the maker."""
    with process_pool(workers, _start, (maker,)) as pool:
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


def _start(maker: Maker) -> None:
    global _maker
    _maker = maker


def _work(task: Task) -> None:
    what, seed = task
    if isinstance(what, Contest):
        _maker.restoration(what, seed)
    else:
        _maker.published(what, seed)
