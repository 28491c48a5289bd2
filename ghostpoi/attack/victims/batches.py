"""What victims read at once: windows side by side in rows. Padding all to the longest would waste 90% of the work."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.cuda_graphs import fill_rows, row_mask, row_width
from ghostpoi.models.transformer import Pad, Unpad
from ghostpoi.models.windows import Windows, next_poi

TOKEN, USER, TIME = range(3)  # the parts of inputs, (3, M, N)


@dataclass(frozen=True)
class TimedPairs(Windows):
    """Pairs with the user and the time of the input. The time of the target is unknown when it is predicted."""

    user: Longs  # (N,)
    time: Longs  # (N,) UTC seconds


def timed_pairs(sessions: Sessions, max_positions: int) -> TimedPairs:
    """Return the pairs of `next_poi` with users and times."""
    pairs = next_poi(sessions, max_positions)
    is_input = np.ones(sessions.positions, bool)
    is_input[sessions.start[1:][sessions.length > 0] - 1] = False
    user = np.repeat(sessions.user, np.maximum(sessions.length - 1, 0)).astype(np.int64)
    return TimedPairs(pairs.token, pairs.target, pairs.length, user, sessions.time[is_input].astype(np.int64))


def inputs_of(pairs: Sequence[TimedPairs], device: torch.device) -> Tensor:
    """Return what victims read at each position, TOKEN, USER and TIME, (3, M, N); victim m reads pairs[m]."""
    return torch.from_numpy(np.stack([[p.token, p.user, p.time] for p in pairs], 1)).to(device)


@dataclass(frozen=True)
class PackedRows:
    """One batch of windows, the same for every victim: N tokens in B rows of t places."""

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
        return Unpad.apply(found, self.token_at, self.place)  # type: ignore[no-any-return,no-untyped-call]

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
        position = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        place = np.repeat(first, length) + position
        token_at, owner = np.zeros(rows * width, np.int64), np.full(rows * width, -1)
        token_at[place] = np.arange(len(place))
        owner[place] = np.repeat(np.arange(len(length)), length)
        index = np.repeat(start[windows], length) + position
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
