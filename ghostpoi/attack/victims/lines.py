"""Where the tokens of a batch stand, for many victims at once: whole sessions side by side in lines of equal width.

Sessions are short and a few are long (NYC: mean 8, some above 100), so that padding a batch to its longest would be
over nine tenths waste, times the number of victims. A line holds as many sessions as fit; a mask keeps them apart.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.data.checkins import Longs
from ghostpoi.models.transformer import Pad, Unpad
from ghostpoi.models.windows import Windows

WIDTH = 64  # lines are at least this wide; attention kernels work in tiles of that size anyway
ALIGN = 8  # their width is a multiple of this, which fast kernels ask of a mask
NEVER = -1e9  # finite: a kernel that goes by tiles of keys may meet one where a query has nothing to look at


class Lines:
    """One batch: windows of at most max_positions, the same for every victim."""

    def __init__(
        self, width: int, running: list[int], index: Tensor, position: Tensor, back: Tensor, there: Tensor,
        owner: Tensor, by_step: Tensor, from_step: Tensor,
    ) -> None:  # fmt: skip
        self.index = index  # (N,) which positions of the pairs these are
        self.position = position  # (N,) in the window
        self.back = back  # (N,) the place of every token in the lines
        self.there = there  # (B*t,) the token at every place; any for empty ones
        self.owner = owner.view(-1, width)  # (B, t) the window at every place, -1 for empty ones
        # For those who read step by step: first positions first, and among them longest windows first.
        self.by_step = by_step  # (N,) the tokens in that order
        self.from_step = from_step  # (N,) where in it each token is
        self.running = running  # windows that reach each position, on the host

    def attend(self, qkv: Tensor, heads: int, mask: Tensor) -> Tensor:
        """Causal attention inside every window, (M, N, 3d) -> (M, N, d)."""
        victims, (lines, width) = len(qkv), self.owner.shape
        padded = Pad.apply(qkv, self.there, self.back)  # type: ignore[no-untyped-call]
        q, k, v = padded.view(victims * lines, width, 3, heads, -1).permute(2, 0, 3, 1, 4)  # each (M*B, H, t, dh)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        found = found.transpose(1, 2).reshape(victims, lines * width, -1)
        return Unpad.apply(found, self.there, self.back)  # type: ignore[no-any-return,no-untyped-call]

    def mask(self, victims: int, dtype: torch.dtype) -> Tensor:
        """0 where a place may look, NEVER elsewhere, (M*B, 1, t, t)."""
        # Empty places look at each other, so that no row is left without any place to look at.
        same = self.owner[:, :, None] == self.owner[:, None, :]
        mask = torch.zeros(same.shape, dtype=dtype, device=same.device).masked_fill_(~same.tril_(), NEVER)
        return mask.repeat(victims, 1, 1)[:, None]


def lay_out(pairs: Windows, batches: Sequence[Longs], device: torch.device) -> list[Lines]:
    """These batches of windows. All of them travel to the device at once, so that no step waits for one."""
    parts: list[Longs] = []
    widths: list[int] = []
    running: list[list[int]] = []
    start = pairs.start
    for windows in batches:
        length = pairs.length[windows]
        width = -(-max(WIDTH, int(length.max(initial=1))) // ALIGN) * ALIGN
        first, lines = _places(length, width)
        position = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        back = np.repeat(first, length) + position
        there, owner = np.zeros(lines * width, np.int64), np.full(lines * width, -1)
        there[back] = np.arange(len(back))
        owner[back] = np.repeat(np.arange(len(length)), length)
        by_step, from_step = _by_step(length, position)
        parts += [np.repeat(start[windows], length) + position, position, back, there, owner, by_step, from_step]
        widths.append(width)
        running.append(np.bincount(position).tolist())
    if not parts:
        return []
    together = torch.from_numpy(np.concatenate(parts))
    if device.type == "cuda":
        together = together.pin_memory().to(device, non_blocking=True)
    piece = torch.split(together, [len(part) for part in parts])
    return [Lines(widths[i], running[i], *piece[7 * i : 7 * i + 7]) for i in range(len(widths))]


def _by_step(length: Longs, position: Longs) -> tuple[Longs, Longs]:
    """The order of tokens by position, then from the longest window to the shortest, and its inverse, each (N,)."""
    place = np.empty(len(length), np.int64)
    place[np.argsort(-length, kind="stable")] = np.arange(len(length))
    order = np.argsort(position * len(length) + np.repeat(place, length), kind="stable")
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return order, inverse


def _places(length: Longs, width: int) -> tuple[Longs, int]:
    """Where each window begins when lines are filled in order, and the number of lines."""
    first, line, used = [], 0, 0
    for n in length.tolist():
        if used + n > width:
            line, used = line + 1, 0
        first.append(line * width + used)
        used += n
    return np.array(first, np.int64), line + 1
