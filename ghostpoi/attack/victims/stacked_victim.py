"""Victims whose models can be trained as one stack: jobs in, results out."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch

from ghostpoi.attack.victims import stacked_training
from ghostpoi.attack.victims.base import Exam, Job, Result, Victim, final_ranks, readable
from ghostpoi.attack.victims.batches import timed_pairs
from ghostpoi.attack.victims.stacked_model import LOGITS_CUDA, StackedModel
from ghostpoi.models.windows import next_poi
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

STACKED_ON = ("cuda",)  # the devices where victims of one seed are trained as one stack; on a CPU that gains nothing
MEMORY_SHARE = 0.7  # of the free GPU memory, for one stack


class StackedVictim(Victim):
    """A neural victim. Its fields are model settings that differ from the protocol's."""

    model_type: ClassVar[type[StackedModel]] = StackedModel

    def settings(self, protocol: str) -> tuple[ModelSettings, Training]:
        model, training = super().settings(protocol)
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return replace(model, **own), training

    def start(self, jobs: Sequence[Job], exam: Exam, model: ModelSettings, training: Training) -> StackedModel:
        """Return the untrained victims of these jobs, which share a seed, on the exam's device."""
        raise NotImplementedError

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """Train jobs with the same seed and session lengths as one stack where that is faster, else one by one."""
        model, training = self.settings(protocol)
        exam.check(jobs)
        results: dict[int, Result] = {}
        with stacked_training.tf32(exam.device.type == "cuda"):
            for group in groups(jobs) if exam.device.type in STACKED_ON else [[i] for i in range(len(jobs))]:
                for chunk in self._chunks(group, jobs, exam, model, training):
                    some = [jobs[i] for i in chunk]
                    found = _train_stack(self.start(some, exam, model, training), some, exam, training)
                    results.update(zip(chunk, found, strict=True))
        return [results[i] for i in range(len(jobs))]

    def _chunks(
        self, group: list[int], jobs: Sequence[Job], exam: Exam, model: ModelSettings, training: Training
    ) -> Iterator[list[int]]:
        """Split a group into equal parts that fit into the GPU's memory."""
        most = len(group)
        if exam.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(exam.device)
            # Memory that torch holds without using it is free too.
            free += torch.cuda.memory_reserved(exam.device) - torch.cuda.memory_allocated(exam.device)
            length = next_poi(jobs[group[0]].train, model.max_positions).length
            each = self.model_type.memory_factor * stacked_training.bytes_per_victim(exam.rows, model, training, length)
            most = max(1, int((MEMORY_SHARE * free - 3 * 4 * LOGITS_CUDA) // each))
        for part in np.array_split(np.array(group), -(-len(group) // most)):
            yield part.tolist()


def groups(jobs: Sequence[Job]) -> list[list[int]]:
    """Group the jobs that can form one stack: one seed, and sessions of the same lengths."""
    found: dict[tuple[Seed, bytes], list[int]] = defaultdict(list)
    for i, job in enumerate(jobs):
        found[job.seed, job.train.length.astype(np.int64).tobytes()].append(i)
    return list(found.values())


def _train_stack(stack: StackedModel, jobs: Sequence[Job], exam: Exam, training: Training) -> list[Result]:
    began = time.perf_counter()
    rows, most = stack.rows, stack.settings.max_positions
    label = jobs[0].name if len(jobs) == 1 else f"stack of {len(jobs)}"
    pairs = [timed_pairs(job.train, most) for job in jobs]
    validation, reachable = readable(timed_pairs(exam.validation, most), rows)
    tick = partial(exam.progress, label)
    trained = stacked_training.train(stack, pairs, validation, reachable, training, jobs[0].seed, tick)
    test, known = readable(timed_pairs(exam.test, most), rows)
    ranks = stacked_training.Examination(test, known, trained.stack).ranks(trained.stack).cpu().numpy()
    seconds = (time.perf_counter() - began) / len(jobs)
    return [
        Result(job.name, final_ranks(ranks[m], known), trained.validation[m], trained.epochs[m], seconds)
        for m, job in enumerate(jobs)
    ]
