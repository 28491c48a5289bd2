"""GHOST: a candidate is drawn by how wrong it makes the surrogate and how natural it looks to the trajectory LM."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ghostpoi.publish.methods.base import sample
from ghostpoi.publish.scoring import Position
from ghostpoi.settings import Section, setting

BISECTIONS = 40


@dataclass(frozen=True)
class Ghost(Section):
    """P(p') proportional to exp(score / tau), score = alpha adv + beta mani, with an optional floor on its entropy."""

    alpha: float = setting(2.0, "weight of the adversarial term", 0, 1e6)
    beta: float = setting(0.5, "weight of the manifold term", 0, 1e6)
    tau: float = setting(0.3, "sampling temperature", 1e-6, 1e6)
    eta: float = setting(0.0, "entropy floor in bits; 0 is none", 0, 1e3)

    needs_surrogate: ClassVar[bool] = True
    may_keep: ClassVar[bool] = False

    @property
    def needs_trajectory_lm(self) -> bool:
        return self.beta > 0

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        score = torch.zeros_like(position.feasible, dtype=torch.float64)
        if self.alpha:
            score += self.alpha * position.adv()
        if self.beta:
            score += self.beta * position.mani()
        score = (score / self.tau).masked_fill(~position.feasible, -torch.inf)
        if self.eta:
            score = with_entropy_floor(score, self.eta)
        return sample(score, uniform)


def with_entropy_floor(log_weight: Tensor, bits: float) -> Tensor:
    """Log-probabilities of the smallest mixture with uniform whose entropy reaches min(bits, log2 |C|)."""
    real = log_weight > -torch.inf
    p = torch.softmax(log_weight, 1).nan_to_num(0.0)
    size = real.sum(1, keepdim=True).clamp(min=1)
    uniform = real.to(p.dtype) / size
    floor = torch.log2(size.double()).clamp(max=bits)
    low, high = torch.zeros_like(floor), torch.ones_like(floor)  # the entropy grows with the share of uniform
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = _entropy(torch.lerp(p, uniform, middle)) >= floor
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    share = high.masked_fill(_entropy(p) >= floor, 0.0)
    return torch.lerp(p, uniform, share).log()


def _entropy(p: Tensor) -> Tensor:
    nats: Tensor = torch.special.entr(p)
    return nats.sum(1, keepdim=True) / math.log(2)  # (B, 1) bits
