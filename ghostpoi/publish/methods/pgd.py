"""PGD: the deterministic, error-maximising counterpart of GHOST."""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import Method, Position, Tensor


@dataclass(frozen=True)
class Pgd(Method):
    """Take the candidate with the highest surrogate loss."""

    label = "PGD"
    summary = "Take the candidate with the highest surrogate loss."
    needs_surrogate = True
    in_paper = True

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        return position.adv().argmax(1)
