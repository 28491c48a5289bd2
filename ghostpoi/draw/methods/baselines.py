"""Methods that look at the surrogate alone (PGD and EM), and `random`, the control that every method must beat."""

from dataclasses import dataclass
from typing import Literal

from ghostpoi.draw.methods.base import Method, Position, Tensor
from ghostpoi.settings import setting


@dataclass(frozen=True)
class Random(Method):
    """Draw uniformly from the candidate set, without a model."""

    label = "random (control)"
    summary = "Draw uniformly from the candidate set: the control."
    exact_channel = True


@dataclass(frozen=True)
class Pgd(Method):
    """Take the candidate with the highest surrogate loss."""

    label = "PGD"
    summary = "Take the candidate with the highest surrogate loss."
    needs_surrogate = True
    in_paper = True

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        return position.adv().argmax(1)


@dataclass(frozen=True)
class Em(Method):
    """Take the candidate with the lowest surrogate loss, so that there is little left to learn.

    The paper also says that EM rewards "high victim-predicted likelihood". With `score=likelihood`, it takes the
    candidate that the surrogate finds most likely after the released prefix. At the first position, which has no
    prefix, the loss decides.
    """

    label = "EM"
    summary = "Take the candidate with the lowest surrogate loss."
    needs_surrogate = True
    in_paper = True

    score: Literal["loss", "likelihood"] = setting(
        "loss", "what decides: the surrogate's loss on the next venue, or the likelihood that it gives the candidate"
    )

    @property
    def needs_likelihood(self) -> bool:
        return self.score == "likelihood"

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        if self.needs_likelihood and position.has_prefix:
            return position.likelihood().argmax(1)
        return position.adv().masked_fill(~position.feasible, float("inf")).argmin(1)
