"""One position of a batch of sessions, and the scores adv(p') and mani(p') of its candidates.

A score takes one new token on the session's cached prefix. It equals a forward pass over the whole prefix.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from ghostpoi.models.devices import precise
from ghostpoi.models.prefix import Layout, Prefix
from ghostpoi.models.readout import Readout
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.publish.sampling import sample, with_entropy_floor
from ghostpoi.settings import Precision


class CachedModel:
    """A model with its readout and the cached prefix of a batch. Pushed tokens wait until a score is requested."""

    def __init__(
        self, model: CausalTransformer, readout: Readout, sessions: int, positions: int, wants_hidden: bool
    ) -> None:
        self.model, self.readout, self.wants_hidden = model, readout, wants_hidden
        self.prefix = Prefix(model, sessions, positions)
        self.pending: list[Tensor] = []
        self.hidden = torch.empty(0)

    def restart(self) -> None:
        self.prefix.reset()
        self.pending.clear()

    def push(self, chosen: Tensor) -> None:
        self.pending.append(chosen)

    def ready(self, sessions: int) -> Prefix:
        """Return the prefix of the first `sessions` sessions, with all pushed tokens appended."""
        for tokens in self.pending:
            self.hidden = self.prefix.append(tokens[:sessions], self.wants_hidden)
        self.pending.clear()
        return self.prefix


class Options(NamedTuple):
    """The real candidates of one position of a batch, without padding, session by session."""

    session: Tensor  # (M,)
    poi: Tensor  # (M,)
    place: Tensor  # (M,) index into the flattened grid (B, K)
    layout: Layout | None  # None on CUDA, where the whole padded grid is scored: few calls matter more than padding
    unique: Tensor | None  # (U,) only at the start of a window, where hidden states depend on the candidate alone
    inverse: Tensor | None  # (M,) poi = unique[inverse]


@dataclass(eq=False)
class Position:
    """Position i of a batch of sessions: all that a method may use to choose. Row b is session b of the batch."""

    candidates: Tensor  # (B, K) int64, the candidate set of the anchor, padded with 0
    feasible: Tensor  # (B, K) bool, the speed mask; the anchor is kept where a row is all False
    anchor: Tensor  # (B,) the clean venue
    anchor_feasible: Tensor  # (B,) bool, the speed mask of the anchor
    target: Tensor  # (B,) clean p_{i+1}; p_{i-1} at a session's last position; 0 in a session of one
    index: Tensor  # (B,) the number of the position in Sessions
    options: Options = field(repr=False)
    _surrogate: CachedModel | None = field(repr=False)
    _trajectory_lm: CachedModel | None = field(repr=False)
    _precision: Precision = field(repr=False)
    _adv: Tensor | None = field(default=None, repr=False)
    _mani: Tensor | None = field(default=None, repr=False)

    def adv(self) -> Tensor:
        """Return -log S_phi(target | prefix, candidate at i), (B, K); -inf for padding and infeasible candidates."""
        if self._adv is None:
            with torch.no_grad(), precise(self._precision, self.anchor.device):
                self._adv = self._score_adv()
        return self._adv

    def mani(self) -> Tensor:
        """Return log T_psi(candidate | prefix), (B, K); -inf for padding and infeasible candidates."""
        if self._mani is None:
            with torch.no_grad(), precise(self._precision, self.anchor.device):
                self._mani = self._score_mani()
        return self._mani

    def loss(self, embedding: Tensor) -> Tensor:
        """Return -log S_phi(target | prefix, embedding at i), (B, d) -> (B,), differentiable; 0 without a target."""
        s = _given(self._surrogate, "surrogate")
        with precise(self._precision, self.anchor.device):
            with torch.no_grad():
                prefix = s.ready(len(self.anchor))
            hidden = prefix.peek(embedding).float()
            return s.readout.losses(hidden, self.target.clamp(min=1)) * (self.target > 0)

    def embedding(self, poi: Tensor) -> Tensor:
        """Return the surrogate's embedding of POIs (...,) -> (..., d), without gradient."""
        return _given(self._surrogate, "surrogate").model.embedding.detach()[poi]

    def zeros(self) -> Tensor:
        """Return equal scores, (B, K) in float64."""
        return torch.zeros_like(self.feasible, dtype=torch.float64)

    def sample(self, log_weight: Tensor, uniform: Tensor, entropy_floor: float = 0.0) -> Tensor:
        """Draw a feasible column (B,) with P proportional to exp(log_weight). `entropy_floor` is in bits."""
        log_weight = log_weight.masked_fill(~self.feasible, -torch.inf)
        return sample(with_entropy_floor(log_weight, entropy_floor) if entropy_floor else log_weight, uniform)

    def _score_adv(self) -> Tensor:
        s, o = _given(self._surrogate, "surrogate"), self._feasible_options()
        prefix = s.ready(len(self.anchor))
        target = self.target[o.session]
        if len(target) == 0:
            return self._to_grid(o, target)
        if o.unique is not None and o.inverse is not None:
            hidden = prefix.peek(o.unique)
            value = s.readout.log_partition(hidden)[o.inverse] - s.readout.logit_of(hidden[o.inverse], target)
        else:
            hidden = prefix.peek(o.poi, o.layout) if o.layout else prefix.peek(self.candidates)[o.place]
            value = -s.readout.log_prob_of(hidden, target)
        return self._to_grid(o, value * (target > 0))

    def _score_mani(self) -> Tensor:
        t, o = _given(self._trajectory_lm, "trajectory LM"), self._feasible_options()
        prefix = t.ready(len(self.anchor))
        hidden = t.hidden[: len(self.anchor)]
        if prefix.length == 1:  # only the start token: all sessions share one state
            log_z = t.readout.log_partition(hidden[:1]).expand(len(hidden))
        elif o.layout is None:
            log_z = t.readout.log_partition(hidden)
        else:  # only sessions with a candidate
            asked = torch.bincount(o.session, minlength=len(hidden)).nonzero().squeeze(1)
            log_z = hidden.new_zeros(len(hidden)).index_copy_(0, asked, t.readout.log_partition(hidden[asked]))
        return self._to_grid(o, t.readout.logit_of(hidden[o.session], o.poi) - log_z[o.session])

    def _feasible_options(self) -> Options:
        """Drop infeasible candidates on a CPU. CUDA scores them, too: the host would have to wait for their number."""
        o = self.options
        if o.layout is None:
            return o
        keep = self.feasible.flatten()[o.place]
        if keep.all():
            return o
        session, poi, place, first, k, width = (a[keep] for a in (*o[:3], *o.layout[2:]))
        layout = Layout(o.layout.groups, o.layout.places, first, k, width)
        return Options(session, poi, place, layout, o.unique, None if o.inverse is None else o.inverse[keep])

    def _to_grid(self, o: Options, value: Tensor) -> Tensor:
        out = torch.full(self.candidates.shape, -torch.inf, device=value.device)
        out.view(-1).index_copy_(0, o.place, value.float())
        return out.masked_fill_(~self.feasible, -torch.inf)


def _given(model: CachedModel | None, name: str) -> CachedModel:
    if model is None:
        raise ValueError(f"this walk has no {name} to score with; pass one to walk()")
    return model
