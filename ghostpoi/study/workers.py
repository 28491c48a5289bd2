"""Releases and restorations of studies in parallel processes; the cache on disk carries what they make.

Most adversaries use one core, and a release on CUDA waits for its own host more than for the device. While the caller
trains victims on one portion, the processes go on with the next ones.
"""

import gc
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from queue import Queue
from threading import Thread
from typing import NamedTuple, Protocol

import torch

from ghostpoi.evaluate.restoration import Contest
from ghostpoi.processes import process_pool

AHEAD = 3  # portions that are prepared at the same time

Task = tuple[str | Contest, int]  # a release or a contest, under a seed


class Maker(Protocol):
    """What makes releases and restorations, and leaves them in the cache."""

    def train(self, methods: Sequence[str]) -> None: ...

    def published(self, method: str, seed: int) -> object: ...

    def restoration(self, contest: Contest, seed: int) -> object: ...


class Portion(NamedTuple):
    """What one maker needs before some seeds of its cells can be measured."""

    maker: int  # its place among the makers
    seeds: list[int]
    releases: list[tuple[str, int]]
    contests: list[tuple[Contest, int]]

    @property
    def steps(self) -> list[list[Task | list[str]]]:
        """Three steps of independent tasks: train what all releases share, make releases, restore them."""
        methods = list(dict.fromkeys(method for method, _ in self.releases))
        return [[methods], list(self.releases), list(self.contests)]


def make(maker: Maker, task: Task | list[str]) -> None:
    """Do one task."""
    match task:
        case list(methods):
            maker.train(methods)
        case (Contest() as contest, seed):
            maker.restoration(contest, seed)
        case (str(method), seed):
            maker.published(method, seed)


def prepared(makers: Sequence[Maker], portions: Iterator[Portion], workers: int) -> Iterator[Portion]:
    """Yield each portion, in order, once it is in the cache. With one worker, the caller's process does the work."""
    if workers == 1:
        for portion in portions:
            for task in (task for step in portion.steps for task in step):
                make(makers[portion.maker], task)
            yield portion
        return
    with process_pool(workers, _start, (makers,)) as pool:
        ready: Queue[Portion | BaseException | None] = Queue()
        Thread(target=_prepare, args=(pool, workers, portions, ready), daemon=True).start()
        while (found := ready.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found


@dataclass
class _Begun:
    """A portion at work: steps to come, tasks of the present step that wait for a process, and those that run."""

    portion: Portion
    steps: deque[list[Task | list[str]]]
    waiting: deque[Task | list[str]] = field(default_factory=deque)
    running: set[Future[None]] = field(default_factory=set)

    def next_task(self) -> Task | list[str] | None:
        """Take a task that may run now. The next step begins when all tasks of the last one are done."""
        while not self.waiting and not self.running and self.steps:
            self.waiting.extend(self.steps.popleft())
        return self.waiting.popleft() if self.waiting else None

    @property
    def done(self) -> bool:
        return not (self.running or self.waiting or self.steps)


def _prepare(
    pool: ProcessPoolExecutor, workers: int, portions: Iterator[Portion],
    ready: "Queue[Portion | BaseException | None]",
) -> None:  # fmt: skip
    """Keep the pool busy. The first portion has precedence; others get the processes that it leaves idle."""
    begun: deque[_Begun] = deque()
    try:
        while True:
            while len(begun) < AHEAD and (portion := next(portions, None)):
                begun.append(_Begun(portion, deque(portion.steps)))
            if not begun:
                break
            for one in begun:
                while sum(len(other.running) for other in begun) < workers and (task := one.next_task()) is not None:
                    one.running.add(pool.submit(_work, one.portion.maker, task))
            if running := set[Future[None]]().union(*(one.running for one in begun)):
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                for one in begun:
                    one.running -= done
            while begun and begun[0].done:
                ready.put(begun.popleft().portion)
        ready.put(None)
    except BaseException as e:  # the caller raises it
        ready.put(e)


_makers: Sequence[Maker]  # in a worker process


def _start(makers: Sequence[Maker]) -> None:
    global _makers
    _makers = makers


def _work(maker: int, task: Task | list[str]) -> None:
    make(_makers[maker], task)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        # Other processes need the memory that torch would keep for this one.
        gc.collect()
        torch.cuda.empty_cache()
