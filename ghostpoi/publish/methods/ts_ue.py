"""TS-UE: error-minimising steps on the surrogate's embedding of the clean POI, then the nearest of C(p) and p.

Projected gradient descent in a ball around the clean embedding, from a random start on its surface, as is usual. The
paper gives neither this form nor its settings. Both were chosen by trying, with the substitution rate and displacements
that the paper reports for NYC in view (docs/method.md, "What was tuned"): that ours come near them is no evidence.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ghostpoi.publish.methods.base import KEEP
from ghostpoi.publish.scoring import Position
from ghostpoi.settings import Section, setting


@dataclass(frozen=True)
class TsUe(Section):
    """Unlearnable time series, adapted to POIs: free to leave a POI as it is."""

    reach: float = setting(60.0, "radius of the ball, in units of the distance to the nearest candidate", 0, 1e6)
    steps: int = setting(3, "gradient steps on the embedding", 0)
    step_size: float = setting(0.05, "length of a step, as a share of the radius", 0, 1)

    needs_surrogate: ClassVar[bool] = True
    may_keep: ClassVar[bool] = True
    needs_trajectory_lm: ClassVar[bool] = False

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        clean = position.embedding(position.anchor)  # (B, d)
        options = position.embedding(position.candidates)  # (B, K, d)
        away = (options - clean[:, None]).norm(dim=2).masked_fill(~position.feasible, torch.inf)
        radius = self.reach * away.amin(1, keepdim=True).nan_to_num(posinf=0.0)  # (B, 1)
        moved = clean + radius * _tangent(_directions(uniform, clean), clean)
        for _ in range(self.steps):
            with torch.enable_grad():
                moved = moved.detach().requires_grad_(True)
                (gradient,) = torch.autograd.grad(position.loss(moved).sum(), moved)
            step = moved.detach() - clean - self.step_size * radius * _tangent(gradient, clean)
            moved = clean + step * (radius / step.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1)
        near = (options - moved[:, None]).norm(dim=2).masked_fill(~position.feasible, torch.inf)
        stays = (clean - moved).norm(dim=1).masked_fill(~position.anchor_feasible, torch.inf)
        nearest: Tensor = near.argmin(1)
        return nearest.masked_fill(stays <= near.amin(1), KEEP)


def _directions(uniform: Tensor, like: Tensor) -> Tensor:
    """One number in [0, 1) spread over all dimensions of (B, d): far apart frequencies make them unrelated."""
    frequency = 1e4 * torch.arange(1, like.shape[1] + 1, device=like.device, dtype=torch.float64).sqrt()
    return torch.sin(uniform[:, None] * frequency).to(like.dtype)


def _tangent(direction: Tensor, at: Tensor) -> Tensor:
    """Unit vectors along the sphere: the radial part only makes an embedding longer, and no venue lies that way."""
    ray = at / at.norm(dim=1, keepdim=True).clamp(min=1e-12)
    across: Tensor = direction - (direction * ray).sum(1, keepdim=True) * ray
    length: Tensor = across.norm(dim=1, keepdim=True)
    return across / length.clamp(min=1e-12)
