"""robust-ue: error-minimising examples that an adversary cannot undo by perturbing them (Fu et al., 2022).

The original minimises the largest loss in a ball around the perturbed image, usually of half the publisher's radius.
Here, an adversary may replace the substitute by any of its nearest candidates in the surrogate's embedding, by default
the nearest half. The surrogate itself is fitted as for all methods, without adversarial training.
"""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import Method, Position, Tensor
from ghostpoi.settings import setting


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
