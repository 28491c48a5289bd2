"""PGD: always the candidate that makes the surrogate most wrong."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ghostpoi.publish.scoring import Position
from ghostpoi.settings import Section


@dataclass(frozen=True)
class Pgd(Section):
    """The deterministic, error-maximising counterpart of GHOST."""

    needs_surrogate: ClassVar[bool] = True
    may_keep: ClassVar[bool] = False
    needs_trajectory_lm: ClassVar[bool] = False

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        return position.adv().argmax(1)
