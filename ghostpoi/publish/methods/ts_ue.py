"""TS-UE: error-minimising steps on the surrogate's embedding of the clean POI, then the nearest venue of C(p) or p.

The steps are projected gradient descent in a ball around the clean embedding, from a random start on its surface. The
paper gives neither this form nor its settings. We tuned both towards the paper's substitution rate and displacements on
NYC (docs/explanation/method.md, "What was tuned"), so agreement with these numbers is no evidence.
"""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import KEEP, Method, Position, Tensor
from ghostpoi.settings import setting


@dataclass(frozen=True)
class TsUe(Method):
    """Unlearnable time series, adapted to POIs. It may keep the clean venue."""

    label = "TS-UE (calibrated)"
    summary = "Move the embedding of the clean venue to lower the surrogate's loss, then take the nearest venue."
    needs_surrogate = True
    in_paper = True
    may_keep = True

    reach: float = setting(60.0, "radius of the ball, in units of the distance to the nearest candidate", 0, 1e6)
    steps: int = setting(3, "gradient steps on the embedding", 0)
    step_size: float = setting(0.05, "length of a step, as a share of the radius", 0, 1)

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        import torch

        clean = position.embedding(position.anchor)  # (B, d)
        options = position.embedding(position.candidates)  # (B, K, d)
        away = (options - clean[:, None]).norm(dim=2).masked_fill(~position.feasible, float("inf"))
        radius = self.reach * away.amin(1, keepdim=True).nan_to_num(posinf=0.0)  # (B, 1)
        moved = clean + radius * _tangent(_directions(uniform, clean), clean)
        for _ in range(self.steps):
            with torch.enable_grad():
                moved = moved.detach().requires_grad_(True)
                (gradient,) = torch.autograd.grad(position.loss(moved).sum(), moved)
            step = moved.detach() - clean - self.step_size * radius * _tangent(gradient, clean)
            moved = clean + step * (radius / step.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1)
        near = (options - moved[:, None]).norm(dim=2).masked_fill(~position.feasible, float("inf"))
        from_clean = (clean - moved).norm(dim=1).masked_fill(~position.anchor_feasible, float("inf"))
        nearest: Tensor = near.argmin(1)
        return nearest.masked_fill(from_clean <= near.amin(1), KEEP)


def _directions(uniform: Tensor, like: Tensor) -> Tensor:
    """Turn one number in [0, 1) into a vector (B, d). High, different frequencies make its entries look unrelated."""
    import torch

    frequency = 1e4 * torch.arange(1, like.shape[1] + 1, device=like.device, dtype=torch.float64).sqrt()
    return torch.sin(uniform[:, None] * frequency).to(like.dtype)


def _tangent(direction: Tensor, at: Tensor) -> Tensor:
    """Return unit vectors along the sphere. The radial part is dropped: it only makes an embedding longer."""
    ray = at / at.norm(dim=1, keepdim=True).clamp(min=1e-12)
    across: Tensor = direction - (direction * ray).sum(1, keepdim=True) * ray
    length: Tensor = across.norm(dim=1, keepdim=True)
    return across / length.clamp(min=1e-12)
