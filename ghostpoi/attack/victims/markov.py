"""A victim that only counts: first-order Markov. It owes nothing to a training recipe, and on clean data is as good."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

from ghostpoi.attack.victims.base import Exam, Job, Result, askable, counted
from ghostpoi.attack.victims.together import check
from ghostpoi.attack.victims.transformer import victim_settings
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.windows import Windows, next_poi

SCORES = 1 << 23  # held at once


@dataclass(frozen=True)
class Markov:
    """Somebody counts which POI follows which. Where that says little, what came two steps later or just before counts
    a little, and then what is popular.

    A clean NYC validation chose the weights: acc@1 .211, where counts of followers alone have .206.
    """

    back_off: float = 0.1  # of a POI that came two steps later, or one step earlier
    popular: float = 10.0  # of popularity, a share of all check-ins

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """One result per job, in their order. Counting needs no seed, and any protocol comes to the same."""
        victim_settings(protocol)  # that there is one
        check(jobs, exam.rows)
        goal, asked = (askable(next_poi(s, max(2, s.positions)), exam.rows) for s in (exam.validation, exam.test))
        results = []
        for job in jobs:
            began = time.perf_counter()
            counts, base = self.counts(job.train, exam.rows)
            hits = counted(ranks(counts, base, goal[0], exam.device), goal[1]) == 1
            found = counted(ranks(counts, base, asked[0], exam.device), asked[1])
            seconds = time.perf_counter() - began
            results.append(Result(job.name, found, float(hits.mean()) if len(hits) else 0.0, 1, seconds))
            exam.progress(job.name, 1.0)
        return results

    def counts(self, train: Sessions, rows: int) -> tuple[sparse.csr_array, Floats]:
        """What a POI is worth after another, (P+1, P+1), and after any, (P+1,)."""
        once, twice = (_after(train, lag, rows) for lag in (1, 2))
        visits = np.bincount(train.poi, minlength=rows)
        return once + self.back_off * (twice + once.T), self.popular * visits / max(1, visits.sum())


def ranks(counts: sparse.csr_array, base: Floats, pairs: Windows, device: torch.device) -> Longs:
    """The rank of every target, 1 the best, (N,); a tie counts against it, and row 0 is never an answer."""
    everywhere = torch.from_numpy(base[1:]).to(device)
    followers = counts[:, 1:].tocsr()
    step, found = max(1, SCORES // len(base)), [torch.zeros(0, dtype=torch.int64)]
    for a in range(0, len(pairs.token), step):
        scores = torch.from_numpy(followers[pairs.token[a : a + step]].toarray()).to(device) + everywhere
        own = scores.gather(1, torch.from_numpy(pairs.target[a : a + step, None] - 1).to(device))
        found.append((scores >= own).sum(1).cpu())
    return torch.cat(found).numpy()


def _after(sessions: Sessions, lag: int, rows: int) -> sparse.csr_array:
    """How often a POI came `lag` steps after another in a session, (P+1, P+1)."""
    session = sessions.session_of()
    at = np.flatnonzero(session[lag:] == session[:-lag])
    pair = sessions.poi[at], sessions.poi[at + lag]
    return sparse.coo_array((np.ones(len(at)), pair), (rows, rows)).tocsr()
