"""Probabilities over the P real POIs from hidden states. Row 0 of the output matrix (padding, start token) has none.

Logits are computed in tiles, so that a tile stays in the CPU's cache between its product, its exponential and its sum.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.models.devices import product_dtype

# Tuned on 2 cores with 1 MB of L2 each and 32 MB of L3.
TILE_ROWS = 2048
TILE_LOGITS = 1 << 20  # rows x columns of a tile that is only summed
LOSS_LOGITS = 1 << 21  # of a tile that is differentiated, which needs whole rows
CUDA_LOGITS = 1 << 28
SAFE_LOGIT = 75.0  # up to this |logit|, exp and its sum over a vocabulary stay within float32


class Readout:
    """The output matrix as of the last `refresh`, ready to turn hidden states into probabilities."""

    def __init__(self, output: Tensor, norm: nn.LayerNorm) -> None:
        self.matrix, self.norm = output.detach(), norm  # (P+1, d); the LayerNorm that makes the hidden states
        shape = (self.matrix.shape[1], len(self.matrix) - 1)
        self.columns = torch.empty(shape, dtype=product_dtype(output.device), device=output.device)  # (d, P)
        self.refresh()

    def refresh(self) -> None:
        """Copy the output matrix as it is now, in place."""
        self.columns.copy_(self.matrix[1:].t())
        self.bound = logit_bound(self.matrix, self.norm)

    def log_prob_of(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return log P(target), (M, d), (M,) -> (M,)."""
        return self.logit_of(hidden, target) - self.log_partition(hidden)

    def logit_of(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the logit of one POI for each hidden state, (M, d), (M,) -> (M,)."""
        return (hidden * F.embedding(target, self.matrix)).sum(1)

    @torch.no_grad()
    def log_probs_of(self, hidden: Tensor, column: Tensor) -> Tensor:
        """Return log P of K POIs for each hidden state, (M, d), (M, K) -> (M, K), in few calls. A column is POI - 1."""
        if self.columns.dtype != torch.float32:  # such logits are exact enough for their sum alone
            logits = (hidden[:, None] * F.embedding(column + 1, self.matrix)).sum(2)
            return logits - self.log_partition(hidden)[:, None]
        rows = max(1, CUDA_LOGITS // self.columns.shape[1])
        parts = zip(torch.split(hidden, rows), torch.split(column, rows), strict=True)
        found = [F.log_softmax(torch.mm(part, self.columns), 1).gather(1, some) for part, some in parts]
        return found[0] if len(found) == 1 else torch.cat(found)

    def losses(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return -log P(target), (M, d), (M,) -> (M,), differentiable with respect to the hidden states."""
        return Losses.apply(hidden, self.matrix, target, self.bound)  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def log_partition(self, hidden: Tensor) -> Tensor:
        """Return the log of the sum of exp(logit) over all POIs, (M, d) -> (M,), tile by tile."""
        hidden = hidden.to(self.columns.dtype)
        out = torch.empty(len(hidden), device=hidden.device)
        if self.bound is None:
            rows = max(1, CUDA_LOGITS // self.columns.shape[1])
            for a in range(0, len(hidden), rows):
                logits = torch.mm(hidden[a : a + rows], self.columns).float()
                # Any column gives the sum. This takes one kernel where logsumexp takes eight.
                torch.sub(logits[:, 0], F.log_softmax(logits, 1)[:, 0], out=out[a : a + rows])
            return out
        rows = _even(len(hidden), TILE_ROWS)
        tile = torch.empty(rows * _even(self.columns.shape[1], TILE_LOGITS // rows, 16), dtype=hidden.dtype)
        for a in range(0, len(hidden), rows):
            out[a : a + rows] = self._log_partition_of_rows(hidden[a : a + rows], tile, self.bound < SAFE_LOGIT)
        return out

    def _log_partition_of_rows(self, hidden: Tensor, tile: Tensor, safe: bool) -> Tensor:
        rows, pois = len(hidden), self.columns.shape[1]
        width = tile.numel() // rows
        total, top = torch.zeros(rows), torch.zeros(rows)
        for c in range(0, pois, width):
            columns = self.columns[:, c : c + width]
            logits = torch.mm(hidden, columns, out=tile[: rows * columns.shape[1]].view(rows, -1)).float()
            if not safe:
                higher = logits.amax(1) if c == 0 else torch.maximum(top, logits.amax(1))
                total *= torch.exp(top - higher)
                top = higher
                logits.sub_(top[:, None])
            total += logits.exp_().sum(1)
        return total.log_() + top


class Losses(torch.autograd.Function):
    """-log P(target) over the POIs, (M,). One pass over tiles of logits gives the losses and both gradients.

    The gradient of the output matrix is summed on the way. It is correct only if all rows weigh the same.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, output: Tensor, target: Tensor, bound: float | None) -> Tensor:
        dtype = product_dtype(hidden.device)
        h, matrix = hidden.to(dtype), output[1:].to(dtype)
        target = target - 1
        logits_at_once = LOSS_LOGITS if hidden.device.type == "cpu" else CUDA_LOGITS
        rows = max(1, logits_at_once // len(matrix))
        columns = matrix.t().contiguous()
        losses = torch.empty(len(h), device=h.device)
        d_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        d_output = torch.zeros_like(output) if ctx.needs_input_grad[1] else None
        tile = torch.empty(min(rows, len(h)), len(matrix), device=h.device, dtype=dtype)
        for a in range(0, len(h), rows):
            part, goal = h[a : a + rows], target[a : a + rows, None]
            logits = torch.mm(part, columns, out=tile[: len(part)]).float()
            right = logits.gather(1, goal).squeeze(1)
            if bound is None or bound >= SAFE_LOGIT:
                top = logits.amax(1, keepdim=True)
                logits.sub_(top)
                right = right - top.squeeze(1)
            total = logits.exp_().sum(1)
            torch.sub(total.log(), right, out=losses[a : a + rows])
            # A row's gradient is exp(logits) / total, minus one at the target. Dividing the products is cheaper.
            logits.scatter_add_(1, goal, -total[:, None])
            error = logits.to(dtype)
            if d_hidden is not None:
                torch.div(torch.mm(error, matrix), total[:, None], out=d_hidden[a : a + rows])
            if d_output is not None:
                scaled = (part / total[:, None]).to(dtype)
                if dtype == torch.float32:
                    d_output[1:].addmm_(error.t(), scaled)
                else:
                    d_output[1:] += torch.mm(error.t(), scaled)
        ctx.save_for_backward(d_hidden, d_output)
        return losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        d_hidden, d_output = ctx.saved_tensors
        hidden_grad = None if d_hidden is None else d_hidden * grad[:, None]
        return hidden_grad, None if d_output is None else d_output * grad[:1], None, None


@torch.no_grad()
def logit_bound(output: Tensor, norm: nn.LayerNorm) -> float | None:
    """Return a bound on every |logit| of hidden states from `norm`. None on CUDA, where the host would have to wait."""
    if output.device.type != "cpu":
        return None
    stretched = torch.linalg.vector_norm(output * norm.weight, dim=1)
    shift = (output @ norm.bias).abs()
    return float((stretched * math.sqrt(output.shape[1]) + shift).max())


def _even(n: int, most: int, multiple: int = 1) -> int:
    """Return the size of about n / most equal pieces, rounded up, so that no small rest is left."""
    pieces = max(1, round(n / max(1, most)))
    return max(1, -(-n // (pieces * multiple)) * multiple)
