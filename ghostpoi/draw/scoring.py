"""One position of a batch of sessions, and the scores adv(p') and mani(p') of its candidates.

A score takes one new token on the session's cached prefix. It equals a forward pass over the whole prefix.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from ghostpoi.models.devices import precise
from ghostpoi.models.output_layer import Readout
from ghostpoi.models.prefix_cache import Layout, Prefix
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import Precision

BISECTIONS = 40


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
        self.prefix.length = 0
        self.pending.clear()

    def ready(self, sessions: int) -> Prefix:
        """Return the prefix of the first `sessions` sessions, with all pushed tokens appended."""
        for tokens in self.pending:
            self.hidden = self.prefix.append(tokens[:sessions], self.wants_hidden)
        self.pending.clear()
        return self.prefix


class Options(NamedTuple):
    """The real candidates of one position of a batch, without padding, session by session. The scores of a CPU."""

    session: Tensor  # (M,)
    poi: Tensor  # (M,)
    place: Tensor  # (M,) index into the flattened grid (B, K)
    layout: Layout
    unique: Tensor | None  # (U,) only at the start of a window, where hidden states depend on the candidate alone
    inverse: Tensor | None  # (M,) poi = unique[inverse]


class PaddedOptions(NamedTuple):
    """The same for CUDA. There the whole grid is read, with its padding: few calls matter more than little work."""

    place: Tensor  # (M,) index of each real candidate into the flattened grid (B, K)
    back: Tensor  # (B*K,) index of each place of the grid into the real candidates; any for padding
    column: Tensor  # (B, K) candidate - 1; 0 for padding
    target: Tensor  # (M, 1) target - 1; 0 without a target
    sign: Tensor  # (M,) -1 with a target, else 0


@dataclass(eq=False, repr=False)
class Position:
    """Position i of a batch of sessions: all that a method may use to choose. Row b is session b of the batch."""

    candidates: Tensor  # (B, K) int64, the candidate set of the anchor, padded with 0
    feasible: Tensor  # (B, K) bool, the speed mask; the anchor is kept where a row is all False
    anchor: Tensor  # (B,) the clean venue
    anchor_feasible: Tensor  # (B,) bool, the speed mask of the anchor
    target: Tensor  # (B,) clean p_{i+1}; p_{i-1} at a session's last position; 0 in a session of one
    index: Tensor  # (B,) the number of the position in Sessions
    log_weight: Tensor  # (B, K), or (B, 1) if all candidates weigh the same
    options: Options | PaddedOptions
    _surrogate: CachedModel | None
    _trajectory_lm: CachedModel | None
    _precision: Precision
    _scores: dict[str, Tensor] = field(default_factory=dict)

    @cached_property
    def infeasible(self) -> Tensor:
        """The complement of `feasible`, (B, K)."""
        return ~self.feasible

    def adv(self) -> Tensor:
        """Return -log S_phi(target | prefix, candidate at i), (B, K); -inf for padding and infeasible candidates."""
        return self._scored("adv", self._score_adv)

    def mani(self) -> Tensor:
        """Return log T_psi(candidate | prefix), (B, K); -inf for padding and infeasible candidates."""

        def score() -> Tensor:
            t = _given(self._trajectory_lm, "trajectory LM")
            t.ready(len(self.anchor))
            return self._predicted(t, shared=t.prefix.length == 1)  # after the start token, sessions share one state

        return self._scored("mani", score)

    @property
    def has_prefix(self) -> bool:
        """Whether the surrogate has seen an earlier position of the sessions, in this window."""
        s = _given(self._surrogate, "surrogate")
        return s.prefix.length + len(s.pending) > 0

    def likelihood(self) -> Tensor:
        """Return log S_phi(candidate | prefix), (B, K), if `has_prefix`; -inf for padding and infeasible candidates."""

        def score() -> Tensor:
            s = _given(self._surrogate, "surrogate")
            if not (s.wants_hidden and self.has_prefix):
                raise ValueError("the surrogate predicts nothing here; see `needs_likelihood` and `has_prefix`")
            s.ready(len(self.anchor))
            return self._predicted(s)

        return self._scored("likelihood", score)

    def _scored(self, name: str, score: Callable[[], Tensor]) -> Tensor:
        if name not in self._scores:
            with torch.no_grad(), precise(self._precision, self.anchor.device):
                self._scores[name] = score()
        return self._scores[name]

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

    def weights(self) -> Tensor:
        """Return the logarithms of the weights that the candidate sets give, (B, K) in float64."""
        return self.zeros() + self.log_weight

    def sample(self, log_weight: Tensor, uniform: Tensor, entropy_floor: float = 0.0) -> Tensor:
        """Draw a feasible column (B,) with P proportional to exp(log_weight). `entropy_floor` is in bits."""
        log_weight = log_weight.masked_fill(self.infeasible, -torch.inf)
        return sample(with_entropy_floor(log_weight, entropy_floor) if entropy_floor else log_weight, uniform)

    def _score_adv(self) -> Tensor:
        s = _given(self._surrogate, "surrogate")
        prefix = s.ready(len(self.anchor))
        if isinstance(self.options, PaddedOptions):
            return self._score_padded_adv(s, prefix, self.options)
        o = self._feasible_options(self.options)
        target = self.target[o.session]
        if len(target) == 0:
            return self._to_grid(o, target)
        if o.unique is not None and o.inverse is not None:
            hidden = prefix.peek(o.unique)
            value = s.readout.log_partition(hidden)[o.inverse] - s.readout.logit_of(hidden[o.inverse], target)
        else:
            value = -s.readout.log_prob_of(prefix.peek(o.poi, o.layout), target)
        return self._to_grid(o, value * (target > 0))

    def _score_padded_adv(self, s: CachedModel, prefix: Prefix, o: PaddedOptions) -> Tensor:
        if len(o.place) == 0:
            return torch.full(self.candidates.shape, -torch.inf, device=o.place.device)
        hidden = prefix.peek(self.candidates).index_select(0, o.place)  # logits cost too much to read padding
        value = s.readout.log_probs_of(hidden, o.target).squeeze(1) * o.sign
        return value.index_select(0, o.back).view(self.candidates.shape).masked_fill_(self.infeasible, -torch.inf)

    def _predicted(self, model: CachedModel, shared: bool = False) -> Tensor:
        """Return log P(candidate | prefix), (B, K). `shared`: all sessions have the same state."""
        hidden, readout = model.hidden[: len(self.anchor)], model.readout
        if isinstance(self.options, PaddedOptions):
            value = readout.log_probs_of(hidden, self.options.column)
            return value.masked_fill_(self.infeasible, -torch.inf)
        o = self._feasible_options(self.options)
        if shared:
            log_z = readout.log_partition(hidden[:1]).expand(len(hidden))
        else:  # only sessions with a candidate
            asked = torch.bincount(o.session, minlength=len(hidden)).nonzero().squeeze(1)
            log_z = hidden.new_zeros(len(hidden)).index_copy_(0, asked, readout.log_partition(hidden[asked]))
        return self._to_grid(o, readout.logit_of(hidden[o.session], o.poi) - log_z[o.session])

    def _feasible_options(self, o: Options) -> Options:
        """Drop infeasible candidates. CUDA scores them, too: the host would have to wait for their number."""
        keep = self.feasible.flatten()[o.place]
        if keep.all():
            return o
        session, poi, place, first, k, width = (a[keep] for a in (*o[:3], *o.layout[2:]))
        layout = Layout(o.layout.groups, o.layout.places, first, k, width)
        return Options(session, poi, place, layout, o.unique, None if o.inverse is None else o.inverse[keep])

    def _to_grid(self, o: Options, value: Tensor) -> Tensor:
        out = torch.full(self.candidates.shape, -torch.inf, device=value.device)
        out.view(-1).index_copy_(0, o.place, value.float())
        return out.masked_fill_(self.infeasible, -torch.inf)


def _given(model: CachedModel | None, name: str) -> CachedModel:
    if model is None:
        raise ValueError(f"this walk has no {name} to score with; give one to Walker")
    return model


def sample(log_weight: Tensor, uniform: Tensor) -> Tensor:
    """Draw one column of each row with probability proportional to exp(log_weight); -inf is never drawn.

    A draw takes one given uniform number, so batches and threads do not change it.
    """
    cumulative = torch.softmax(log_weight.double(), 1).cumsum(1)  # (B, K); NaN, and column 0, if nothing can be drawn
    total = cumulative[:, -1:]
    # Rounding may lift the draw to the total. It then gets the last column that adds to it.
    return ((cumulative <= uniform[:, None] * total) & (cumulative < total)).sum(1)


def with_entropy_floor(log_weight: Tensor, bits: float) -> Tensor:
    """Mix in the smallest uniform share that lifts the entropy to min(bits, log2 |C|). Return log-probabilities."""
    real = log_weight > -torch.inf
    p = torch.softmax(log_weight, 1).nan_to_num(0.0)
    size = real.sum(1, keepdim=True).clamp(min=1)
    uniform = real.to(p.dtype) / size
    floor = torch.log2(size.double()).clamp(max=bits)
    low, high = torch.zeros_like(floor), torch.ones_like(floor)  # entropy increases with the uniform share
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = _entropy(torch.lerp(p, uniform, middle)) >= floor
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    share = high.masked_fill(_entropy(p) >= floor, 0.0)
    return torch.lerp(p, uniform, share).log()


def _entropy(p: Tensor) -> Tensor:
    nats: Tensor = torch.special.entr(p)
    return nats.sum(1, keepdim=True) / math.log(2)  # (B, 1) bits
