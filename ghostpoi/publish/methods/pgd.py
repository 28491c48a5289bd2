"""PGD: the deterministic, error-maximising counterpart of GHOST."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ghostpoi.publish.methods.base import Method

if TYPE_CHECKING:
    from torch import Tensor

    from ghostpoi.publish.position import Position


@dataclass(frozen=True)
class Pgd(Method):
    """Take the candidate with the highest surrogate loss."""

    label: ClassVar[str] = "PGD"
    summary: ClassVar[str] = "Take the candidate with the highest surrogate loss."
    needs_surrogate: ClassVar[bool] = True

    def choose(self, position: "Position", uniform: "Tensor") -> "Tensor":
        return position.adv().argmax(1)
