"""Scorers: what predicts the next venue of clean sessions, be it a victim's model or an adversary's own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import scipy  # its parts are loaded when they are used

from ghostpoi.data.checkins import Floats
from ghostpoi.data.sessions import Sessions

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Sparse:
    """Scores of n steps that share a base and exceed it at few venues. Ranks of these cost no dense array."""

    base: Floats  # (P+1,)
    more: "scipy.sparse.csr_array"  # (n, P+1), at least 0

    def dense(self) -> Floats:
        """Return the scores of all venues, (n, P+1)."""
        scores: Floats = self.more.toarray() + self.base
        return scores


Scores: TypeAlias = "Floats | torch.Tensor | Sparse"  # of some steps, each proportional to a probability, (n, P+1)


class Scorer(Protocol):
    """Predicts the venue after every step."""

    def probabilities(self, sessions: Sessions) -> Iterator[Scores]:
        """Yield the scores of the steps inside sessions, in order and in batches; column 0 is 0.

        A venue that the vocabulary lacks is 0 in `sessions`.
        """
        ...
