"""What a victim is trained on, what comes of it, and what every victim can do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.models.windows import Windows
from ghostpoi.randomness import Seed

WRONG = int(np.iinfo(np.int64).max)  # a rank that no cutoff reaches, with a reciprocal of nothing

P = TypeVar("P", bound=Windows)

Progress = Callable[[str, float], None]  # what is being trained, victims just done: in all, one for each job


@dataclass(frozen=True)
class Job:
    """One victim to be trained on released, restored or clean sessions.

    All victims of one seed start from the same weights and see batches and dropout alike, so that what differs between
    them is what they were given to learn from.
    """

    name: str
    train: Sessions
    seed: Seed


@dataclass(frozen=True)
class Result:
    """What one victim came to."""

    name: str
    ranks: Longs  # (N,) of every next POI of the test sessions, in order, 1 the best; WRONG: unknown, or no answer
    validation: float  # acc@1 on the validation sessions, of the epoch that was kept
    epochs: int  # that ran, those after the kept one included
    seconds: float  # wall-clock time; of victims trained together, an equal share each


@dataclass(frozen=True)
class Exam:
    """What the victims of all jobs have in common: they are validated and tested on the same sessions."""

    validation: Sessions
    test: Sessions
    rows: int  # P+1
    device: torch.device
    progress: Progress = lambda label, victims: None
    vocabulary: Vocabulary | None = None  # where POIs lie; a victim that cannot do without it refuses to train


class Victim(Protocol):
    """A next-POI model that somebody trains on what they got. How strong it is, a protocol says."""

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """One result per job, in their order."""


def askable(pairs: P, rows: int, stand_in: int = 1) -> tuple[P, NDArray[np.bool_]]:
    """Pairs that a model of `rows` rows can read, and which of their targets it knows, (N,).

    POIs that it does not know (0, or outside its vocabulary) are read as 0; as a target, another stands in for them.
    """
    known = [(a >= 1) & (a < rows) for a in (pairs.token, pairs.target)]
    token, target = np.where(known[0], pairs.token, 0), np.where(known[1], pairs.target, stand_in)
    return replace(pairs, token=token, target=target), known[1]


def counted(ranks: Longs, known: NDArray[np.bool_]) -> Longs:
    """Ranks as they count: an unknown target is wrong, and so is rank 0, how a model that diverged to NaN answers."""
    return np.where(known & (ranks >= 1), ranks, WRONG)
