"""random: the control that every method must beat."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ghostpoi.publish.methods.base import Method

if TYPE_CHECKING:
    from torch import Tensor

    from ghostpoi.publish.position import Position


@dataclass(frozen=True)
class Random(Method):
    """Draw uniformly from the candidate set, without a model."""

    label: ClassVar[str] = "random (control)"
    summary: ClassVar[str] = "Draw uniformly from the candidate set: the control."
    exact_channel: ClassVar[bool] = True

    def choose(self, position: "Position", uniform: "Tensor") -> "Tensor":
        return position.sample(position.zeros(), uniform)
