"""EM: error-minimising unlearnable examples, adapted to POIs."""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import Method, Position, Tensor


@dataclass(frozen=True)
class Em(Method):
    """Take the candidate with the lowest surrogate loss, so that there is little left to learn."""

    label = "EM"
    summary = "Take the candidate with the lowest surrogate loss."
    needs_surrogate = True
    in_paper = True

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        return position.adv().masked_fill(~position.feasible, float("inf")).argmin(1)
