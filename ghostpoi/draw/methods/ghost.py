"""GHOST and its variants, the methods that look at the surrogate alone (PGD and EM), and the control `random`.

GHOST draws candidates that mislead the surrogate and that the trajectory LM finds natural. Every method must beat
`random`.
"""

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


@dataclass(frozen=True)
class Ghost(Method):
    """Draw p' with P(p') proportional to exp((alpha adv + beta mani) / tau), with an optional entropy floor."""

    label = "GHOST"
    summary = (
        "Draw candidates by the surrogate's loss (the adversarial term) and their naturalness (the manifold term)."
    )
    needs_surrogate = True
    in_paper = True

    alpha: float = setting(2.0, "weight of the adversarial term", 0, 1e6)
    beta: float = setting(0.5, "weight of the manifold term", 0, 1e6)
    tau: float = setting(0.3, "sampling temperature", 1e-6, 1e6)
    eta: float = setting(0.0, "entropy floor in bits; 0 means none", 0, 1e3)

    @property
    def needs_trajectory_lm(self) -> bool:
        return self.beta > 0

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        score = position.zeros()
        if self.alpha:
            score += self.alpha * position.adv()
        if self.beta:
            score += self.beta * position.mani()
        return position.sample(score / self.tau, uniform, entropy_floor=self.eta)


@dataclass(frozen=True)
class GhostSym(Ghost):
    """GHOST with equal weights."""

    label = "GHOST-Sym"
    summary = "GHOST with equal weights on both terms."

    alpha: float = setting(1.0, "weight of the adversarial term", 0, 1e6)
    beta: float = setting(1.0, "weight of the manifold term", 0, 1e6)


@dataclass(frozen=True)
class GhostEf(Ghost):
    """GHOST with an entropy floor instead of the manifold term."""

    label = "GHOST-EF"
    summary = "GHOST with an entropy floor instead of the manifold term."

    beta: float = setting(0.0, "weight of the manifold term", 0, 1e6)
    eta: float = setting(3.0, "entropy floor in bits; 0 means none", 0, 1e3)
