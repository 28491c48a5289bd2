"""GHOST and its variants: draw candidates that mislead the surrogate and that the trajectory LM finds natural."""

from dataclasses import dataclass

from ghostpoi.draw.methods.base import Method, Position, Tensor
from ghostpoi.settings import setting


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
