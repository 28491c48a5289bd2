"""Releases, their measures and restorations of studies in parallel processes; the cache carries what they make.

Most adversaries use one core, as do victims that count, and a release on CUDA waits for its own host more than for the
device. While the caller trains neural victims on one portion, the processes go on with the next ones.
"""

import gc
import multiprocessing
import pickle
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from queue import Queue
from threading import Thread
from typing import Any, Literal, NamedTuple

import torch

from ghostpoi.audits.grid import Contest, release_seeds
from ghostpoi.processes import process_pool

AHEAD = 3  # portions that are prepared at the same time


class Task(NamedTuple):
    """One call of a maker: of what makes releases, measures and restorations, and leaves them in the cache."""

    name: Literal["train", "published", "restoration", "answer", "measures"]
    arguments: tuple[Any, ...]


class Portion(NamedTuple):
    """What one maker needs before some seeds of its cells can be measured."""

    maker: int  # its place among the makers
    seeds: list[int]
    releases: list[tuple[str, int]]
    contests: list[tuple[Contest, int]]
    trained: Sequence[str] = ()  # methods that need a trained model
    measured: Sequence[tuple[str, int]] = ()  # releases whose measures are asked for; they need the model, too
    answers: Sequence[tuple[Contest, int]] = ()  # contests that need no more than one core after the restoration
    controls: bool = False  # only cells that need no release are measured then

    @property
    def tasks(self) -> dict[Task, set[Task]]:
        """All tasks, first things first, each with those that it waits for."""
        train = Task("train", (tuple(self.trained),))
        trained = {train} if self.trained else set[Task]()
        found: dict[Task, set[Task]] = {task: set() for task in trained}
        release = {one: Task("published", one) for one in self.releases}
        for (method, _), task in release.items():
            found[task] = trained if method in self.trained else set()
        made: dict[tuple[Contest, int], Task] = {}  # with no victim: they share what the adversary restores
        for one in self.contests:
            made[replace(one[0], victim=""), one[1]] = task = Task("restoration", one)
            found[task] = self._held(release, *one)
        for one in self.answers:
            restored = made.get((replace(one[0], victim=""), one[1]))
            found[Task("answer", one)] = {restored} if restored else self._held(release, *one)
        for measured in self.measured:
            found[Task("measures", measured)] = {*trained, *([release[measured]] if measured in release else [])}
        return found

    @staticmethod
    def _held(release: dict[tuple[str, int], Task], contest: Contest, seed: int) -> set[Task]:
        """The tasks that make the releases which the adversary of a contest holds."""
        needs = (release.get((contest.release, number)) for number in release_seeds(contest, seed))
        return {task for task in needs if task}


def prepared(makers: Sequence[Any], portions: Iterator[Portion], workers: int) -> Iterator[Portion]:
    """Yield each portion, in order, once it is in the cache. With one worker, the caller's process does the work."""
    if workers == 1:
        for portion in portions:
            for task in portion.tasks:
                _make(makers[portion.maker], task)
            yield portion
        return
    # The makers hold all data. As arguments of a process they would not fit into its pipe, and the next process could
    # start only after this one has imported torch.
    inbox = multiprocessing.get_context("spawn").SimpleQueue()
    Thread(target=_hand_out, args=(inbox, pickle.dumps(makers), workers), daemon=True).start()
    with process_pool(workers, _start, (inbox,)) as pool:
        ready: Queue[Portion | BaseException | None] = Queue()
        Thread(target=_prepare, args=(pool, workers, portions, ready), daemon=True).start()
        while (found := ready.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found


Job = tuple[int, Task]  # with the place of its maker


@dataclass
class _Board:
    """The portions at work with the tasks that each still lacks, what runs, and what is done."""

    begun: deque[tuple[Portion, dict[Task, set[Task]]]] = field(default_factory=deque)
    running: dict[Future[None], Job] = field(default_factory=dict)
    done: set[Job] = field(default_factory=set)

    def next_job(self) -> Job | None:
        """Return a job that may run now. The first portion has precedence; others get the processes it leaves idle."""
        running = set(self.running.values())
        training = any(task.name == "train" for _, task in running)  # one at a time: studies often share the model
        for portion, left in self.begun:
            for task, needs in left.items():
                job = portion.maker, task
                free = job not in running and not (training and task.name == "train")
                if free and all((portion.maker, need) in self.done for need in needs):
                    return job
        return None

    def finish(self, futures: set[Future[None]]) -> None:
        """Note what is done. Portions may share a task."""
        for future in futures:
            future.result()
            self.done.add(self.running.pop(future))
        for portion, left in self.begun:
            for task in [task for task in left if (portion.maker, task) in self.done]:
                del left[task]


def _prepare(
    pool: ProcessPoolExecutor, workers: int, portions: Iterator[Portion],
    ready: "Queue[Portion | BaseException | None]",
) -> None:  # fmt: skip
    """Keep the pool busy."""
    board = _Board()
    try:
        while True:
            while len(board.begun) < AHEAD and (portion := next(portions, None)):
                board.begun.append((portion, portion.tasks))
            if not board.begun:
                break
            board.finish(set())
            if not board.begun[0][1]:
                ready.put(board.begun.popleft()[0])
                continue
            while len(board.running) < workers and (job := board.next_job()) is not None:
                board.running[pool.submit(_work, *job)] = job
            board.finish(wait(board.running, return_when=FIRST_COMPLETED).done)
        ready.put(None)
    except BaseException as e:  # the caller raises it
        ready.put(e)


_makers: Sequence[Any]  # in a worker process


def _hand_out(inbox: Any, makers: bytes, workers: int) -> None:
    for _ in range(workers):
        inbox.put(makers)


def _start(inbox: Any) -> None:
    global _makers
    _makers = pickle.loads(inbox.get())


def _make(maker: Any, task: Task) -> None:
    getattr(maker, task.name)(*task.arguments)


def _work(place: int, task: Task) -> None:
    _make(_makers[place], task)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        # Other processes need the memory that torch would keep for this one.
        gc.collect()
        torch.cuda.empty_cache()
