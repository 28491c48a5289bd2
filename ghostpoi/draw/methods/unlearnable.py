"""Unlearnable examples of other fields, adapted to venues: TS-UE, robust-ue and transferable-ue.

TS-UE takes error-minimising steps on the surrogate's embedding of the clean POI, then the nearest venue of C(p) or p.
Its calibrated form takes short steps along the sphere, from a random start on a large ball. robust-ue (Fu et al.,
2022) minimises the error even if an adversary perturbs the example. transferable-ue (after Ren et al., 2023) separates
classes and depends on no surrogate.
"""

from dataclasses import dataclass

from ghostpoi.draw.methods.base import KEEP, Method, Position, Tensor
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


@dataclass(frozen=True)
class RobustUe(Method):
    """Take the candidate whose largest loss over itself and its neighbours is lowest; if tied, that with less loss."""

    label = "Robust UE"
    summary = "Take the candidate with the lowest worst-case surrogate loss over similar candidates."
    needs_surrogate = True

    share: float = setting(
        0.5, "share of the other candidates, nearest first, by which an adversary may replace a substitute", 0, 1
    )

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        import torch

        adv, feasible = position.adv(), position.feasible  # (B, K)
        options = position.embedding(position.candidates)
        away = torch.cdist(options, options).masked_fill(~feasible[:, None], float("inf"))  # (B, K, K)
        away.diagonal(dim1=1, dim2=2).fill_(-1.0)  # rounding must not move a candidate away from itself
        order = away.argsort(dim=2, stable=True)
        worst = adv[:, None].expand_as(away).gather(2, order).cummax(2).values  # over itself and its k nearest
        reached = (self.share * (feasible.sum(1) - 1).clamp(min=0)).long()  # (B,) other candidates
        worst = worst.gather(2, reached[:, None, None].expand(-1, adv.shape[1], 1)).squeeze(2)
        worst = worst.masked_fill(~feasible, float("inf"))
        best = worst == worst.amin(1, keepdim=True)  # neighbours often share their worst replacement
        return adv.masked_fill(~(best & feasible), float("inf")).argmin(1)


MIX = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB)  # odd constants, as in common hash functions
BITS = 33


@dataclass(frozen=True)
class TransferableUe(Method):
    """Take the candidate that comes first in the order of the next venue."""

    label = "Transferable UE"
    summary = "Take the candidate that comes first in an order of all venues that the next venue determines."

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        rank = _mixed(_mixed(position.target)[:, None] + position.candidates)  # (B, K)
        return rank.masked_fill(~position.feasible, 2**62).argmin(1)


def _mixed(number: Tensor) -> Tensor:
    """Scramble whole numbers into [0, 2^62), by products that wrap around and shifts."""
    for factor in MIX:
        number = (number * factor) & (2**62 - 1)
        number = number ^ (number >> BITS)
    return number
