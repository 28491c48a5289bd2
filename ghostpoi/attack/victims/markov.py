"""A victim that only counts: a first-order Markov model, about as good as the others on clean data."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import sparse

from ghostpoi.attack.adversaries.distillation import after
from ghostpoi.attack.victims.base import Exam, Job, Result, Victim, final_ranks, readable
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.training_windows import Windows, next_poi
from ghostpoi.settings import ModelSettings, Training

SCORES = 1 << 23  # held at once


@dataclass(frozen=True)
class Markov(Victim):
    """Counts which POI follows which. Its weights give clean NYC validation acc@1 .211; followers alone give .206."""

    label = "Markov"
    summary = "A first-order Markov model: it counts which venue follows which."
    reads_users = False
    back_off: float = 0.1  # weight of a POI two steps later or one step earlier
    popular: float = 10.0  # weight of popularity, a share of all check-ins

    def settings(self, protocol: str) -> tuple[ModelSettings, Training]:
        model, training = super().settings(protocol)
        return model, replace(training, epochs=1)  # it reads the sessions once

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        self.settings(protocol)  # refuses an unknown protocol
        exam.check(jobs)
        validation, test = (readable(next_poi(s, max(2, s.positions)), exam.rows) for s in (exam.validation, exam.test))
        results = []
        for job in jobs:
            began = time.perf_counter()
            counts, base = self.counts(job.train, exam.rows)
            hits = final_ranks(ranks(counts, base, validation[0], exam.device), validation[1]) == 1
            found = final_ranks(ranks(counts, base, test[0], exam.device), test[1])
            seconds = time.perf_counter() - began
            results.append(Result(job.name, found, float(hits.mean()) if len(hits) else 0.0, 1, seconds))
            exam.progress(job.name, 1.0)
        return results

    def counts(self, train: Sessions, rows: int) -> tuple[sparse.csr_array, Floats]:
        """Return the score of each POI after each other, (P+1, P+1), and after any, (P+1,)."""
        once, twice = (after(train, lag, rows) for lag in (1, 2))
        visits = np.bincount(train.poi, minlength=rows)
        return once + self.back_off * (twice + once.T), self.popular * visits / max(1, visits.sum())


def ranks(counts: sparse.csr_array, base: Floats, pairs: Windows, device: torch.device) -> Longs:
    """Return the rank of every target, 1 the best, (N,); a tie counts against it, and row 0 is never an answer."""
    everywhere = torch.from_numpy(base[1:]).to(device)
    followers = counts[:, 1:].tocsr()
    step, found = max(1, SCORES // len(base)), [torch.zeros(0, dtype=torch.int64)]
    for a in range(0, len(pairs.token), step):
        scores = torch.from_numpy(followers[pairs.token[a : a + step]].toarray()).to(device) + everywhere
        own = scores.gather(1, torch.from_numpy(pairs.target[a : a + step, None] - 1).to(device))
        found.append((scores >= own).sum(1).cpu())
    return torch.cat(found).numpy()
