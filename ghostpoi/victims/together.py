"""Victims of any architecture that can be stacked: jobs in, results out."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from ghostpoi.fit import Training, next_poi
from ghostpoi.model import ModelSettings
from ghostpoi.randomness import Seed
from ghostpoi.sessions import Sessions
from ghostpoi.victims import batched
from ghostpoi.victims.base import Job, Progress, Result, askable, counted
from ghostpoi.victims.stack import LOGITS_CUDA, Stack
from ghostpoi.victims.steps import steps

STAGE = ("victim",)
MEMORY_SHARE = 0.7  # of the card's free memory, for the victims that are trained together

Build = Callable[[Sequence[Job]], Stack]  # victims on their device, as they are before they learn; one seed for all


def train_stacks(
    jobs: Sequence[Job],
    validation: Sessions,
    test: Sessions,
    rows: int,
    model: ModelSettings,
    training: Training,
    device: torch.device,
    build: Build,
    progress: Progress | None = None,
    together: bool | None = None,
    tf32: bool = True,
    bulk: int = 1,
) -> list[Result]:
    """Train a victim for every job and rank every next POI of the test sessions, one result per job in their order.

    On CUDA, victims of the same seed and session lengths are trained together, with float32 products in TF32 unless
    told not to. On a CPU that wins nothing, so they are trained one by one; `together` decides otherwise.
    """
    check(jobs, rows)
    report = progress or (lambda label, victims: None)
    results: dict[int, Result] = {}
    apart = device.type != "cuda" if together is None else not together
    with batched.tf32(tf32 and device.type == "cuda"):
        for group in [[i] for i in range(len(jobs))] if apart else groups(jobs):
            for chunk in _chunks(group, jobs, rows, model, training, device, bulk):
                some = [jobs[i] for i in chunk]
                found = _train_stack(build(some), some, validation, test, training, report)
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


def _train_stack(
    stack: Stack, jobs: Sequence[Job], validation: Sessions, test: Sessions, training: Training, report: Progress
) -> list[Result]:
    began = time.perf_counter()
    rows, most = stack.rows, stack.settings.max_positions
    label = jobs[0].name if len(jobs) == 1 else f"{len(jobs)} victims together"
    pairs = [steps(job.train, most) for job in jobs]
    goal, reachable = askable(steps(validation, most), rows)
    trained = batched.train(stack, pairs, goal, reachable, training, jobs[0].seed, STAGE, lambda n: report(label, n))
    exam, known = askable(steps(test, most), rows)
    ranks = batched.Examination(exam, known, trained.stack).ranks(trained.stack).cpu().numpy()
    seconds = (time.perf_counter() - began) / len(jobs)
    return [
        Result(job.name, counted(ranks[m], known), trained.validation[m], trained.epochs[m], seconds)
        for m, job in enumerate(jobs)
    ]


def _chunks(
    group: list[int], jobs: Sequence[Job], rows: int, model: ModelSettings, training: Training, device: torch.device,
    bulk: int,
) -> Iterator[list[int]]:  # fmt: skip
    """As many victims of a group at once as the card has room for, in parts of equal size."""
    most = len(group)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch's own, in no use
        length = next_poi(jobs[group[0]].train, model.max_positions).length
        room = MEMORY_SHARE * free - 3 * 4 * LOGITS_CUDA
        most = max(1, int(room // (bulk * batched.bytes_per_victim(rows, model, training, length))))
    parts = -(-len(group) // most)
    for part in np.array_split(np.array(group), parts):
        yield part.tolist()
