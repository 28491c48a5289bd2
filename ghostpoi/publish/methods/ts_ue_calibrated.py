"""TS-UE, calibrated: short steps along the sphere, from a random start on a large ball.

We tuned its form and its settings towards the paper's substitution rate and displacements on NYC
(docs/explanation/method.md, "What was tuned"), so agreement with these numbers is no evidence.
"""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import Tensor
from ghostpoi.publish.methods.ts_ue import TsUe
from ghostpoi.settings import setting


@dataclass(frozen=True)
class TsUeCalibrated(TsUe):
    """TS-UE with the paper's substitution rate. Most of its choices are random."""

    label = "TS-UE (calibrated)"
    summary = "TS-UE from a random start, tuned to the paper's substitution rate."

    reach: float = setting(60.0, "radius of the ball, in units of the distance to the nearest candidate", 0, 1e6)
    steps: int = setting(3, "gradient steps on the embedding", 0)
    step_size: float = setting(0.05, "length of a step, as a share of the radius", 0, 1)

    def unit(self, away: Tensor, feasible: Tensor) -> Tensor:
        return away.masked_fill(~feasible, float("inf")).amin(1, keepdim=True).nan_to_num(posinf=0.0)

    def begin(self, clean: Tensor, radius: Tensor, uniform: Tensor) -> Tensor:
        return clean + radius * self.direction(_directions(uniform, clean), clean)

    def direction(self, gradient: Tensor, clean: Tensor) -> Tensor:
        """Return unit vectors along the sphere. The radial part is dropped: it only makes an embedding longer."""
        ray = clean / clean.norm(dim=1, keepdim=True).clamp(min=1e-12)
        return super().direction(gradient - (gradient * ray).sum(1, keepdim=True) * ray, clean)


def _directions(uniform: Tensor, like: Tensor) -> Tensor:
    """Turn one number in [0, 1) into a vector (B, d). High, different frequencies make its entries look unrelated."""
    import torch

    frequency = 1e4 * torch.arange(1, like.shape[1] + 1, device=like.device, dtype=torch.float64).sqrt()
    return torch.sin(uniform[:, None] * frequency).to(like.dtype)
