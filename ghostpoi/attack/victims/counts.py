"""Victims that only count: a first-order Markov model, and a mixture of counts that knows users."""

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ghostpoi.attack.adversaries.distillation import followers
from ghostpoi.attack.counting import CountingModel, Scorer, SoftSessions, Sparse
from ghostpoi.attack.victims.base import Exam, Job, Result, Victim
from ghostpoi.attack.victims.judge import judged
from ghostpoi.data.checkins import Floats
from ghostpoi.data.sessions import Sessions
from ghostpoi.settings import ModelSettings, Training


class CountingVictim(Victim):
    """Reads the sessions once. A subclass implements `fit`."""

    only_counts = True

    @abstractmethod
    def fit(self, train: Sessions, exam: Exam) -> Scorer:
        """Return what the training sessions predict."""

    def settings(self, protocol: str) -> tuple[ModelSettings, Training]:
        model, training = super().settings(protocol)
        return model, replace(training, epochs=1)

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        self.settings(protocol)  # refuses an unknown protocol
        exam.check(jobs)
        results = []
        for job in jobs:
            began = time.perf_counter()
            results.append(judged(job.name, job.seed, self.fit(job.train, exam), exam, began))
            exam.progress(job.name, 1.0)
        return results


@dataclass(frozen=True)
class Counting(CountingVictim):
    """Mixes counts of steps, of users and of hours. On clean NYC it reaches acc@1 .237, in a second."""

    label = "Counting"
    summary = "A mixture of counts that knows users: where this user, and everybody, went next."
    effort = 1.0

    def fit(self, train: Sessions, exam: Exam) -> CountingModel:
        return CountingModel.fit(SoftSessions.hard(train), exam.validation, exam.rows)


@dataclass(frozen=True)
class Markov(CountingVictim):
    """Counts which POI follows which. Its weights give clean NYC validation acc@1 .211; followers alone give .206."""

    label = "Markov"
    summary = "A first-order Markov model: it counts which venue follows which."
    effort = 1.0
    knows_users = False
    back_off: float = 0.1  # weight of a POI two steps later or one step earlier
    popular: float = 10.0  # weight of popularity, a share of all check-ins

    def fit(self, train: Sessions, exam: Exam) -> "Chain":
        return Chain(*self.counts(train, exam.rows))

    def counts(self, train: Sessions, rows: int) -> tuple[sparse.csr_array, Floats]:
        """Return the score of each POI after each other, (P+1, P+1), and after any, (P+1,)."""
        visits = np.bincount(train.poi, minlength=rows)
        return followers(train, rows, self.back_off), self.popular * visits / max(1, visits.sum())


@dataclass(frozen=True)
class Chain:
    """Scores the next POI by the present one."""

    after: sparse.csr_array  # (P+1, P+1) the score of each POI after each other
    anywhere: Floats  # (P+1,) and after any

    def probabilities(self, sessions: Sessions) -> Iterator[Sparse]:
        """Yield the scores of all steps at once: they are few per step."""
        yield Sparse(self.anywhere, self.after[sessions.poi[sessions.steps()]].tocsr())
