"""TS-UE: error-minimising steps on the surrogate's embedding of the clean venue, then the nearest of C(p) and p.

The steps are projected gradient descent from the clean embedding, so the same prefix, target and surrogate always give
the same choice. The paper gives no settings. The ball is the smallest one that holds every candidate. All steps
together are 2.5 radii long, as is usual for projected gradient descent. Nothing was tuned to the paper's numbers.
"""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import KEEP, Method, Position, Tensor
from ghostpoi.settings import setting


@dataclass(frozen=True)
class TsUe(Method):
    """Unlearnable time series, adapted to venues. The method may keep the clean venue."""

    label = "TS-UE"
    summary = "Move the embedding of the clean venue to lower the surrogate's loss, then take the nearest venue."
    needs_surrogate = True
    in_paper = True
    may_keep = True

    reach: float = setting(1.0, "radius of the ball, in units of the distance to the farthest candidate", 0, 1e6)
    steps: int = setting(5, "gradient steps on the embedding", 0)
    step_size: float = setting(0.5, "length of a step, as a share of the radius", 0, 1)

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        import torch

        clean = position.embedding(position.anchor)  # (B, d)
        options = position.embedding(position.candidates)  # (B, K, d)
        radius = self.reach * self.unit((options - clean[:, None]).norm(dim=2), position.feasible)  # (B, 1)
        moved = self.begin(clean, radius, uniform)
        for _ in range(self.steps):
            with torch.enable_grad():
                moved = moved.detach().requires_grad_(True)
                (gradient,) = torch.autograd.grad(position.loss(moved).sum(), moved)
            step = moved.detach() - clean - self.step_size * radius * self.direction(gradient, clean)
            moved = clean + step * (radius / step.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1)
        near = (options - moved[:, None]).norm(dim=2).masked_fill(~position.feasible, float("inf"))
        from_clean = (clean - moved).norm(dim=1).masked_fill(~position.anchor_feasible, float("inf"))
        nearest: Tensor = near.argmin(1)
        return nearest.masked_fill(from_clean <= near.amin(1), KEEP)

    def unit(self, away: Tensor, feasible: Tensor) -> Tensor:
        """Return the unit of the radius, (B, 1), from the distances (B, K) to the candidates."""
        return away.masked_fill(~feasible, 0.0).amax(1, keepdim=True)

    def begin(self, clean: Tensor, radius: Tensor, uniform: Tensor) -> Tensor:
        """Return where the steps start, (B, d)."""
        return clean

    def direction(self, gradient: Tensor, clean: Tensor) -> Tensor:
        """Return the unit vectors (B, d) against which a step goes."""
        length: Tensor = gradient.norm(dim=1, keepdim=True)
        return gradient / length.clamp(min=1e-12)
