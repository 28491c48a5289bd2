"""EM: always the candidate that makes the surrogate least wrong, so that the data look learned already."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ghostpoi.publish.scoring import Position
from ghostpoi.settings import Section


@dataclass(frozen=True)
class Em(Section):
    """Error-minimising unlearnable examples on POIs."""

    needs_surrogate: ClassVar[bool] = True
    may_keep: ClassVar[bool] = False
    needs_trajectory_lm: ClassVar[bool] = False

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        return position.adv().masked_fill(~position.feasible, torch.inf).argmin(1)
