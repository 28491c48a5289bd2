"""The denoiser of the paired bridge, a bidirectional Transformer, and the released sessions that it reads."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.attack.inference.categorical_bridge import Chain, Support
from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models import fit
from ghostpoi.models.transformer import Block, Packing, Pad, Unpad
from ghostpoi.models.windows import aligned
from ghostpoi.publish.channel import Channel
from ghostpoi.settings import ModelSettings

HOURS = 24
LONGEST_GAP_S = 86_400.0  # of a session: log gaps are scaled to 0..1


class Options(NamedTuple):
    """The POIs that may stand behind each of M released ones: L in all, as a list and as a table."""

    row: Tensor  # (L,) from 0 to M - 1
    column: Tensor  # (L,)
    poi: Tensor  # (L,)
    log_channel: Tensor  # (L,) of the released POI given this one
    table: Tensor  # (M, K), padded with 0


class Batch(NamedTuple):
    """Some windows end to end."""

    packing: "BidirectionalPacking"
    windows: int
    options: Options | None  # None: every POI
    place: Tensor  # (M,) the index of every position in the corpus
    released: Tensor  # (M,)
    window: Tensor  # (M,) the window of every position, from 0


class Corpus:
    """Released sessions with their times, cut into windows, on a device."""

    def __init__(self, sessions: Sessions, channel: Channel | None, model: ModelSettings, device: torch.device) -> None:
        self.poi, self.channel, self.heads, self.device = sessions.poi, channel, model.heads, device
        self.length = aligned(sessions.poi, sessions, model.max_positions).length  # (W,)
        self.start = np.cumsum(self.length) - self.length
        gap = np.diff(sessions.time, prepend=0)
        gap[sessions.start[:-1][sessions.length > 0]] = 0
        log_gap = np.log1p(np.maximum(gap, 0)) / np.log1p(LONGEST_GAP_S)
        self.hour = self._to(sessions.time // 3600 % HOURS)  # (N,)
        self.log_gap = self._to(log_gap.astype(np.float32))  # (N,)

    def batch(self, windows: Longs) -> Batch:
        """Return some windows as a batch."""
        length = self.length[windows]
        window = np.repeat(np.arange(len(windows)), length)
        place = (self.start[windows] - (np.cumsum(length) - length))[window] + np.arange(len(window))
        released = self.poi[place].astype(np.int64)
        packing = BidirectionalPacking(length, self.heads, self.device)
        return Batch(packing, len(windows), self._options(released), *map(self._to, (place, released, window)))

    def by_length(self, positions: int) -> Iterator[Longs]:
        """Yield all windows, longest first, at most `positions` padded positions at a time."""
        left = np.argsort(-self.length, kind="stable")
        while len(left):
            count = max(1, positions // int(self.length[left[0]]))
            yield left[:count]
            left = left[count:]

    def _options(self, released: Longs) -> Options | None:
        if self.channel is None:
            return None
        row, entry = self.channel.behind(released)  # (L,)
        size = np.bincount(row, minlength=len(released))
        column = np.arange(len(row)) - (np.cumsum(size) - size)[row]
        table = np.zeros((len(released), int(size.max(initial=1))), np.int64)
        poi = table[row, column] = self.channel.clean[entry]
        log_channel = np.log(np.maximum(self.channel.probability[entry], 1e-9)).astype(np.float32)
        return Options(*(self._to(a) for a in (row, column, poi, log_channel, table)))

    def _to(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)


class BidirectionalPacking(Packing):
    """Packed windows in which every position sees all others of its window."""

    def __init__(self, lengths: Longs, heads: int, device: torch.device) -> None:
        super().__init__(lengths, heads, device)
        self.real = torch.zeros(len(self.there), dtype=torch.bool, device=device).index_fill_(0, self.back, True)

    def attend(self, qkv: Tensor) -> Tensor:
        padded = Pad.apply(qkv, self.there, self.back)  # type: ignore[no-untyped-call]
        out, offset = [], 0
        for windows, longest in self.shapes:
            part = slice(offset, offset := offset + windows * longest)
            q, k, v = padded[part].view(windows, longest, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            mask = self.real[part].view(windows, 1, 1, longest)
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            out.append(attended.transpose(1, 2).reshape(windows * longest, -1))
        whole = out[0] if len(out) == 1 else torch.cat(out)
        return Unpad.apply(whole, self.there, self.back)  # type: ignore[no-any-return,no-untyped-call]


class Denoiser(nn.Module):
    """Predicts x_0 from the state of the chain, the released session, the step and the times."""

    def __init__(self, s: ModelSettings, chain: Chain, seed: int) -> None:
        super().__init__()
        self.settings, self.chain = s, chain
        rows = chain.pois + 1
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed CUDA's generators
            # All tables start small: torch's own start of the gap's weights would drown out the embeddings.
            self.state, self.released, self.position, self.step, self.hour, self.gap = (
                nn.Parameter(torch.randn(n, s.dim) * 0.02)
                for n in (rows, rows, s.max_positions, chain.steps + 1, HOURS, 1)
            )
            self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
            for name, weight in self.blocks.named_parameters():
                if name.endswith("bias"):
                    nn.init.zeros_(weight)
                elif weight.dim() == 2:
                    nn.init.normal_(weight, std=0.02)
            self.norm = nn.LayerNorm(s.dim)
        self.bias = nn.Parameter(torch.zeros(rows))

    def hidden(self, corpus: Corpus, batch: Batch, now: Tensor, n: Tensor) -> Tensor:
        """Return the hidden states of a batch whose chains are at `now` after n steps, (M,) -> (M, d)."""
        p = self.settings.dropout if self.training else 0.0
        place = batch.place
        read = F.embedding(now, self.state) + F.embedding(batch.released, self.released) + F.embedding(n, self.step)
        read = read + F.embedding(corpus.hour[place], self.hour) + corpus.log_gap[place, None] * self.gap
        x = F.dropout(read + F.embedding(batch.packing.position, self.position), p, self.training)
        for block in self.blocks:
            x = block.finish(x, batch.packing.attend(block.project(x)), p)  # type: ignore[operator]
        return self.norm(x).float()  # type: ignore[no-any-return]  # (M, d)

    def predict(self, hidden: Tensor, now: Tensor, end: Tensor, n: Tensor, options: Options | None) -> Support:
        """Predict x_0 over all POIs, or over the options alone, from hidden states (M, d) and chains (M,)."""
        if options is None:
            logits = F.linear(hidden, self.released[1:], self.bias[1:])
            return self.chain.informed(logits, None, now, end, n.float())
        each = (hidden[options.row] * F.embedding(options.poi, self.released)).sum(1) + self.bias[options.poi]  # (L,)
        each = each + options.log_channel
        logits = each.new_zeros(options.table.shape).index_put((options.row, options.column), each)
        return self.chain.informed(logits, options.table, now, end, n.float())

    def guess(
        self, hidden: Tensor, now: Tensor, end: Tensor, n: Tensor, options: Options | None, uniform: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the likeliest x_0, its probability, and one drawn with a uniform number, (M,) each."""
        if options is not None:
            return self.predict(hidden, now, end, n, options).guess(uniform)
        logits = fit.RANK_LOGITS if hidden.device.type == "cpu" else fit.RANK_LOGITS_CUDA
        at_once = max(1, logits // self.chain.pois)
        parts = (slice(at, at + at_once) for at in range(0, len(n), at_once))
        found = [self.predict(hidden[i], now[i], end[i], n[i], None).guess(uniform[i]) for i in parts]
        likely, sure, drawn = map(torch.cat, zip(*found, strict=True))
        return likely, sure, drawn
