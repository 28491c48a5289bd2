"""Draws from log-weights, one uniform number each: a draw depends on its position, not on batches or threads."""

import math

import torch
from torch import Tensor

BISECTIONS = 40


def sample(log_weight: Tensor, uniform: Tensor) -> Tensor:
    """Draw one column of each row with probability proportional to exp(log_weight); -inf is never drawn."""
    weight = torch.softmax(log_weight.double(), 1).nan_to_num(0.0)  # (B, K)
    cumulative = weight.cumsum(1)
    column = (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(1)
    # Rounding may leave the last sum a hair under the draw: then the last column with weight takes it.
    last = (weight > 0).long().mul(torch.arange(weight.shape[1], device=weight.device)).amax(1)
    return torch.minimum(column, last)


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
