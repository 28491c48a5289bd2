"""Victims on a CPU in parallel processes: small models gain more from that than from threads."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from typing import Any

import torch

from ghostpoi.attack.victims.base import Exam, Job, Result, Victim, silent
from ghostpoi.processes import process_pool

WORTHWHILE = 2_000_000  # positions read in all epochs; below that, starting processes costs more than it saves
POLL_S = 0.2

_queue: Any = None  # in a worker process: where it reports its progress


def train_each(victim: Victim, jobs: Sequence[Job], exam: Exam, protocol: str) -> Iterator[tuple[int, Result]]:
    """Yield the number of each job with its result as soon as it is there; on CUDA, train all jobs in one call."""
    cores = torch.get_num_threads()
    workers = min(cores, len(jobs))
    positions = victim.settings(protocol)[1].epochs * sum(job.train.positions for job in jobs)
    if exam.device.type != "cpu":
        yield from enumerate(victim.train(jobs, exam, protocol))
        return
    if workers < 2 or positions < WORTHWHILE:
        yield from ((number, victim.train([job], exam, protocol)[0]) for number, job in enumerate(jobs))
        return
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    shared = victim, replace(exam, progress=silent), protocol
    with process_pool(workers, _start, (queue,), cores // workers) as pool:
        number: dict[Future[Result], int] = {pool.submit(_train, job, *shared): i for i, job in enumerate(jobs)}
        left = set(number)
        while left:
            done, left = wait(left, POLL_S, FIRST_COMPLETED)
            while not queue.empty():
                exam.progress(*queue.get())
            for future in done:
                yield number[future], future.result()


def _start(queue: Any) -> None:
    global _queue
    _queue = queue


def _train(job: Job, victim: Victim, exam: Exam, protocol: str) -> Result:
    exam = replace(exam, progress=lambda label, victims: _queue.put((label, victims)))
    return victim.train([job], exam, protocol)[0]
