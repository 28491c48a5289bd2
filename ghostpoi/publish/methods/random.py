"""random: the control. Any candidate, with equal probability: no surrogate, no trajectory LM."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ghostpoi.attack.rule import Channel, uniform
from ghostpoi.data.candidates import Candidates
from ghostpoi.publish.methods.base import sample
from ghostpoi.publish.scoring import Position
from ghostpoi.settings import Section


@dataclass(frozen=True)
class Random(Section):
    """What a method must beat before anything may be called a win."""

    needs_surrogate: ClassVar[bool] = False
    may_keep: ClassVar[bool] = False
    needs_trajectory_lm: ClassVar[bool] = False

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        return sample(torch.where(position.feasible, 0.0, -torch.inf), uniform)

    def channel(self, candidates: Candidates) -> Channel:
        return uniform(candidates)
