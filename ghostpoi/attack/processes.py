"""Victims on a CPU side by side, one process each: small models gain more from that than from threads."""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any

import torch

from ghostpoi.attack.victims import Job, Progress, Result, train_victims
from ghostpoi.data.sessions import Sessions
from ghostpoi.settings import ModelSettings, Training

WORTHWHILE = 2_000_000  # positions to be read in all epochs: below, starting processes takes longer than it saves
POLL_S = 0.2

Common = tuple[Sessions, Sessions, int, ModelSettings, Training, torch.device]  # what all jobs share

_queue: Any = None  # of a worker: where it tells of its progress


def train_each(
    jobs: Sequence[Job], validation: Sessions, test: Sessions, rows: int, model: ModelSettings, training: Training,
    device: torch.device, progress: Progress,
) -> Iterator[tuple[int, Result]]:  # fmt: skip
    """The number of each job with its result, as soon as it is there; on CUDA all victims are trained together."""
    cores = torch.get_num_threads()
    common = (validation, test, rows, model, training, device)
    if device.type != "cpu":
        yield from enumerate(train_victims(jobs, *common, progress))
    elif min(cores, len(jobs)) < 2 or training.epochs * sum(j.train.positions for j in jobs) < WORTHWHILE:
        for number, job in enumerate(jobs):
            yield number, train_victims([job], *common, progress)[0]
    else:
        yield from _side_by_side(jobs, common, min(cores, len(jobs)), cores, progress)


def _side_by_side(
    jobs: Sequence[Job], common: Common, workers: int, cores: int, progress: Progress
) -> Iterator[tuple[int, Result]]:
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads in an unknown state
    queue = context.SimpleQueue()
    pool = ProcessPoolExecutor(workers, context, _start, (queue, cores // workers))
    try:
        number: dict[Future[Result], int] = {pool.submit(_train, job, common): i for i, job in enumerate(jobs)}
        left = set(number)
        while left:
            done, left = wait(left, POLL_S, FIRST_COMPLETED)
            while not queue.empty():
                progress(*queue.get())
            for future in done:
                yield number[future], future.result()
    finally:  # also when interrupted: nobody waits for a victim that is not wanted any more
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()


def _start(queue: Any, threads: int) -> None:
    global _queue
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    torch.set_num_threads(threads)
    _queue = queue


def _train(job: Job, common: Common) -> Result:
    return train_victims([job], *common, progress=lambda label, victims: _queue.put((label, victims)))[0]
