"""The paper's victim: a causal Transformer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.victims import stacked_training
from ghostpoi.attack.victims.base import STAGE, Exam, Job, Result, Victim, final_ranks, readable
from ghostpoi.attack.victims.stacked_model import initial_transformer
from ghostpoi.attack.victims.stacked_training import StackedVictim
from ghostpoi.models import fit
from ghostpoi.models.training_windows import next_poi
from ghostpoi.settings import ModelSettings, Training


@dataclass(frozen=True)
class Transformer(StackedVictim):
    """The paper's model, trained with early stopping on clean validation sessions."""

    label = "Transformer"
    summary = "The paper's causal Transformer."
    reads_users = False
    model: ModelSettings | None = None  # None: as the protocol says
    training: Training | None = None

    def settings(self, protocol: str) -> tuple[ModelSettings, Training]:
        model, training = Victim.settings(self, protocol)
        return self.model or model, self.training or training

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """Train one stack where that is faster; elsewhere `fit.train` trains the jobs one by one."""
        if exam.device.type in stacked_training.STACKED_ON:
            return super().train(jobs, exam, protocol)
        settings = self.settings(protocol)
        exam.check(jobs)
        return [_train_alone(job, exam, *settings) for job in jobs]


def _train_alone(job: Job, exam: Exam, settings: ModelSettings, training: Training) -> Result:
    began = time.perf_counter()
    model = initial_transformer(exam.rows, settings, job.seed).to(exam.device)
    # fit.train cannot mark a target as wrong; the rarest training POI, which is never ranked first, stands in for it.
    rarest = int(np.bincount(job.train.poi, minlength=exam.rows)[1:].argmin()) + 1
    validation, _ = readable(next_poi(exam.validation, settings.max_positions), exam.rows, rarest)
    test, known = readable(next_poi(exam.test, settings.max_positions), exam.rows)
    ran = 0

    def count(number: int, loss: float, now: fit.Accuracy | None) -> None:
        nonlocal ran
        ran = number + 1
        exam.progress(job.name, 1 / training.epochs)

    pairs = next_poi(job.train, settings.max_positions)
    best = fit.train(model, pairs, validation, training, job.seed, STAGE, count)
    exam.progress(job.name, 1 - ran / max(1, training.epochs))
    ranks = final_ranks(fit.ranks(model, test), known)
    return Result(job.name, ranks, best.acc1 if best else 0.0, ran, time.perf_counter() - began)
