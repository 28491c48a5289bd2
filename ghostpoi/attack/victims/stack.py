"""M causal Transformers of one shape as one: every weight of `CausalTransformer` stacked, (M, ...).

A model of this size leaves a big card idle; M of them share each kernel call. Nothing passes between victims: one that
diverges to NaN leaves the others as they are.
"""

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.attack.victims.lines import Lines
from ghostpoi.attack.victims.steps import Seen
from ghostpoi.models.devices import precise
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import ModelSettings, Precision

LOGITS = 1 << 21  # logits of all victims held at once on a CPU
LOGITS_CUDA = 1 << 28  # 1 GiB in float32, and as much again for their gradient
ALIGN = 16  # the output matrices' rows are filled up to a multiple: products over an odd vocabulary are slow on CUDA


class Stack:
    """The weights, by the names that `CausalTransformer` gives them, and how they turn sessions into losses.

    Other architectures put `embed`, `masks` or all of `hidden` in another way, and keep the rest.
    """

    bulk = 1  # what a victim takes of memory at most; a plain Transformer's is 1

    def __init__(self, weights: Mapping[str, Tensor], rows: int, settings: ModelSettings, precision: Precision) -> None:
        self.weights = {name: w.detach().requires_grad_() for name, w in weights.items()}
        self.rows, self.settings, self.precision = rows, settings, precision
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32  # of matrix products

    @staticmethod
    def of(model: CausalTransformer, victims: int, precision: Precision = "float32") -> "Stack":
        """All victims as this model is now."""
        return Stack(repeated(dict(model.named_parameters()), victims), model.rows, model.settings, precision)

    def __len__(self) -> int:
        return len(self.weights["embedding"])

    @property
    def device(self) -> torch.device:
        return self.weights["embedding"].device

    @property
    def output(self) -> Tensor:
        """The output matrices, (M, P+1, d)."""
        return self.weights["embedding" if self.settings.tied else "untied"]

    def take(self, victims: Tensor) -> Self:
        """A copy of these victims."""
        return self._with({name: w.detach()[victims] for name, w in self.weights.items()}, victims)

    def embed(self, seen: Seen, lines: Lines) -> Tensor:
        """What the first block reads, (M, N, d)."""
        position = lines.position.expand(len(self), -1)
        return look_up(self.weights["embedding"], seen.token) + look_up(self.weights["position"], position)

    def masks(self, seen: Seen, lines: Lines) -> list[Tensor]:
        """What each layer adds to its attention logits, each (M*B, 1 or H, t, t)."""
        return [lines.mask(len(self), self.dtype)] * self.settings.layers

    def hidden(self, seen: Seen, lines: Lines, dropout: float = 0.0) -> Tensor:
        """Hidden states of tokens (M, N) that stand in these lines, (M, N, d)."""
        s = self.settings
        masks = self.masks(seen, lines)
        with precise(self.precision, self.device):
            x = dropped(self.embed(seen, lines), dropout)
            for i in range(s.layers):
                block = f"blocks.{i}."
                qkv = self._linear(block + "qkv", self._norm(block + "before_attention", x))
                x = x + dropped(self._linear(block + "merge", lines.attend(qkv, s.heads, masks[i])), dropout)
                wide = F.gelu(self._linear(block + "widen", self._norm(block + "before_feed_forward", x)))
                x = x + dropped(self._linear(block + "narrow", wide), dropout)
            return self._norm("norm", x).float()

    def losses(self, hidden: Tensor, target: Tensor) -> Tensor:
        """The mean of -log P(target) of each victim, differentiable: (M, N, d), (M, N) -> (M,)."""
        losses = _MeanLosses.apply(hidden, self.output, target, self.dtype)  # type: ignore[no-untyped-call]
        return losses  # type: ignore[no-any-return]

    @torch.no_grad()
    def ranks(self, hidden: Tensor, target: Tensor) -> Tensor:
        """The rank of each target among all POIs: (M, N, d), (N,) -> (M, N).

        A tie counts against the target, so logits are float32 whatever the precision: bfloat16 would make ties.
        """
        matrix = _filled(self.output, torch.float32)
        step, found = _tile_rows(matrix), [target.new_empty(len(self), 0)]
        for a in range(0, len(target), step):
            logits = _logits(hidden[:, a : a + step], matrix, self.rows)
            own = logits.gather(2, target[a : a + step].expand(len(self), -1)[:, :, None])
            found.append((logits >= own).sum(2))
        return torch.cat(found, 1)

    def _with(self, weights: Mapping[str, Tensor], victims: Tensor) -> Self:
        """The same with the weights of these victims."""
        return type(self)(weights, self.rows, self.settings, self.precision)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return torch.addcmul(bias[:, None], F.layer_norm(x, x.shape[2:]), weight[:, None])


def repeated(weights: Mapping[str, Tensor], victims: int) -> dict[str, Tensor]:
    """The same weights for all victims, each (M, ...)."""
    return {name: w.detach()[None].repeat(victims, *[1] * w.dim()) for name, w in weights.items()}


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """Rows of every victim's own table: (M, rows, d), (M, n) -> (M, n, d)."""
    first = torch.arange(len(table), device=table.device)[:, None] * table.shape[1]
    return F.embedding(index + first, table.view(-1, table.shape[2]))


class _MeanLosses(torch.autograd.Function):
    """Mean of -log P(target) over the POIs, (M,). Losses and both gradients come from one pass over tiles of logits."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, output: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
        rows, n = output.shape[1], hidden.shape[1]
        matrix, h = _filled(output, dtype), hidden.to(dtype)
        d_hidden, d_matrix = torch.empty_like(hidden), torch.zeros_like(matrix, dtype=torch.float32)
        total = torch.zeros(len(h), device=h.device)
        step = _tile_rows(matrix)
        for a in range(0, n, step):
            part, goal = h[:, a : a + step], target[:, a : a + step, None]
            error = torch.softmax(_logits(part, matrix, rows), 2)
            right = error.gather(2, goal)
            total -= right.float().clamp_min(torch.finfo(torch.float32).tiny).log_().sum((1, 2))
            error.scatter_(2, goal, right - 1)  # now the gradient of the logits
            d_hidden[:, a : a + step] = torch.bmm(error, matrix)
            if dtype == torch.float32:
                d_matrix.baddbmm_(error.transpose(1, 2), part)
            else:
                d_matrix += torch.bmm(error.transpose(1, 2), part)
        ctx.save_for_backward(d_hidden, d_matrix[:, :rows])
        return total / n

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        d_hidden, d_output = ctx.saved_tensors
        share = (grad / d_hidden.shape[1])[:, None, None]
        return d_hidden * share, d_output * share, None, None


def _filled(output: Tensor, dtype: torch.dtype) -> Tensor:
    """Output matrices (M, P+1, d) with rows of zeros up to a multiple of ALIGN."""
    return F.pad(output.detach().to(dtype), (0, 0, 0, -output.shape[1] % ALIGN))


def _logits(hidden: Tensor, matrix: Tensor, rows: int) -> Tensor:
    """(M, n, d) -> (M, n, rows of the matrix); row 0 is never an answer, nor are those that only fill up."""
    logits = torch.bmm(hidden, matrix.transpose(1, 2))
    logits[:, :, 0] = -torch.inf
    logits[:, :, rows:] = -torch.inf
    return logits


def _tile_rows(matrix: Tensor) -> int:
    logits_at_once = LOGITS if matrix.device.type == "cpu" else LOGITS_CUDA
    return max(1, logits_at_once // (matrix.shape[0] * matrix.shape[1]))


def dropped(x: Tensor, p: float) -> Tensor:
    """Dropout with one mask for all victims, the one that a model alone would draw.

    So a victim does not depend on the company it is trained in, and victims are compared under the same noise.
    """
    return x * F.dropout(torch.ones(x.shape[1:], device=x.device), p) if p else x
