"""TS-UE: error-minimising steps on the surrogate's embedding of the clean POI, then the nearest of C(p) and p.

The paper gives no step size. Ours is calibrated, on the substitution rate that the paper reports for NYC (.749) alone.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ghostpoi.methods.base import KEEP
from ghostpoi.position import Position
from ghostpoi.settings import Section, setting


@dataclass(frozen=True)
class TsUe(Section):
    """Unlearnable time series, adapted to POIs: deterministic, and free to leave a POI as it is."""

    steps: int = setting(5, "gradient steps on the embedding", 1)
    step_size: float = setting(0.1, "length of a step, in units of the distance to the nearest candidate", 0, 1e6)

    needs_surrogate: ClassVar[bool] = True
    may_keep: ClassVar[bool] = True
    needs_trajectory_lm: ClassVar[bool] = False

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        clean = position.embedding(position.anchor)  # (B, d)
        options = position.embedding(position.candidates)  # (B, K, d)
        away = (options - clean[:, None]).norm(dim=2).masked_fill(~position.feasible, torch.inf)
        unit = away.amin(1).nan_to_num(posinf=0.0)  # (B,) a step's unit: the distance to the nearest candidate
        moved = clean.clone()
        for _ in range(self.steps):
            with torch.enable_grad():
                moved.requires_grad_(True)
                (gradient,) = torch.autograd.grad(position.loss(moved).sum(), moved)
            # Along the sphere: the radial part only makes the embedding longer, and no venue lies that way.
            ray = moved.detach() / moved.detach().norm(dim=1, keepdim=True).clamp(min=1e-12)
            gradient = gradient - (gradient * ray).sum(1, keepdim=True) * ray
            direction = gradient / gradient.norm(dim=1, keepdim=True).clamp(min=1e-12)
            moved = moved.detach() - self.step_size * unit[:, None] * direction
        near = (options - moved[:, None]).norm(dim=2).masked_fill(~position.feasible, torch.inf)
        stays = (clean - moved).norm(dim=1).masked_fill(~position.anchor_feasible, torch.inf)
        return torch.where(stays <= near.amin(1), KEEP, near.argmin(1))
