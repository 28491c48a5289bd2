"""The causal Transformer that serves as victim, surrogate, trajectory LM and denoiser.

Training reads packed sessions (`hidden`). Scoring adds one position at a time to cached keys and values (`prefix`).
Both turn hidden states into probabilities with `readout`. Inside `torch.autocast`, matrix products run in its type;
weights and sums stay float32.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.data.checkins import Longs
from ghostpoi.models.output_layer import Losses, Readout, logit_bound
from ghostpoi.settings import ModelSettings

MASKED = -1e9  # finite: a kernel works on tiles of keys, and a whole tile may be masked for a query


class Block(nn.Module):
    """One pre-LayerNorm block. The caller computes attention, which differs between packed and cached sessions."""

    def __init__(self, s: ModelSettings) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(s.dim)
        self.qkv = nn.Linear(s.dim, 3 * s.dim)
        self.merge = nn.Linear(s.dim, s.dim)
        self.before_feed_forward = nn.LayerNorm(s.dim)
        self.widen = nn.Linear(s.dim, s.feed_forward)
        self.narrow = nn.Linear(s.feed_forward, s.dim)

    def project(self, x: Tensor) -> Tensor:
        return self.qkv(self.before_attention(x))  # (M, 3d)

    def finish(self, x: Tensor, attended: Tensor, dropout: float) -> Tensor:
        """Add both residual branches, given the result of attention."""
        x = x + _dropout(self.merge(attended), dropout)
        return x + _dropout(self.narrow(F.gelu(self.widen(self.before_feed_forward(x)))), dropout)


class CausalTransformer(nn.Module):
    """A causal Transformer over POIs; `rows` is P+1. Its initial weights depend only on the seed."""

    def __init__(self, rows: int, settings: ModelSettings, seed: int) -> None:
        super().__init__()
        s = self.settings = settings
        self.rows = rows
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed CUDA's generators
            self.embedding = nn.Parameter(torch.randn(rows, s.dim) * s.start)
            self.position = nn.Parameter(torch.randn(s.max_positions, s.dim) * s.start)
            self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
            for name, weight in self.blocks.named_parameters():
                if name.endswith("bias"):
                    nn.init.zeros_(weight)
                elif weight.dim() == 2:  # the last layers of residual branches start small, as in GPT-2
                    last = name.endswith(("merge.weight", "narrow.weight"))
                    nn.init.normal_(weight, std=0.02 / math.sqrt(2 * s.layers) if last else 0.02)
            self.norm = nn.LayerNorm(s.dim)
            self.untied = None if s.tied else nn.Parameter(torch.randn(rows, s.dim) * 0.02)

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @property
    def output(self) -> nn.Parameter:
        """The output matrix, (P+1, d)."""
        return self.embedding if self.untied is None else self.untied

    def hidden(self, tokens: Tensor, lengths: Longs) -> Tensor:
        """Return hidden states (N, d) of packed sessions: tokens (N,), lengths (S,) on the host."""
        return self.states(tokens, Packing(lengths, self.settings.heads, self.device))

    def states(self, tokens: Tensor, placement: "Packing | RowPacking") -> Tensor:
        """Return hidden states (..., d) of tokens (...) with this placement."""
        return self.through(F.embedding(tokens, self.embedding), placement)

    def through(self, embedded: Tensor, placement: "Packing | RowPacking") -> Tensor:
        """Return hidden states (..., d) of embedded inputs (..., d) with this placement."""
        p = self.settings.dropout if self.training else 0.0
        x = _dropout(embedded + F.embedding(placement.position, self.position), p)
        for block in self.blocks:
            x = block.finish(x, placement.attend(block.project(x)), p)  # type: ignore[operator]
        return self.norm(x)  # (..., d)

    def readout(self) -> Readout:
        """Return a readout that holds a copy of the output matrix as it is now."""
        return Readout(self.output, self.norm)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return the whole distribution, (M, d) -> (M, P+1), with -inf in column 0. Meant for few rows."""
        logits = F.linear(hidden, self.output).float()
        logits[:, 0] = -torch.inf
        return F.log_softmax(logits, -1)

    def losses(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return -log P(target), (M, d), (M,) -> (M,). To train the output matrix, all rows must weigh the same."""
        bound = logit_bound(self.output, self.norm)
        return Losses.apply(hidden, self.output, target, bound)  # type: ignore[no-untyped-call]


class Packing:
    """The placement of packed sessions, which stand end to end. They attend in groups of similar length.

    Groups are padded on the right, so the causal mask alone hides the padding from real tokens.
    """

    def __init__(self, lengths: Longs, heads: int, device: torch.device) -> None:
        lengths = np.asarray(lengths, np.int64)
        start = np.cumsum(lengths) - lengths
        self.heads = heads
        # A group spans a factor of two in length. CUDA gets a single group: few calls matter more than little padding.
        bucket = np.zeros(len(lengths)) if device.type == "cuda" else np.ceil(np.log2(np.maximum(lengths, 1)))
        self.shapes: list[tuple[int, int]] = []
        there, back, offset = [], np.empty(int(lengths.sum()), np.int64), 0
        for b in np.unique(bucket):
            members = np.flatnonzero(bucket == b)
            longest = int(lengths[members].max())
            step = np.arange(longest)
            index = start[members, None] + step  # (b, t)
            real = step < lengths[members, None]
            back[index[real]] = offset + np.flatnonzero(real)
            there.append(np.where(real, index, index[:, :1]).ravel())
            self.shapes.append((len(members), longest))
            offset += index.size
        position = np.arange(len(back)) - np.repeat(start, lengths)
        self.position, self.back = (torch.from_numpy(a).to(device, non_blocking=True) for a in (position, back))
        # `there`: the token at every padded place. `back`: the place of every token.
        self.there = torch.from_numpy(np.concatenate(there) if there else back).to(device, non_blocking=True)

    def attend(self, qkv: Tensor) -> Tensor:
        padded = Pad.apply(qkv, self.there, self.back)  # type: ignore[no-untyped-call]
        out, offset = [], 0
        for sessions, longest in self.shapes:
            part = slice(offset, offset := offset + sessions * longest)
            q, k, v = padded[part].view(sessions, longest, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # (b, H, t, dh)
            attended = self.attention(q, k, v, part)
            out.append(attended.transpose(1, 2).reshape(sessions * longest, -1))
        padded = out[0] if len(out) == 1 else torch.cat(out)
        return Unpad.apply(padded, self.there, self.back)  # type: ignore[no-untyped-call]

    def attention(self, q: Tensor, k: Tensor, v: Tensor, part: slice) -> Tensor:
        """Attend within one group, which holds these padded places; each (b, H, t, dh)."""
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class RowPacking:
    """The placement of one batch whose windows are packed into rows of equal width."""

    def __init__(self, batch: Tensor, heads: int, dtype: torch.dtype) -> None:
        self.token, self.target, self.position, owner = batch.unbind()  # (rows, width) each; empty places: target 0
        self.heads, self.mask = heads, row_mask(owner, dtype)

    def attend(self, qkv: Tensor) -> Tensor:
        """Causal attention inside every window, (rows, width, 3d) -> (rows, width, d)."""
        q, k, v = qkv.view(*qkv.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # each (rows, H, width, dh)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:, None])
        return found.transpose(1, 2).flatten(2)


def row_mask(owner: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 0 where a place may attend, MASKED elsewhere: owners (rows, width) -> (rows, width, width)."""
    # All empty places share an owner, so every place can attend to at least one place.
    same = owner[:, :, None] == owner[:, None, :]
    return torch.zeros(same.shape, dtype=dtype, device=same.device).masked_fill_(~same.tril(), MASKED)


class Pad(torch.autograd.Function):
    """Copy rows (..., N, d) to padded places. Each row has one real place, so its gradient is looked up, not summed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.back = back
        return x.index_select(-2, there)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad.index_select(-2, ctx.back), None, None


class Unpad(torch.autograd.Function):
    """Copy padded places back to rows (..., N, d). Padding gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.back, ctx.places = back, len(there)
        return x.index_select(-2, back)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        padded = grad.new_zeros(*grad.shape[:-2], ctx.places, grad.shape[-1])
        return padded.index_copy_(-2, ctx.back, grad), None, None


def _dropout(x: Tensor, p: float) -> Tensor:
    return F.dropout(x, p) if p else x
