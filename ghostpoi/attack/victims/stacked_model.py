"""M models of one shape as one, every weight (M, ...), because a single small model leaves a large GPU idle."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.attack.victims.base import STAGE, Exam, Job
from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import spans
from ghostpoi.models.cuda_graphs import fill_rows, row_width
from ghostpoi.models.devices import precise
from ghostpoi.models.training_windows import Windows
from ghostpoi.models.transformer import CausalTransformer, Pad, Unpad, row_mask
from ghostpoi.settings import ModelSettings, Precision

TOKEN, USER, TIME = range(3)  # the parts of inputs, (3, M, N)
LOGITS = 1 << 21  # logits of all victims held at once on a CPU
LOGITS_CUDA = 1 << 28  # 1 GiB in float32, and as much again for their gradient
ALIGN = 16  # output matrices are padded to a multiple of rows: products over an odd vocabulary are slow on CUDA


@dataclass(frozen=True)
class PackedRows:
    """One batch of windows, the same for every victim: N tokens in B rows of t places, with little padding."""

    running: list[int]  # the number of windows that reach each position, on the host
    owner: Tensor  # (B, t) the window at each place, -1 at an empty one
    index: Tensor  # (N,) the position of each token in the pairs
    position: Tensor  # (N,) its position in the window
    place: Tensor  # (N,) its place in the rows
    token_at: Tensor  # (B*t,) the token at each place; any token at an empty one
    step_order: Tensor  # (N,) the tokens by position, and among equal positions from the longest window to the shortest
    step_rank: Tensor  # (N,) the rank of each token in that order

    def attend(self, qkv: Tensor, heads: int, mask: Tensor) -> Tensor:
        """Attend causally inside every window, (M, N, 3d) -> (M, N, d)."""
        victims, (rows, width) = len(qkv), self.owner.shape
        padded = Pad.apply(qkv, self.token_at, self.place)  # type: ignore[no-untyped-call]
        q, k, v = padded.view(victims * rows, width, 3, heads, -1).permute(2, 0, 3, 1, 4)  # each (M*B, H, t, dh)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        found = found.transpose(1, 2).reshape(victims, rows * width, -1)
        return Unpad.apply(found, self.token_at, self.place)  # type: ignore[no-untyped-call]

    def mask(self, victims: int, dtype: torch.dtype) -> Tensor:
        """Return what keeps windows apart and hides later places, for every victim, (M*B, 1, t, t)."""
        return row_mask(self.owner, dtype).repeat(victims, 1, 1)[:, None]


def pack(pairs: Windows, batches: Sequence[Longs], device: torch.device) -> list[PackedRows]:
    """Lay out batches of windows. All travel to the device at once, so that no training step waits for one."""
    parts: list[Longs] = []  # seven per batch
    sizes: list[tuple[int, list[int]]] = []  # width and running
    start = pairs.start
    for windows in batches:
        length = pairs.length[windows]
        width = row_width(length)
        first, rows = fill_rows(length, width)
        position, place = spans(np.zeros_like(length), length), spans(first, length)
        token_at, owner = np.zeros(rows * width, np.int64), np.full(rows * width, -1)
        token_at[place] = np.arange(len(place))
        owner[place] = np.repeat(np.arange(len(length)), length)
        index = spans(start[windows], length)
        parts += [owner, index, position, place, token_at, *_step_order(length, position)]
        sizes.append((width, np.bincount(position).tolist()))
    if not parts:
        return []
    joined = torch.from_numpy(np.concatenate(parts))
    if device.type == "cuda":
        joined = joined.pin_memory().to(device, non_blocking=True)
    piece = torch.split(joined, [len(part) for part in parts])
    return [
        PackedRows(running, piece[7 * i].view(-1, width), *piece[7 * i + 1 : 7 * i + 7])
        for i, (width, running) in enumerate(sizes)
    ]


def _step_order(length: Longs, position: Longs) -> tuple[Longs, Longs]:
    by_length = np.argsort(np.argsort(-length, kind="stable"))
    order = np.argsort(position * len(length) + np.repeat(by_length, length), kind="stable")
    return order, np.argsort(order)


class StackedModel:
    """Causal Transformers for jobs that share a seed. One that diverges to NaN leaves the others unchanged."""

    memory_factor = 1  # the memory that a victim needs at most, relative to a plain Transformer

    def __init__(self, jobs: Sequence[Job], exam: Exam, settings: ModelSettings, precision: Precision) -> None:
        self.rows, self.device, self.settings, self.precision = exam.rows, exam.device, settings, precision
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32  # of matrix products
        self.weights = {
            name: w.detach().to(self.device)[None].repeat(len(jobs), *[1] * w.dim()).requires_grad_()
            for name, w in self.initial(jobs, exam).items()
        }

    def __len__(self) -> int:
        return len(self.weights["embedding"])

    def initial(self, jobs: Sequence[Job], exam: Exam) -> dict[str, Tensor]:
        """Return the weights that each victim starts from, named as in `CausalTransformer`; store other data."""
        seed = jobs[0].seed.torch_seed(*STAGE, "weights")
        return dict(CausalTransformer(self.rows, self.settings, seed).named_parameters())

    @property
    def output(self) -> Tensor:
        """The output matrices, (M, P+1, d)."""
        return self.weights["embedding" if self.settings.tied else "untied"]

    def take(self, victims: Tensor) -> Self:
        """Return a copy of some victims."""
        taken = copy.copy(self)
        taken.weights = {name: w.detach()[victims].requires_grad_() for name, w in self.weights.items()}
        return taken

    def embed(self, inputs: Tensor, rows: PackedRows) -> Tensor:
        """Return what the first block reads, (M, N, d)."""
        position = rows.position.expand(len(self), -1)
        return look_up(self.table(), inputs[TOKEN]) + look_up(self.weights["position"], position)

    def table(self) -> Tensor:
        """Return the embedding of every POI, (M, P+1, d)."""
        return self.weights["embedding"]

    def masks(self, inputs: Tensor, rows: PackedRows) -> list[Tensor]:
        """Return what each layer adds to its attention logits, each (M*B, 1 or H, t, t)."""
        return [rows.mask(len(self), self.dtype)] * self.settings.layers

    def hidden(self, inputs: Tensor, rows: PackedRows, dropout: float = 0.0) -> Tensor:
        """Return the hidden states of a batch, (M, N, d)."""
        s = self.settings
        masks = self.masks(inputs, rows)
        with precise(self.precision, self.device):
            x = dropped(self.embed(inputs, rows), dropout)
            for i in range(s.layers):
                block = f"blocks.{i}."
                qkv = self._linear(block + "qkv", self._norm(block + "before_attention", x))
                x = x + dropped(self._linear(block + "merge", rows.attend(qkv, s.heads, masks[i])), dropout)
                wide = F.gelu(self._linear(block + "widen", self._norm(block + "before_feed_forward", x)))
                x = x + dropped(self._linear(block + "narrow", wide), dropout)
            return self._norm("norm", x).float()

    def losses(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean of -log P(target) of each victim, differentiable: (M, N, d), (M, N) -> (M,)."""
        return _MeanLosses.apply(hidden, self.output, target, self.dtype)  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def ranks(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the rank of each target among all POIs, a tie counting against it: (M, N, d), (N,) -> (M, N)."""
        matrix = _padded(self.output, torch.float32)  # whatever the precision: bfloat16 would make ties
        step, found = _tile_rows(matrix), [target.new_empty(len(self), 0)]
        for a in range(0, len(target), step):
            logits = _logits(hidden[:, a : a + step], matrix, self.rows)
            own = logits.gather(2, target[a : a + step].expand(len(self), -1)[:, :, None])
            found.append((logits >= own).sum(2))
        return torch.cat(found, 1)

    @torch.no_grad()
    def probabilities(self, hidden: Tensor) -> Iterator[Tensor]:
        """Yield the probabilities of all POIs, some steps at a time, (M, N, d) -> (M, n, P+1); POI 0 has none."""
        matrix = _padded(self.output, torch.float32)
        step = _tile_rows(matrix)
        for a in range(0, hidden.shape[1], step):
            yield torch.softmax(_logits(hidden[:, a : a + step], matrix, self.rows), 2)[:, :, : self.rows]

    def _linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return torch.addcmul(bias[:, None], F.layer_norm(x, x.shape[2:]), weight[:, None])


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """Return rows of every victim's own table: (M, rows, d), (M, n) -> (M, n, d)."""
    first = torch.arange(len(table), device=table.device)[:, None] * table.shape[1]
    return F.embedding(index + first, table.view(-1, table.shape[2]))


def dropped(x: Tensor, p: float) -> Tensor:
    """Apply dropout with one mask for all victims, the one that a model alone would draw."""
    return x * F.dropout(torch.ones(x.shape[1:], device=x.device), p) if p else x


class _MeanLosses(torch.autograd.Function):
    """The mean of -log P(target), (M,). Losses and both gradients come from one pass over tiles of logits."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, output: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
        rows, n = output.shape[1], hidden.shape[1]
        matrix, h = _padded(output, dtype), hidden.to(dtype)
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


def _padded(output: Tensor, dtype: torch.dtype) -> Tensor:
    """Pad output matrices (M, P+1, d) with rows of zeros to a multiple of ALIGN."""
    return F.pad(output.detach().to(dtype), (0, 0, 0, -output.shape[1] % ALIGN))


def _logits(hidden: Tensor, matrix: Tensor, rows: int) -> Tensor:
    """Return logits, (M, n, d) -> (M, n, rows of the matrix); row 0 and the padded rows are never an answer."""
    logits = torch.bmm(hidden, matrix.transpose(1, 2))
    logits[:, :, 0] = -torch.inf
    logits[:, :, rows:] = -torch.inf
    return logits


def _tile_rows(matrix: Tensor) -> int:
    logits_at_once = LOGITS if matrix.device.type == "cpu" else LOGITS_CUDA
    return max(1, logits_at_once // (matrix.shape[0] * matrix.shape[1]))
