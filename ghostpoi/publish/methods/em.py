"""EM: error-minimising unlearnable examples, adapted to POIs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ghostpoi.publish.methods.base import Method

if TYPE_CHECKING:
    from torch import Tensor

    from ghostpoi.publish.position import Position


@dataclass(frozen=True)
class Em(Method):
    """Take the candidate with the lowest surrogate loss, so that there is little left to learn."""

    label: ClassVar[str] = "EM"
    summary: ClassVar[str] = "Take the candidate with the lowest surrogate loss."
    needs_surrogate: ClassVar[bool] = True

    def choose(self, position: "Position", uniform: "Tensor") -> "Tensor":
        return position.adv().masked_fill(~position.feasible, float("inf")).argmin(1)
