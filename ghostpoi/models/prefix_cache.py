"""Cached keys and values: scoring a candidate takes one new token, not a forward pass over the whole prefix."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.models.devices import product_dtype
from ghostpoi.models.transformer import CausalTransformer


class Prefix:
    """Keys and values, layer by layer, of the released prefixes of a batch of sessions, up to max_positions.

    Sessions are sorted by length, longest first, so the sessions still running always lead the batch.
    """

    def __init__(self, model: CausalTransformer, sessions: int, positions: int) -> None:
        s = model.settings
        self.model, self.length = model, 0
        shape = (sessions, s.heads, min(positions, s.max_positions), s.dim // s.heads)
        dtype = product_dtype(model.device)
        self.cache = [torch.empty((2, *shape), device=model.device, dtype=dtype) for _ in range(s.layers)]
        self.keys, self.values = ([both[i] for both in self.cache] for i in range(2))

    @property
    def in_one_call(self) -> bool:
        """Whether the fewest calls are fastest: a CUDA card works faster on small batches than the host launches."""
        return self.model.device.type == "cuda"

    def append(self, tokens: Tensor, wanted: bool = True) -> Tensor:
        """Add one position (b,) to the first b sessions. Return their hidden states there, (b, d), if `wanted`."""
        x = F.embedding(tokens, self.model.embedding)
        hidden = self._forward(x, None, len(tokens), keep=True, wanted=wanted)
        self.length += 1
        return hidden

    def peek(self, new: Tensor, layout: "Layout | None" = None) -> Tensor:
        """Return the hidden states of new tokens (M,) or embeddings (M, d) on the prefix, without adding them.

        The layout says which session each belongs to. Without it, there is one per session, or a row of tokens (B, K).
        """
        x = new if new.is_floating_point() else F.embedding(new, self.model.embedding)
        return self._forward(x.view(-1, x.shape[-1]), layout, len(new), keep=False)

    def _forward(self, x: Tensor, layout: "Layout | None", sessions: int, keep: bool, wanted: bool = True) -> Tensor:
        heads = self.model.settings.heads
        x = x + self.model.position[self.length]
        slots = layout.slots(heads) if layout is not None and self.length else None
        for layer, block in enumerate(self.model.blocks):
            qkv = block.project(x)  # type: ignore[operator]
            q, k, v = qkv.chunk(3, dim=1)
            if keep:
                new = qkv.view(sessions, 3, heads, -1)[:, 1:].transpose(0, 1)
                self.cache[layer][:, :sessions, :, self.length] = new
            if not wanted and layer == len(self.model.blocks) - 1:
                return x  # the last keys and values are cached, and nobody asks for what follows
            if self.length == 0:
                attended = v
            elif layout is not None and slots is not None:
                attended = self._attend_many(layer, q, k, v, layout, slots)
            elif keep and self.in_one_call:
                attended = self._attend_kept(layer, q, sessions)
            else:
                attended = self._attend_grid(layer, qkv, sessions)
            x = block.finish(x, attended, 0.0)  # type: ignore[operator]
        return self.model.norm(x)  # (M, d)

    def _attend_grid(self, layer: int, qkv: Tensor, sessions: int) -> Tensor:
        """Attend from K new tokens of each session, (B*K, 3d) -> (B*K, d)."""
        keys, values = self.keys[layer][:sessions], self.values[layer][:sessions]
        heads, dh = keys.shape[1], keys.shape[3]
        grid = qkv.view(sessions, -1, 3, heads, dh).permute(2, 0, 3, 1, 4)  # (3, B, H, K, dh)
        q, k, v = grid.reshape(3, sessions * heads, -1, dh).unbind()
        found, own = self._attend(keys, values, q, (q * k).sum(2, keepdim=True))
        return torch.addcmul(found, own, v).view(sessions, heads, -1, dh).transpose(1, 2).reshape(-1, heads * dh)

    def _attend_kept(self, layer: int, q: Tensor, sessions: int) -> Tensor:
        """Attend from one new token per session, its key and value cached already, (B, d). One call."""
        keys, values = (c[layer][:sessions, :, : self.length + 1] for c in (self.keys, self.values))
        found = F.scaled_dot_product_attention(q.view(sessions, keys.shape[1], 1, -1).to(keys.dtype), keys, values)
        return found.reshape(sessions, -1)

    def _attend_many(self, layer: int, q: Tensor, k: Tensor, v: Tensor, layout: "Layout", slots: Tensor) -> Tensor:
        """Attend from the tokens of a layout, (M, d), in grids (B, K): tokens of a session share its keys."""
        heads, dh = self.model.settings.heads, self.keys[layer].shape[3]
        grid = q.new_zeros(layout.places * heads, dh).index_copy_(0, slots, q.reshape(-1, dh))
        itself = q.new_zeros(layout.places * heads).index_copy_(0, slots, (q * k).view(-1, dh).sum(1).to(q.dtype))
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
        """Attend from (B*H, K, dh) to the prefix: what is found, (B*H, K, dh), and the own weight, (B*H, K, 1)."""
        t, dh = self.length, q.shape[2]
        keys, values = (c[:, :, :t].reshape(-1, t, dh) for c in (keys, values))
        logits = torch.bmm(q, keys.transpose(1, 2))  # (B*H, K, t)
        weight = (torch.cat([logits, itself.to(logits.dtype)], 2) * dh**-0.5).softmax(2)
        found = torch.bmm(weight[:, :, :t], values)
        return found, weight[:, :, t:].to(found.dtype)


class Layout(NamedTuple):
    """The session of each of M new tokens, and its place in grids (sessions, width), one for each range of widths."""

    groups: list[tuple[Tensor, int]]  # of each grid: its sessions (g,) of the batch, and its width
    places: int  # in all grids
    first: Tensor  # (M,) the place where the token's session begins
    k: Tensor  # (M,) the token's number in its session
    width: Tensor  # (M,) of its grid

    def slots(self, heads: int) -> Tensor:
        """Return the place of every (token, head) if each session has a grid (H, K), (M*H,)."""
        head = torch.arange(heads, device=self.k.device)
        return ((self.first * heads + self.k)[:, None] + head * self.width[:, None]).view(-1)
