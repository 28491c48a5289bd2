"""An example plug-in: a weak method, and the adversary that shows how weak it is.

`nearest` moves visits as little as the candidate rule allows. It draws nothing at random, so anyone who reads this file
can undo most of it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary
from ghostpoi.draw.methods.base import Method

if TYPE_CHECKING:  # torch takes seconds to import, and `ghostpoi verify` does not need it
    import torch

    from ghostpoi.attack.evidence import Evidence
    from ghostpoi.data.checkins import Ints
    from ghostpoi.draw.scoring import Position
    from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class Nearest(Method):
    """The first candidate that the speed mask allows; candidate sets are sorted by distance."""

    label: ClassVar[str] = "nearest"
    summary: ClassVar[str] = "Take the nearest candidate."

    def choose(self, position: "Position", uniform: "torch.Tensor") -> "torch.Tensor":
        return position.feasible.int().argmax(1)  # (B, K) -> (B,)


@dataclass(frozen=True)
class UndoNearest(Adversary):
    """Holds the release and the public rule, and takes every released venue back to a venue that it is nearest to."""

    number: ClassVar[int] = 101
    title: ClassVar[str] = "undo nearest"
    holds: ClassVar[str] = "the release; the public rule"
    does: ClassVar[str] = "replaces each released venue by one whose nearest candidate it is"
    uses_leak: ClassVar[bool] = False
    trains: ClassVar[bool] = False

    def restore(self, evidence: "Evidence", seed: "Seed", device: "torch.device") -> "Ints":
        origin = np.arange(evidence.rows, dtype=np.int32)  # (P+1,) a venue that is nobody's nearest stays
        if evidence.rule is not None:
            origin[evidence.rule.candidates.poi[1:, 0]] = origin[1:].copy()
        return origin[evidence.released.poi]
