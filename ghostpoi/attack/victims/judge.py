"""The judge: turns what any scorer predicts into the ranks of the venues that people really went to, and distances."""

import time
from dataclasses import replace

import numpy as np
import torch

from ghostpoi.attack.scorers import Scorer, Scores, Sparse
from ghostpoi.attack.victims.base import Exam, Result, final_ranks, readable
from ghostpoi.attack.victims.distances import Asked, Guesser
from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.training_windows import next_poi
from ghostpoi.randomness import Seed


def judged(name: str, seed: Seed, scorer: Scorer, exam: Exam, began: float) -> Result:
    """Return what a scorer achieves; `began` is when its training did, by `time.perf_counter`."""
    hits, guesser = ranks(scorer, exam.validation, exam.rows, exam.device) == 1, guesser_of(exam, seed)
    found = ranks(scorer, exam.test, exam.rows, exam.device, guesser)
    distance = guesser.shares() if guesser else {}
    seconds = time.perf_counter() - began
    return Result(name, found, float(hits.mean()) if len(hits) else 0.0, 1, seconds, distance)


def guesser_of(exam: Exam, seed: Seed) -> Guesser | None:
    """Return what measures the distances of a victim of this seed, if the exam asks for them."""
    if not exam.seeds or exam.vocabulary is None:
        return None
    everything = exam.device.type != "cpu"
    return Guesser(Asked.of(exam.vocabulary, exam.test, seed.value % exam.seeds, exam.seeds, everything), exam.device)


def ranks(
    scorer: Scorer, sessions: Sessions, rows: int, device: torch.device, guesser: Guesser | None = None
) -> Longs:  # fmt: skip
    """Return the rank of every next POI, 1 the best, (N - S,); a tie counts against it, and POI 0 is never an answer.

    The rank of an unknown POI is WRONG. `guesser` reads the same scores.
    """
    pairs, known = readable(next_poi(sessions, max(2, sessions.positions)), rows)
    found, at = [np.zeros(0, np.int64)], 0
    for scores in scorer.probabilities(shown(sessions, rows)):
        target = pairs.target[at : at + _steps(scores)].astype(np.int64)
        found.append(_ranks(scores, target, device))
        if guesser is not None:
            guesser.read(scores)
        at += _steps(scores)
    if at != len(known):
        raise ValueError(f"the scorer predicted {at} steps of {len(known)}")
    return final_ranks(np.concatenate(found), known)


def shown(sessions: Sessions, rows: int) -> Sessions:
    """Return what a scorer sees of sessions: an unknown POI is 0."""
    return replace(sessions, poi=np.where((sessions.poi >= 1) & (sessions.poi < rows), sessions.poi, 0))


def _steps(scores: Scores) -> int:
    return scores.more.shape[0] if isinstance(scores, Sparse) else len(scores)


def _ranks(scores: Scores, target: Longs, device: torch.device) -> Longs:
    """Return the rank of each target, (n,)."""
    if isinstance(scores, Sparse):
        return _sparse_ranks(scores, target)
    here = torch.as_tensor(scores, device=device)[:, 1:]
    own = here.gather(1, torch.from_numpy(target - 1).to(device)[:, None])
    ranked: Longs = (here >= own).sum(1).cpu().numpy()
    return ranked


def _sparse_ranks(scores: Sparse, target: Longs) -> Longs:
    """Rank by the order of the base, corrected by the few venues of each step that exceed it."""
    base, more = scores.base, scores.more
    own = base[target] + np.asarray(more[np.arange(len(target)), target]).ravel()  # (n,)
    ordered = np.sort(base[1:])
    above = len(ordered) - np.searchsorted(ordered, own)
    step = np.repeat(np.arange(len(target)), np.diff(more.indptr))
    moved = (base[more.indices] < own[step]) & (base[more.indices] + more.data >= own[step]) & (more.indices > 0)
    ranked: Longs = above + np.bincount(step[moved], minlength=len(target))
    return ranked
