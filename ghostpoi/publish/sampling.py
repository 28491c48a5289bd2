"""Draws from log-weights. A draw takes one given uniform number, so batches and threads do not change it."""

import math

import torch
from torch import Tensor

BISECTIONS = 40


def sample(log_weight: Tensor, uniform: Tensor) -> Tensor:
    """Draw one column of each row with probability proportional to exp(log_weight); -inf is never drawn."""
    weight = torch.softmax(log_weight.double(), 1).nan_to_num(0.0)  # (B, K)
    cumulative = weight.cumsum(1)
    column = (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(1)
    # Rounding may leave the last sum slightly below the draw. The draw then gets the last column with weight.
    last = (weight > 0).long().mul(torch.arange(weight.shape[1], device=weight.device)).amax(1)
    return torch.minimum(column, last)


def with_entropy_floor(log_weight: Tensor, bits: float) -> Tensor:
    """Mix in the smallest uniform share that lifts the entropy to min(bits, log2 |C|). Return log-probabilities."""
    real = log_weight > -torch.inf
    p = torch.softmax(log_weight, 1).nan_to_num(0.0)
    size = real.sum(1, keepdim=True).clamp(min=1)
    uniform = real.to(p.dtype) / size
    floor = torch.log2(size.double()).clamp(max=bits)
    low, high = torch.zeros_like(floor), torch.ones_like(floor)  # entropy increases with the uniform share
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = _entropy(torch.lerp(p, uniform, middle)) >= floor
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    share = high.masked_fill(_entropy(p) >= floor, 0.0)
    return torch.lerp(p, uniform, share).log()


def _entropy(p: Tensor) -> Tensor:
    nats: Tensor = torch.special.entr(p)
    return nats.sum(1, keepdim=True) / math.log(2)  # (B, 1) bits
