"""The causal Transformer of victim, surrogate, trajectory LM and denoiser: one set of weights, three ways in.

`hidden` reads packed sessions (training), `Prefix` one new position at a time on cached keys and values (scoring), and
`Readout` turns hidden states into probabilities over the P real POIs: row 0 (padding, start token) is never an answer.
Inside `torch.autocast` all matrix products run in its type; weights and sums stay float32.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.data.checkins import Longs
from ghostpoi.settings import ModelSettings

# A tile of logits stays in cache between its product, exp and sum. Tuned on 2 cores with 1 MB of L2 each, 32 MB of L3.
TILE_ROWS = 2048
TILE_LOGITS = 1 << 20  # rows x columns of a tile that is only summed
LOSS_LOGITS = 1 << 21  # of a tile that is differentiated: it needs whole rows
CUDA_LOGITS = 1 << 28
SAFE_REACH = 75.0  # |logit| up to here: exp and the sum of a vocabulary of them stay inside float32


class Block(nn.Module):
    """One pre-LayerNorm block. Attention itself is the caller's: packed and cached sessions attend differently."""

    def __init__(self, s: ModelSettings) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(s.dim)
        self.qkv = nn.Linear(s.dim, 3 * s.dim)
        self.merge = nn.Linear(s.dim, s.dim)
        self.before_feed_forward = nn.LayerNorm(s.dim)
        self.widen = nn.Linear(s.dim, s.feed_forward)
        self.narrow = nn.Linear(s.feed_forward, s.dim)

    def project(self, x: Tensor) -> Tensor:
        return self.qkv(self.before_attention(x))  # type: ignore[no-any-return]  # (M, 3d)

    def finish(self, x: Tensor, attended: Tensor, dropout: float) -> Tensor:
        """Both residual branches, given what attention found."""
        x = x + _dropout(self.merge(attended), dropout)
        return x + _dropout(self.narrow(F.gelu(self.widen(self.before_feed_forward(x)))), dropout)


class CausalTransformer(nn.Module):
    """A causal Transformer over POIs; `rows` is P+1. The seed alone decides the weights it starts from."""

    def __init__(self, rows: int, settings: ModelSettings, seed: int) -> None:
        super().__init__()
        s = self.settings = settings
        self.rows = rows
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach CUDA's generators too
            self.embedding = nn.Parameter(torch.randn(rows, s.dim) * s.start)
            self.position = nn.Parameter(torch.randn(s.max_positions, s.dim) * s.start)
            self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
            for name, weight in self.blocks.named_parameters():
                if name.endswith("bias"):
                    nn.init.zeros_(weight)
                elif weight.dim() == 2:  # the ends of residual branches start small, as in GPT-2
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
        """Hidden states of packed sessions end to end: tokens (N,), lengths (S,) on the host, at most max_positions."""
        return self.states(tokens, Packing(lengths, self.settings.heads, self.device))

    def states(self, tokens: Tensor, packing: "Placed") -> Tensor:
        """Hidden states (..., d) of tokens (...) that stand where `packing` says."""
        p = self.settings.dropout if self.training else 0.0
        x = _dropout(F.embedding(tokens, self.embedding) + F.embedding(packing.position, self.position), p)
        for block in self.blocks:
            x = block.finish(x, packing.attend(block.project(x)), p)  # type: ignore[operator]
        return self.norm(x)  # type: ignore[no-any-return]  # (..., d)

    def readout(self) -> "Readout":
        """What turns hidden states into probabilities; it keeps a copy of the output matrix as it is now."""
        return Readout(self)

    def log_prob_of(self, hidden: Tensor, target: Tensor) -> Tensor:
        """log P(target) for each hidden state (M, d), target (M,) -> (M,)."""
        return self.readout().log_prob_of(hidden, target)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """The whole distribution, (M, d) -> (M, P+1), -inf in column 0. For few rows."""
        logits = F.linear(hidden, self.output).float()
        logits[:, 0] = -torch.inf
        return F.log_softmax(logits, -1)

    def losses(self, hidden: Tensor, target: Tensor) -> Tensor:
        """-log P(target), differentiable, (M, d), (M,) -> (M,). Rows must weigh the same if the matrix learns."""
        return _Losses.apply(hidden, self.output, target, self._reach())  # type: ignore[no-any-return,no-untyped-call]

    def _reach(self) -> float | None:
        """No |logit| can be larger: hidden states come from a LayerNorm. None on CUDA, where asking means waiting."""
        if self.device.type != "cpu":
            return None
        with torch.no_grad():
            stretched = torch.linalg.vector_norm(self.output * self.norm.weight, dim=1)
            shift = (self.output @ self.norm.bias).abs()
            return float((stretched * math.sqrt(self.settings.dim) + shift).max())


class Placed(Protocol):
    """Where tokens stand, and attention among them."""

    position: Tensor  # (...) in the window

    def attend(self, qkv: Tensor) -> Tensor:
        """(..., 3d) -> (..., d)."""


class Packing:
    """Where each token of packed sessions stands, and attention over them in groups of similar length.

    Groups are padded on the right, so that causality alone keeps real tokens from seeing padding.
    """

    def __init__(self, lengths: Longs, heads: int, device: torch.device) -> None:
        lengths = np.asarray(lengths, np.int64)
        start = np.cumsum(lengths) - lengths
        self.heads = heads
        # A group holds lengths above half its longest; on CUDA few calls matter more than little padding.
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
        self.there = torch.from_numpy(np.concatenate(there) if there else back).to(device, non_blocking=True)

    def attend(self, qkv: Tensor) -> Tensor:
        padded = Pad.apply(qkv, self.there, self.back)  # type: ignore[no-untyped-call]
        out, offset = [], 0
        for sessions, longest in self.shapes:
            part = padded[offset : offset + sessions * longest]
            offset += sessions * longest
            q, k, v = part.view(sessions, longest, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # each (b, H, t, dh)
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            out.append(attended.transpose(1, 2).reshape(sessions * longest, -1))
        together = out[0] if len(out) == 1 else torch.cat(out)
        return Unpad.apply(together, self.there, self.back)  # type: ignore[no-any-return,no-untyped-call]


class Pad(torch.autograd.Function):
    """Rows (..., N, d) to padded places. A real row stands in one place only: its gradient is looked up, not summed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.back = back
        return x.index_select(-2, there)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad.index_select(-2, ctx.back), None, None


class Unpad(torch.autograd.Function):
    """Padded places to rows (..., N, d). Padding gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.back, ctx.places = back, len(there)
        return x.index_select(-2, back)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        padded = grad.new_zeros(*grad.shape[:-2], ctx.places, grad.shape[-1])
        return padded.index_copy_(-2, ctx.back, grad), None, None


class Prefix:
    """Keys and values of what a batch of sessions has released so far, each layer's, up to max_positions.

    Sessions are sorted by length, longest first, so that those still running are always the first of the batch.
    """

    def __init__(self, model: CausalTransformer, sessions: int, positions: int) -> None:
        s = model.settings
        self.model, self.length = model, 0
        shape = (sessions, s.heads, min(positions, s.max_positions), s.dim // s.heads)
        dtype = _product_dtype(model.device)
        self.keys = [torch.empty(shape, device=model.device, dtype=dtype) for _ in range(s.layers)]
        self.values = [torch.empty(shape, device=model.device, dtype=dtype) for _ in range(s.layers)]

    def reset(self) -> None:
        self.length = 0

    def append(self, tokens: Tensor, wanted: bool = True) -> Tensor:
        """Add one position (b,) to the first b sessions; their hidden states there, (b, d), if they are wanted."""
        x = F.embedding(tokens, self.model.embedding)
        hidden = self._forward(x, None, len(tokens), keep=True, wanted=wanted)
        self.length += 1
        return hidden

    def peek(self, new: Tensor, layout: "Layout | None" = None) -> Tensor:
        """Hidden states that new tokens (M,) or embeddings (M, d) would have on the prefix, which stays as it is.

        The layout says which session each belongs to; without it, there is one per session, or a row of tokens (B, K).
        """
        x = new if new.is_floating_point() else F.embedding(new, self.model.embedding)
        return self._forward(x.view(-1, x.shape[-1]), layout, len(new), keep=False)

    def _forward(self, x: Tensor, layout: "Layout | None", sessions: int, keep: bool, wanted: bool = True) -> Tensor:
        heads = self.model.settings.heads
        x = x + self.model.position[self.length]
        slots = layout.slots(heads) if layout is not None and self.length else None
        for layer, block in enumerate(self.model.blocks):
            q, k, v = block.project(x).chunk(3, dim=1)  # type: ignore[operator]
            if keep:
                self.keys[layer][:sessions, :, self.length] = k.view(sessions, heads, -1)
                self.values[layer][:sessions, :, self.length] = v.view(sessions, heads, -1)
            if not wanted and layer == len(self.model.blocks) - 1:
                return x  # the last keys and values are kept, and nothing above them is asked for
            if self.length == 0:
                attended = v
            elif layout is not None and slots is not None:
                attended = self._attend_many(layer, q, k, v, layout, slots)
            elif keep and x.is_cuda:
                attended = self._attend_kept(layer, q, sessions)
            else:
                attended = self._attend_grid(layer, q, k, v, sessions)
            x = block.finish(x, attended, 0.0)  # type: ignore[operator]
        return self.model.norm(x)  # type: ignore[no-any-return]  # (M, d)

    def _attend_grid(self, layer: int, q: Tensor, k: Tensor, v: Tensor, sessions: int) -> Tensor:
        """Attention of as many new tokens of each session, (B*K, d)."""
        keys, values = self.keys[layer][:sessions], self.values[layer][:sessions]
        heads, dh = keys.shape[1], keys.shape[3]
        q, k, v = (a.view(sessions, -1, heads, dh).transpose(1, 2).reshape(sessions * heads, -1, dh) for a in (q, k, v))
        found, own = self._attend(keys, values, q, (q * k).sum(2, keepdim=True))
        return (found + own * v).view(sessions, heads, -1, dh).transpose(1, 2).reshape(-1, heads * dh)

    def _attend_kept(self, layer: int, q: Tensor, sessions: int) -> Tensor:
        """Attention of one new token per session whose key and value are kept already, (B, d), in one call."""
        keys, values = (c[layer][:sessions, :, : self.length + 1] for c in (self.keys, self.values))
        found = F.scaled_dot_product_attention(q.view(sessions, keys.shape[1], 1, -1).to(keys.dtype), keys, values)
        return found.reshape(sessions, -1)

    def _attend_many(self, layer: int, q: Tensor, k: Tensor, v: Tensor, layout: "Layout", slots: Tensor) -> Tensor:
        """Attention of the tokens of a layout, (M, d): in grids (B, K), since tokens of a session share its keys."""
        heads, dh = self.model.settings.heads, self.keys[layer].shape[3]
        grid = q.new_zeros(layout.rows * heads, dh).index_copy_(0, slots, q.reshape(-1, dh))
        itself = q.new_zeros(layout.rows * heads).index_copy_(0, slots, (q * k).view(-1, dh).sum(1).to(q.dtype))
        found, own, at = [], [], 0
        for sessions, width in layout.groups:
            rows = len(sessions) * heads * width
            keys, values = (c[layer][:, :, : self.length].index_select(0, sessions) for c in (self.keys, self.values))
            part = slice(at, at + rows)
            f, o = self._attend(keys, values, grid[part].view(-1, width, dh), itself[part].view(-1, width, 1))
            found.append(f.view(-1, dh))
            own.append(o.reshape(-1, 1))
            at += rows
        attended = torch.cat(found).index_select(0, slots)
        return attended.addcmul_(torch.cat(own).index_select(0, slots), v.reshape(-1, dh)).view(len(q), -1)

    def _attend(self, keys: Tensor, values: Tensor, q: Tensor, itself: Tensor) -> tuple[Tensor, Tensor]:
        """What queries (B*H, K, dh) find in the prefix (B*H, K, dh), and their weight on themselves (B*H, K, 1)."""
        t, dh = self.length, q.shape[2]
        keys, values = (c[:, :, :t].reshape(-1, t, dh) for c in (keys, values))
        logits = torch.bmm(q, keys.transpose(1, 2))  # (B*H, K, t)
        weight = (torch.cat([logits, itself.to(logits.dtype)], 2) * dh**-0.5).softmax(2)
        found = torch.bmm(weight[:, :, :t], values)
        return found, weight[:, :, t:].to(found.dtype)


class Layout(NamedTuple):
    """Which session each of M new tokens belongs to, and its place in grids (sessions, width) of similar width."""

    groups: list[tuple[Tensor, int]]  # sessions (g,) of the batch and the width of their grid, one grid after the other
    rows: int  # of all grids
    first: Tensor  # (M,) the row where the token's session begins
    k: Tensor  # (M,) the token's place in its session
    width: Tensor  # (M,) of its grid

    def slots(self, heads: int) -> Tensor:
        """The row of every (token, head) when each session's grid is (H, K), (M*H,)."""
        head = torch.arange(heads, device=self.k.device)
        return ((self.first * heads + self.k)[:, None] + head * self.width[:, None]).view(-1)


class Readout:
    """Probabilities over the P real POIs from hidden states, with the output matrix as it was when this was made."""

    def __init__(self, model: CausalTransformer) -> None:
        self.model, self.matrix = model, model.output.detach()  # (P+1, d)
        shape = (self.matrix.shape[1], len(self.matrix) - 1)
        self.columns = torch.empty(shape, dtype=_product_dtype(model.device), device=model.device)  # (d, P)
        self.refresh()

    def refresh(self) -> None:
        """Take the output matrix as it is now, in place."""
        self.columns.copy_(self.matrix[1:].t())
        self.reach = self.model._reach()

    def log_prob_of(self, hidden: Tensor, target: Tensor) -> Tensor:
        """log P(target), (M, d), (M,) -> (M,)."""
        return self.logit_of(hidden, target) - self.log_partition(hidden)

    def logit_of(self, hidden: Tensor, target: Tensor) -> Tensor:
        """The logit of one POI for each hidden state, (M, d), (M,) -> (M,)."""
        return (hidden * F.embedding(target, self.matrix)).sum(1)

    def losses(self, hidden: Tensor, target: Tensor) -> Tensor:
        """-log P(target), (M, d), (M,) -> (M,), differentiable with respect to the hidden states."""
        return _Losses.apply(hidden, self.matrix, target, self.reach)  # type: ignore[no-any-return,no-untyped-call]

    @torch.no_grad()
    def log_partition(self, hidden: Tensor) -> Tensor:
        """log of the sum over all POIs of exp(logit), (M, d) -> (M,), tile by tile."""
        hidden = hidden.to(self.columns.dtype)
        out = torch.empty(len(hidden), device=hidden.device)
        if self.reach is None:
            rows = max(1, CUDA_LOGITS // self.columns.shape[1])
            for a in range(0, len(hidden), rows):
                logits = torch.mm(hidden[a : a + rows], self.columns).float()
                # From the first column alone: one kernel where logsumexp takes eight.
                torch.sub(logits[:, 0], F.log_softmax(logits, 1)[:, 0], out=out[a : a + rows])
            return out
        rows = _even(len(hidden), TILE_ROWS)
        tile = torch.empty(rows * _even(self.columns.shape[1], TILE_LOGITS // rows, 16), dtype=hidden.dtype)
        for a in range(0, len(hidden), rows):
            out[a : a + rows] = self._tiled(hidden[a : a + rows], tile)
        return out

    def _tiled(self, hidden: Tensor, tile: Tensor) -> Tensor:
        rows, every = len(hidden), self.columns.shape[1]
        width = tile.numel() // rows
        total, top = torch.zeros(rows), torch.zeros(rows)
        safe = self.reach is not None and self.reach < SAFE_REACH
        for c in range(0, every, width):
            columns = self.columns[:, c : c + width]
            logits = torch.mm(hidden, columns, out=tile[: rows * columns.shape[1]].view(rows, -1)).float()
            if not safe:
                higher = logits.amax(1) if c == 0 else torch.maximum(top, logits.amax(1))
                total *= torch.exp(top - higher)
                top = higher
                logits.sub_(top[:, None])
            total += logits.exp_().sum(1)
        return total.log_() + top


class _Losses(torch.autograd.Function):
    """-log P(target) over the POIs, (M,). Losses and both gradients come from one pass over tiles of logits.

    The output matrix's gradient is summed while tiles pass by, so it is right only when all rows weigh the same.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, output: Tensor, target: Tensor, reach: float | None) -> Tensor:
        dtype = _product_dtype(hidden.device)
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
            if reach is None or reach >= SAFE_REACH:
                top = logits.amax(1, keepdim=True)
                logits.sub_(top)
                right = right - top.squeeze(1)
            total = logits.exp_().sum(1)
            torch.sub(total.log(), right, out=losses[a : a + rows])
            # Row by row, the gradient is exp(logits) / total, less one at the target; the division waits.
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
        return (
            None if d_hidden is None else d_hidden * grad[:, None],
            None if d_output is None else d_output * grad[:1],
            None,
            None,
        )


def _even(n: int, most: int, multiple: int = 1) -> int:
    """The size of about n / most equal pieces, rounded up: no small rest is left."""
    pieces = max(1, round(n / max(1, most)))
    return max(1, -(-n // (pieces * multiple)) * multiple)


def _dropout(x: Tensor, p: float) -> Tensor:
    return F.dropout(x, p) if p else x


def _product_dtype(device: torch.device) -> torch.dtype:
    """The type of matrix products here: autocast's where that is on."""
    return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
