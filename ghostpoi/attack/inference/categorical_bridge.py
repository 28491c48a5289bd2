"""The paired categorical bridge in closed form: a chain of uniform jumps between a clean and a released POI.

One step is Q = (1 - b) I + b 11'/P, so n steps are Q^n = a_n I + (1 - a_n) 11'/P with a_n = (1 - b)^n. The bridge needs
one kind of distribution only: where a chain stands that left x_0 i steps ago and reaches y in j steps, with weight
Q^i[x_0, x] Q^j[x, y]. Its state has i = n, j = N - n and y the released POI; its posterior has i = n - 1, j = 1 and y
the present state. POIs are 1..P. All results have the floating type of the tensor of steps.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

TINY = 1e-30
NEVER = -1e9  # a logit that stays finite


class Support(NamedTuple):
    """A predicted distribution of x_0 that is 0 except at some POIs."""

    poi: Tensor | None  # (M, K) POIs, padded with 0; None: all of 1..P, and K = P
    log_belief: Tensor  # (M, K), very small at padding

    def of(self, poi: Tensor) -> Tensor:
        """Return the probability of one POI per row, (M,)."""
        if self.poi is None:
            return self.log_belief.gather(1, poi[:, None] - 1).exp().squeeze(1)
        return torch.where(self.poi == poi[:, None], self.log_belief.exp(), 0).sum(1)

    def guess(self, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the likeliest POI of each row, its probability, and one drawn with a number in [0, 1), (M,) each."""
        sure, best = self.log_belief.max(1)
        below = self.log_belief.exp().cumsum(1)
        # A sum of rounded numbers may end short of 1, and the last column may be padding: the uniform number is scaled.
        drawn = (below <= uniform[:, None] * below[:, -1:]).sum(1).clamp(max=below.shape[1] - 1)
        column = torch.stack([best, drawn], 1)
        likely, other = (column + 1 if self.poi is None else self.poi.gather(1, column)).unbind(1)
        return likely, sure.exp(), other


@dataclass(frozen=True)
class Chain:
    """N `steps` over `pois` POIs, each with probability `jump` (b) a jump to any POI, itself included."""

    pois: int
    steps: int
    jump: float

    def stay(self, n: Tensor) -> Tensor:
        """Return a_n, the probability that n steps had no jump."""
        return (1 - self.jump) ** n

    def between(self, start: Tensor, end: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mass at the start, at the end and spread evenly, i steps after `start` and j before `end`."""
        a, b = self.stay(i), self.stay(j)
        # (a [x = start] + (1-a)/P) (b [x = end] + (1-b)/P), times P, divided by the sum over x
        both = torch.where(start == end, self.pois * a * b, 0)
        at_start, at_end, spread = a * (1 - b) + both, b * (1 - a), (1 - a) * (1 - b)
        total = at_start + at_end + spread
        return at_start / total, at_end / total, spread / total

    def draw(self, start: Tensor, end: Tensor, i: Tensor, j: Tensor, uniform: Tensor) -> Tensor:
        """Draw a POI from `between` with two uniform numbers in [0, 1) per row, (2, M) -> (M,)."""
        at_start, at_end, _ = self.between(start, end, i, j)
        anywhere = (uniform[1] * self.pois).long().clamp(max=self.pois - 1) + 1
        arrived = torch.where(uniform[0] < at_start + at_end, end, anywhere)
        return torch.where(uniform[0] < at_start, start, arrived)

    def informed(self, logits: Tensor, poi: Tensor | None, now: Tensor, end: Tensor, n: Tensor) -> Support:
        """Update logits (M, K) of x_0, given everything else, by the state `now` after n steps.

        Bayes: P(x_n | x_0, x_N) is Q^n[x_0, x_n] Q^(N-n)[x_n, x_N] / Q^N[x_0, x_N], and the middle factor is the same
        for every x_0. So the network need not learn what the chain itself says about x_0, and n = N adds nothing.
        """
        here, there = self._gain(n)[:, None], -self._gain(torch.full_like(n, self.steps))[:, None]
        if poi is None:
            told = logits.scatter_add(1, now[:, None] - 1, here).scatter_add(1, end[:, None] - 1, there)
        else:
            told = logits + torch.where(poi == now[:, None], here, 0) + torch.where(poi == end[:, None], there, 0)
            told = told.masked_fill(poi == 0, NEVER)
        return Support(poi, told.log_softmax(1))

    def _gain(self, n: Tensor) -> Tensor:
        a = self.stay(n)
        return torch.log1p(self.pois * a / (1 - a))  # log Q^n[x, x] - log Q^n[x, y]

    def divergence(self, clean: Tensor, now: Tensor, n: Tensor, predicted: Support) -> Tensor:
        """Return KL(posterior with the true x_0 || posterior mixed over the predicted x_0) of x_(n-1), (M,).

        Both hold the factor Q[x_(n-1), x_n]. What is left is (a [x = x_0] + z) / Q^n[x_0, x_n] for the truth and
        a r(x) / Q^n[x, x_n] + z s for the mixture, where a = a_(n-1), z = (1-a)/P, r is the prediction and s the sum of
        r / Q^n. The truth is the same for all POIs but two, so one sum over the support is enough.
        """
        a, stayed = self.stay(n - 1), self.stay(n)
        z, apart = (1 - a) / self.pois, (1 - stayed) / self.pois  # apart: Q^n[x, y] where x is not y
        home = stayed + apart
        r_now = predicted.of(now)
        q_clean = torch.where(clean == now, home, apart)
        rest = z * (r_now / home + (1 - r_now).clamp(min=0) / apart)  # z s: the mixture where r is 0
        at_clean = _log(a * predicted.of(clean) / q_clean + rest)
        at_now = _log(a * r_now / home + rest)
        # The support as if it did not hold x_n; the sum below corrects that.
        inside = _log((a / apart)[:, None] * predicted.log_belief.exp() + rest[:, None])  # (M, K)
        size: Tensor | int = self.pois
        if predicted.poi is not None:
            size = (predicted.poi > 0).sum(1)
            inside = torch.where(predicted.poi > 0, inside, 0)
        everywhere = inside.sum(1) + at_now - _log(a * r_now / apart + rest) + (self.pois - size) * _log(rest)

        start, end, spread = self.between(clean, now, n - 1, torch.ones_like(n))
        other = spread / self.pois
        on_clean = start + other + torch.where(clean == now, end, 0)
        true = on_clean * _log((a + z) / q_clean) + (1 - on_clean) * _log(z / q_clean)
        return true - start * at_clean - end * at_now - other * everywhere


def _log(x: Tensor) -> Tensor:
    """Return a logarithm that stays finite at 0."""
    return x.clamp(min=TINY).log()
