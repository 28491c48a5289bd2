"""Where the tokens of a batch stand, for many victims at once: whole sessions side by side in lines of equal width.

Sessions are short and a few are long (NYC: mean 8, some above 100), so that padding a batch to its longest would be
over nine tenths waste, times the number of victims. A line holds as many sessions as fit; a mask keeps them apart.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.checkins import Longs
from ghostpoi.fit import Pairs
from ghostpoi.model import Pad, Unpad

WIDTH = 64  # lines are at least this wide; attention kernels work in tiles of that size anyway
ALIGN = 8  # their width is a multiple of this, which fast kernels ask of a mask
NEVER = -1e9  # finite: a kernel that goes by tiles of keys may meet one where a query has nothing to look at


class Lines:
    """One batch: windows of at most max_positions, the same for every victim."""

    def __init__(self, width: int, index: Tensor, position: Tensor, back: Tensor, there: Tensor, owner: Tensor) -> None:
        self.index = index  # (N,) which positions of the pairs these are
        self.position = position  # (N,) in the window
        self.back = back  # (N,) the place of every token in the lines
        self.there = there  # (B*t,) the token at every place; any for empty ones
        self.owner = owner.view(-1, width)  # (B, t) the window at every place, -1 for empty ones

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


def lay_out(pairs: Pairs, batches: Sequence[Longs], device: torch.device) -> list[Lines]:
    """These batches of windows. All of them travel to the device at once, so that no step waits for one."""
    parts: list[Longs] = []
    widths: list[int] = []
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
        parts += [np.repeat(start[windows], length) + position, position, back, there, owner]
        widths.append(width)
    if not parts:
        return []
    together = torch.from_numpy(np.concatenate(parts))
    if device.type == "cuda":
        together = together.pin_memory().to(device, non_blocking=True)
    piece = torch.split(together, [len(part) for part in parts])
    return [Lines(width, *piece[5 * i : 5 * i + 5]) for i, width in enumerate(widths)]


def _places(length: Longs, width: int) -> tuple[Longs, int]:
    """Where each window begins when lines are filled in order, and the number of lines."""
    first, line, used = [], 0, 0
    for n in length.tolist():
        if used + n > width:
            line, used = line + 1, 0
        first.append(line * width + used)
        used += n
    return np.array(first, np.int64), line + 1
