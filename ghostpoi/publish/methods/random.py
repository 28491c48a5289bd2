"""random: the control that a method must beat before anything may be called a win."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ghostpoi.publish.methods.base import Method

if TYPE_CHECKING:
    from torch import Tensor

    from ghostpoi.publish.position import Position


@dataclass(frozen=True)
class Random(Method):
    """A uniform draw from the candidate set, without any model."""

    label: ClassVar[str] = "random (control)"
    summary: ClassVar[str] = "Draw any candidate with equal probability: the control."
    exact_channel: ClassVar[bool] = True

    def choose(self, position: "Position", uniform: "Tensor") -> "Tensor":
        return position.sample(position.zeros(), uniform)
