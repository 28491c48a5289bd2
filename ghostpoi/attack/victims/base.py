"""The base class of victims: what they are trained on, and the ranks of every next POI that they return.

Victims on a CPU in parallel processes: small models gain more from that than from threads.
"""

import multiprocessing
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch

from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.processes import process_pool
from ghostpoi.progress import Report, no_report
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

STAGE = ("victim",)  # of the seeds of weights, batches and dropout
WRONG = int(np.iinfo(np.int64).max)  # a rank that no cutoff reaches and whose reciprocal is about 0


@dataclass(frozen=True)
class Job:
    """One victim to train. Victims of one seed share initial weights, batches and dropout: only the sessions differ."""

    name: str
    train: Sessions  # released, restored or clean
    seed: Seed


@dataclass(frozen=True)
class Result:
    """What one victim achieved."""

    name: str
    ranks: Longs  # (N,) of every next POI of the test sessions, in order, 1 the best; WRONG: unknown, or no answer
    validation: float  # acc@1 on the validation sessions, of the epoch that was kept
    epochs: int  # that ran, including those after the kept one
    seconds: float  # wall-clock time; victims of one stack share it equally
    distance: dict[str, float] = field(default_factory=dict)  # shares of guesses near the truth, if they were asked for


@dataclass(frozen=True)
class Exam:
    """What the victims of all jobs share."""

    validation: Sessions
    test: Sessions
    rows: int  # P+1
    device: torch.device
    progress: Report = no_report  # victims just done add up to one per job
    vocabulary: Vocabulary | None = None  # coordinates of the POIs, for victims that need them and for distances
    seeds: int = 0  # that share the steps whose distances are measured; 0: none are

    def check(self, jobs: Sequence[Job]) -> None:
        """Refuse to train on POIs that are not in the vocabulary."""
        for job in jobs:
            if job.train.positions and not (job.train.poi.min() >= 1 and job.train.poi.max() < self.rows):
                raise ValueError(f"{job.name}: a POI to train on lies outside 1..P")


class Victim(ABC):
    """A next-POI model. A subclass is a frozen dataclass: its fields are settings of its own."""

    label: ClassVar[str]  # the name in tables, charts and pages
    summary: ClassVar[str]  # what it is, in one sentence
    version: ClassVar[int] = 1  # raised whenever the same jobs give other results
    effort: ClassVar[float] = 500.0  # about how many Markov victims could be trained meanwhile; for progress bars
    only_counts: ClassVar[bool] = False  # it trains no model: one core is enough
    knows_users: ClassVar[bool] = True  # False: the owners of the sessions make no difference to it

    def settings(self, protocol: str) -> tuple[ModelSettings, Training]:
        """Return the shape of the model and how it is trained under a protocol."""
        return victim_settings(protocol)

    @abstractmethod
    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """Train and test a victim for every job; return the results in the same order."""


def victim_settings(protocol: str) -> tuple[ModelSettings, Training]:
    """Return the Transformer's shape and training, chosen by clean test accuracy before any method was measured."""
    if protocol == "strong":
        return ModelSettings(tied=False, dropout=0.2), Training(epochs=60, patience=5)
    if protocol == "paper":
        # The paper's .138 on clean NYC is a victim that stops early: ours has .140 after 4 epochs, .17 if left alone.
        return ModelSettings(tied=True, dropout=0.2), Training(epochs=4, patience=3)
    raise InputError(f"there is no protocol {protocol!r}; protocols are strong, paper")


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
    shared = victim, replace(exam, progress=no_report), protocol
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
