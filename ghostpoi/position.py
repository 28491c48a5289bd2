"""adv(p') and mani(p') of every candidate of one position of a batch of sessions, exact and fast.

A candidate needs one new token on its session's cached prefix, not a forward pass over the prefix. `walk` goes through
all sessions position by position, lets the caller choose, and continues each session's prefix with what was chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ghostpoi import settings
from ghostpoi.candidates import Candidates
from ghostpoi.checkins import Ints, Longs
from ghostpoi.fit import Precision, precise
from ghostpoi.geo import EARTH_RADIUS_KM
from ghostpoi.model import CausalTransformer, Layout, Prefix, Readout
from ghostpoi.sessions import Sessions, Vocabulary

BUDGET = {"cpu": 36_000, "cuda": 1_000_000}  # cached positions (sessions x longest): 150 MB of keys and values, 4 GB
WIDTHS = (0, 8, 16, 1 << 30)  # sessions whose sets are of similar size attend together: less padding
SHORTEST = 32  # sessions count as at least this long: bounds a wave's candidates to what the caches of a CPU hold


class _Cached:
    """A model, its readout, and the prefix of a batch. Nothing is computed before somebody asks."""

    def __init__(self, model: CausalTransformer, readout: Readout, sessions: int, positions: int) -> None:
        self.model, self.readout = model, readout
        self.prefix = Prefix(model, sessions, positions)
        self.pending: list[Tensor] = []
        self.hidden = torch.empty(0)

    def restart(self) -> None:
        self.prefix.reset()
        self.pending.clear()

    def push(self, chosen: Tensor) -> None:
        self.pending.append(chosen)

    def ready(self, sessions: int) -> Prefix:
        """The prefix of the first `sessions`, with all that was pushed."""
        for tokens in self.pending:
            self.hidden = self.prefix.append(tokens[:sessions])
        self.pending.clear()
        return self.prefix


class _Options(NamedTuple):
    """The real candidates of one position of a batch, one after the other."""

    session: Tensor  # (M,)
    poi: Tensor  # (M,)
    layout: Layout  # where each stands in the batch
    unique: Tensor | None  # (U,) at a window's start, where hidden states depend on the candidate alone
    inverse: Tensor | None  # (M,) poi = unique[inverse]


@dataclass(eq=False)
class Position:
    """One position i of a batch of sessions: what a method may look at to choose. Row b is session b of the batch."""

    candidates: Tensor  # (B, K) int64, C0 of the anchor, padded with 0
    feasible: Tensor  # (B, K) bool, the speed mask; a row of False keeps the anchor whatever is chosen
    anchor: Tensor  # (B,) the clean POI
    anchor_feasible: Tensor  # (B,) bool, the speed mask of the anchor itself
    target: Tensor  # (B,) clean p_{i+1}; p_{i-1} at a session's last position; 0 in a session of one
    index: Tensor  # (B,) the position's number in Sessions
    _options: _Options = field(repr=False)
    _surrogate: _Cached | None = field(repr=False)
    _trajectory_lm: _Cached | None = field(repr=False)
    _precision: Precision = field(repr=False)
    _adv: Tensor | None = field(default=None, repr=False)
    _mani: Tensor | None = field(default=None, repr=False)

    def adv(self) -> Tensor:
        """-log S_phi(target | prefix, candidate at i), (B, K); -inf for padding and infeasible candidates."""
        if self._adv is None:
            with torch.no_grad(), precise(self._precision, self.anchor.device):
                self._adv = self._score_adv()
        return self._adv

    def mani(self) -> Tensor:
        """log T_psi(candidate | prefix), (B, K); -inf for padding and infeasible candidates."""
        if self._mani is None:
            with torch.no_grad(), precise(self._precision, self.anchor.device):
                self._mani = self._score_mani()
        return self._mani

    def loss(self, embedding: Tensor) -> Tensor:
        """-log S_phi(target | prefix, this embedding at i), (B, d) -> (B,), differentiable; 0 without a target."""
        s = _given(self._surrogate, "surrogate")
        with precise(self._precision, self.anchor.device):
            with torch.no_grad():
                prefix = s.ready(len(self.anchor))
            hidden = prefix.peek(embedding).float()
            return s.readout.losses(hidden, self.target.clamp(min=1)) * (self.target > 0)

    def embedding(self, poi: Tensor) -> Tensor:
        """The surrogate's embedding of POIs (...,) -> (..., d), without gradient."""
        return _given(self._surrogate, "surrogate").model.embedding.detach()[poi]

    def _score_adv(self) -> Tensor:
        s, o = _given(self._surrogate, "surrogate"), self._feasible_options()
        prefix = s.ready(len(self.anchor))
        target = self.target[o.session]
        if len(target) == 0:
            return self._spread(o, target)
        if o.unique is not None and o.inverse is not None:
            hidden = prefix.peek(o.unique)
            value = s.readout.log_partition(hidden)[o.inverse] - s.readout.logit_of(hidden[o.inverse], target)
        else:
            hidden = prefix.peek(o.poi, o.layout)
            value = -s.readout.log_prob_of(hidden, target)
        return self._spread(o, value * (target > 0))

    def _score_mani(self) -> Tensor:
        t, o = _given(self._trajectory_lm, "trajectory LM"), self._feasible_options()
        prefix = t.ready(len(self.anchor))
        hidden = t.hidden[: len(self.anchor)]
        first = prefix.length == 1  # the start token alone: the same state for all
        log_z = t.readout.log_partition(hidden[:1] if first else hidden).expand(len(hidden))
        return self._spread(o, t.readout.logit_of(hidden[o.session], o.poi) - log_z[o.session])

    def _feasible_options(self) -> _Options:
        """Without the infeasible on a CPU; on CUDA their number would be worth waiting for only if there were many."""
        o = self._options
        if self.anchor.device.type != "cpu":
            return o
        keep = self.feasible[o.session, o.layout.k]
        if keep.all():
            return o
        first, k, width = (a[keep] for a in o.layout[2:])
        layout = Layout(o.layout.groups, o.layout.rows, first, k, width)
        return _Options(o.session[keep], o.poi[keep], layout, o.unique, None if o.inverse is None else o.inverse[keep])

    def _spread(self, o: _Options, value: Tensor) -> Tensor:
        out = torch.full(self.candidates.shape, -torch.inf, device=value.device)
        out[o.session, o.layout.k] = value.float()
        return out.masked_fill_(~self.feasible, -torch.inf)


class Walk(NamedTuple):
    """What a walk released."""

    poi: Ints  # (N,) in the order of Sessions
    forced: NDArray[np.bool_]  # (N,) the speed mask left nothing of a set that was not empty


def walk(
    sessions: Sessions,
    candidates: Candidates,
    vocabulary: Vocabulary,
    speed: settings.Speed,
    surrogate: CausalTransformer | None,
    trajectory_lm: CausalTransformer | None,
    choose: Callable[[Position], Tensor],
    device: torch.device | str = "cpu",
    budget: int | None = None,
    precision: Precision = "float32",
    progress: Callable[[int], None] | None = None,
) -> Walk:
    """Choose a POI (B,) for every position, each session on the prefix of its own choices.

    Sessions are independent, so the batches that a budget makes change no choice but for rounding.
    `progress` gets the number of positions of every batch done.
    """
    device = torch.device(device)
    models = [m.eval() for m in (surrogate, trajectory_lm) if m is not None]
    limit = min([m.settings.max_positions for m in models], default=1 << 30)
    with precise(precision, device), torch.no_grad():
        readouts = {id(m): m.readout() for m in models}
    city = _City(candidates, vocabulary, speed, device)
    released = torch.zeros(sessions.positions, dtype=torch.int64, device=device)
    forced = torch.zeros(sessions.positions, dtype=torch.bool, device=device)
    order = np.argsort(-sessions.length, kind="stable")
    order = order[sessions.length[order] > 0]
    at, budget = 0, budget or BUDGET.get(device.type, BUDGET["cpu"])
    while at < len(order):
        longest = min(int(sessions.length[order[at]]), limit)
        batch = order[at : at + max(1, budget // max(longest, SHORTEST))]
        at += len(batch)
        with precise(precision, device):
            cached = [
                _Cached(m, readouts[id(m)], len(batch), longest) if m is not None else None
                for m in (surrogate, trajectory_lm)
            ]
        for i, wave in enumerate(_waves(sessions, batch, candidates, limit, device)):
            if i % limit == 0:
                for c in filter(None, cached):
                    c.restart()
                if cached[1]:
                    cached[1].push(torch.zeros_like(wave.index))
            previous = released[wave.index - 1] if i else None
            position, fallback, emptied = city.position(wave, previous, cached[0], cached[1], precision)
            chosen = torch.where(fallback > 0, fallback, choose(position))
            released[wave.index] = chosen
            forced[wave.index] = emptied
            if (i + 1) % limit:
                for c in filter(None, cached):
                    c.push(chosen)
        if progress:
            progress(int(sessions.length[batch].sum()))
    return Walk(released.cpu().numpy().astype(np.int32), forced.cpu().numpy())


@dataclass(frozen=True, eq=False)
class _Wave:
    """Position i of all sessions of a batch that are longer than i."""

    index: Tensor  # (B,)
    anchor: Tensor  # (B,)
    target: Tensor  # (B,)
    gap_s: Tensor  # (B,) since the previous position
    options: _Options


def _waves(sessions: Sessions, batch: Longs, candidates: Candidates, limit: int, device: torch.device) -> list[_Wave]:
    """All waves of a batch, longest session first. Built on the host and sent at once: waves are many and small."""
    length, start, poi, time = sessions.length[batch], sessions.start[batch], sessions.poi, sessions.time
    arrays: list[NDArray[np.integer[Any]]] = []
    widths: list[list[int]] = []
    for i in range(int(length[0])):
        at = start[: int((length > i).sum())] + i
        last = (start + length)[: len(at)] - 1
        other = np.where(at < last, at + 1, at - 1)
        target = np.where(other >= start[: len(at)], poi[np.minimum(other, len(poi) - 1)], 0)
        gap_s = time[at] - time[at - 1] if i else np.zeros_like(at)
        sets = candidates.poi[poi[at]]
        session, k = np.nonzero(sets)
        option = sets[session, k]
        unique, inverse = np.unique(option, return_inverse=True) if i % limit == 0 else (option[:0], option[:0])
        arrays += [at, poi[at], target, gap_s, session, option, k, unique, inverse]
        size = np.bincount(session, minlength=len(at))
        first, width = np.zeros_like(size), np.zeros_like(size)
        rows, here = 0, []
        for low, high in pairwise(WIDTHS):
            members = np.flatnonzero((size > low) & (size <= high))
            arrays.append(members)
            widest = int(size[members].max(initial=0))
            first[members], width[members] = rows + np.arange(len(members)) * widest, widest
            rows += len(members) * widest
            here.append(widest)
        arrays += [first[session], width[session]]
        widths.append(here)
    together = torch.from_numpy(np.concatenate(arrays, dtype=np.int64)).to(device)
    sent = iter(torch.split(together, [len(a) for a in arrays]))
    waves = []
    for i, here in enumerate(widths):
        index, anchor, goal, gap, session_of, option_of, column, *opening = islice(sent, 9)
        groups = [(members, w) for members, w in zip(islice(sent, len(here)), here, strict=True) if w]
        layout = Layout(groups, sum(len(m) * w for m, w in groups), next(sent), column, next(sent))
        unique_of, inverse_of = opening if i % limit == 0 else (None, None)
        options = _Options(session_of, option_of, layout, unique_of, inverse_of)
        waves.append(_Wave(index, anchor, goal, gap, options))
    return waves


class _City:
    """Candidate sets, coordinates and the speed mask on the device, in float64 like `candidates.speed_mask`."""

    def __init__(
        self, candidates: Candidates, vocabulary: Vocabulary, speed: settings.Speed, device: torch.device
    ) -> None:
        self.sets = torch.from_numpy(candidates.poi.astype(np.int64)).to(device)  # (P+1, K)
        lat, lon = np.radians(vocabulary.lat), np.radians(vocabulary.lon)
        place = np.nan_to_num(np.stack([lat, lon, np.cos(lat)], axis=1))
        self.place = torch.from_numpy(place).to(device)  # (P+1, 3)
        self.speed = speed

    def position(
        self, wave: _Wave, previous: Tensor | None, surrogate: _Cached | None, trajectory_lm: _Cached | None,
        precision: Precision,
    ) -> tuple[Position, Tensor, Tensor]:  # fmt: skip
        """The position; the POI where there is no choice, else 0, (B,); and where the mask left nothing, (B,)."""
        sets = self.sets[wave.anchor]
        real = sets > 0
        has_set = real.any(1)
        if previous is None:
            feasible, anchor_feasible, emptied = real, torch.ones_like(has_set), torch.zeros_like(has_set)
            fallback = torch.where(has_set, 0, wave.anchor)
        else:
            kmh = self._kmh(previous, torch.cat([sets, wave.anchor[:, None]], 1), wave.gap_s)  # (B, K+1)
            slow = kmh <= self.speed.limit_kmh
            feasible, anchor_feasible = real & slow[:, :-1], slow[:, -1]
            emptied = has_set & ~feasible.any(1)
            fallback = torch.where(has_set, 0, wave.anchor)
            if self.speed.empty == "ignore":
                feasible = feasible | (real & emptied[:, None])
            else:
                slowest = kmh[:, :-1].masked_fill(~real, torch.inf).argmin(1, keepdim=True)
                single = torch.zeros_like(real).scatter_(1, slowest, True)
                feasible = feasible | (single & (emptied & ~anchor_feasible)[:, None])
                best = torch.where(anchor_feasible, wave.anchor, sets.gather(1, slowest).squeeze(1))
                fallback = torch.where(emptied, best, fallback)
        position = Position(
            sets, feasible, wave.anchor, anchor_feasible, wave.target, wave.index,
            wave.options, surrogate, trajectory_lm, precision,
        )  # fmt: skip
        return position, fallback, emptied

    def _kmh(self, previous: Tensor, options: Tensor, gap_s: Tensor) -> Tensor:
        lat1, lon1, cos1 = self.place[previous][:, None].unbind(2)  # (B, 1) each
        lat2, lon2, cos2 = self.place[options].unbind(2)  # (B, K+1) each
        h = torch.sin((lat2 - lat1) / 2) ** 2 + cos1 * cos2 * torch.sin((lon2 - lon1) / 2) ** 2
        km = 2 * EARTH_RADIUS_KM * torch.asin(torch.sqrt(h.clamp(max=1.0)))
        return km / (gap_s.double().clamp(min=self.speed.min_gap_s) / 3600)[:, None]


def _given(model: _Cached | None, name: str) -> _Cached:
    if model is None:
        raise ValueError(f"this walk has no {name} to score with; pass one to walk()")
    return model
