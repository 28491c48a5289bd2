"""TS-UE: error-minimising steps on the surrogate's embedding of the clean POI, then the nearest of C(p) and p.

The paper gives no step size. Ours is calibrated so that the substitution rate on NYC is the paper's, under protocol
`paper`, looking at nothing but that rate (`ghostpoi study calibrate`): the rate is no evidence of anything.
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
    """Unlearnable time series, adapted to POIs: free to leave a POI as it is, and without any randomness."""

    steps: int = setting(1, "gradient steps on the embedding", 0)
    step_size: float = setting(100.0, "length of a step, in units of the distance to the nearest candidate", 0, 1e6)

    needs_surrogate: ClassVar[bool] = True
    may_keep: ClassVar[bool] = True
    needs_trajectory_lm: ClassVar[bool] = False

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        clean = position.embedding(position.anchor)  # (B, d)
        options = position.embedding(position.candidates)  # (B, K, d)
        away = (options - clean[:, None]).norm(dim=2).masked_fill(~position.feasible, torch.inf)
        length = self.step_size * away.amin(1, keepdim=True).nan_to_num(posinf=0.0)  # (B, 1)
        moved = clean
        for _ in range(self.steps):
            with torch.enable_grad():
                moved = moved.detach().requires_grad_(True)
                (gradient,) = torch.autograd.grad(position.loss(moved).sum(), moved)
            moved = moved.detach() - length * gradient / gradient.norm(dim=1, keepdim=True).clamp(min=1e-12)
        near = (options - moved[:, None]).norm(dim=2).masked_fill(~position.feasible, torch.inf)
        stays = (clean - moved).norm(dim=1).masked_fill(~position.anchor_feasible, torch.inf)
        nearest: Tensor = near.argmin(1)
        return nearest.masked_fill(stays <= near.amin(1), KEEP)
