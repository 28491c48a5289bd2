"""Victims of any architecture that can be stacked: jobs in, results out."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch

from ghostpoi.attack.victims import batched
from ghostpoi.attack.victims.base import Exam, Job, Result, askable, counted
from ghostpoi.attack.victims.stack import LOGITS_CUDA, Stack
from ghostpoi.attack.victims.steps import steps
from ghostpoi.models.windows import next_poi
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

STAGE = ("victim",)
MEMORY_SHARE = 0.7  # of the card's free memory, for the victims that are trained together

# Victims of one seed and this shape, on their device, as they are before they learn.
Build = Callable[[Sequence[Job], ModelSettings], Stack]


def train_stacks(
    jobs: Sequence[Job],
    exam: Exam,
    model: ModelSettings,
    training: Training,
    build: Build,
    together: bool | None = None,
    tf32: bool = True,
    bulk: int = 1,
) -> list[Result]:
    """Train a victim for every job and rank every next POI of the test sessions, one result per job in their order.

    On CUDA, victims of the same seed and session lengths are trained together, with float32 products in TF32 unless
    told not to. On a CPU that wins nothing, so they are trained one by one; `together` decides otherwise.
    """
    check(jobs, exam.rows)
    results: dict[int, Result] = {}
    cuda = exam.device.type == "cuda"
    apart = not (cuda if together is None else together)
    with batched.tf32(tf32 and cuda):
        for group in [[i] for i in range(len(jobs))] if apart else groups(jobs):
            for chunk in _chunks(group, jobs, exam, model, training, bulk):
                some = [jobs[i] for i in chunk]
                found = _train_stack(build(some, model), some, exam, training)
                results.update(zip(chunk, found, strict=True))
    return [results[i] for i in range(len(jobs))]


def check(jobs: Sequence[Job], rows: int) -> None:
    """Refuse to learn from POIs that a vocabulary of `rows` rows does not hold."""
    for job in jobs:
        if job.train.positions and not (job.train.poi.min() >= 1 and job.train.poi.max() < rows):
            raise ValueError(f"{job.name}: a POI to train on lies outside 1..P")


def groups(jobs: Sequence[Job]) -> list[list[int]]:
    """Which jobs can be trained together: those of one seed with sessions of the same lengths."""
    found: dict[tuple[Seed, bytes], list[int]] = defaultdict(list)
    for i, job in enumerate(jobs):
        found[job.seed, job.train.length.astype(np.int64).tobytes()].append(i)
    return list(found.values())


def _train_stack(stack: Stack, jobs: Sequence[Job], exam: Exam, training: Training) -> list[Result]:
    began = time.perf_counter()
    rows, most = stack.rows, stack.settings.max_positions
    label = jobs[0].name if len(jobs) == 1 else f"{len(jobs)} victims together"
    pairs = [steps(job.train, most) for job in jobs]
    goal, reachable = askable(steps(exam.validation, most), rows)
    tick = partial(exam.progress, label)
    trained = batched.train(stack, pairs, goal, reachable, training, jobs[0].seed, STAGE, tick)
    asked, known = askable(steps(exam.test, most), rows)
    ranks = batched.Examination(asked, known, trained.stack).ranks(trained.stack).cpu().numpy()
    seconds = (time.perf_counter() - began) / len(jobs)
    return [
        Result(job.name, counted(ranks[m], known), trained.validation[m], trained.epochs[m], seconds)
        for m, job in enumerate(jobs)
    ]


def _chunks(
    group: list[int], jobs: Sequence[Job], exam: Exam, model: ModelSettings, training: Training, bulk: int
) -> Iterator[list[int]]:
    """As many victims of a group at once as the card has room for, in parts of equal size."""
    most = len(group)
    if exam.device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(exam.device)
        # And torch's own, in no use.
        free += torch.cuda.memory_reserved(exam.device) - torch.cuda.memory_allocated(exam.device)
        length = next_poi(jobs[group[0]].train, model.max_positions).length
        room = MEMORY_SHARE * free - 3 * 4 * LOGITS_CUDA
        most = max(1, int(room // (bulk * batched.bytes_per_victim(exam.rows, model, training, length))))
    parts = -(-len(group) // most)
    for part in np.array_split(np.array(group), parts):
        yield part.tolist()
