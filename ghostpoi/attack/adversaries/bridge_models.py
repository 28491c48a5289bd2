"""The models of A2, its variants and A10, which need torch: `answers` and `paired_answer` restore with them.

A2 trains a causal Transformer. A10 learns the way back along a categorical bridge, a chain of uniform jumps between a
clean and a released POI, which is known in closed form. One step is Q = (1 - b) I + b 11'/P, so n steps are Q^n =
a_n I + (1 - a_n) 11'/P with a_n = (1 - b)^n. The bridge needs one kind of distribution only: where a chain stands that
left x_0 i steps ago and reaches y in j steps, with weight Q^i[x_0, x] Q^j[x, y]. Its state has i = n, j = N - n and y
the released POI; its posterior has i = n - 1, j = 1 and y the present state. POIs are 1..P. All results have the
floating type of the tensor of steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.attack.adversaries.base import leak_mixed
from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.sessions import Sessions, spans
from ghostpoi.draw.channel import Channel
from ghostpoi.models import fit
from ghostpoi.models.devices import precise, seeded
from ghostpoi.models.training_windows import Windows, aligned, from_start
from ghostpoi.models.trajectory_lm import pretrain
from ghostpoi.models.transformer import Block, CausalTransformer, Packing
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings

if TYPE_CHECKING:
    from ghostpoi.attack.adversaries.bridges import Bridge, PairedBridge

TINY = 1e-30
NEVER = -1e9  # a logit that stays finite
HOURS = 24
LONGEST_GAP_S = 86_400.0  # of a session: log gaps are scaled to 0..1
BATCH_POSITIONS = (1 << 13, 1 << 18)  # padded positions read at once in sampling: on a CPU, on CUDA


class Support(NamedTuple):
    """A predicted distribution of x_0 that is 0 except at some POIs."""

    poi: Tensor  # (M, K) POIs, padded with 0
    log_belief: Tensor  # (M, K), very small at padding

    def of(self, poi: Tensor) -> Tensor:
        """Return the probability of one POI per row, (M,)."""
        return torch.where(self.poi == poi[:, None], self.log_belief.exp(), 0).sum(1)

    def guess(self, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the likeliest POI of each row, its probability, and one drawn with a number in [0, 1), (M,) each."""
        sure, best = self.log_belief.max(1)
        below = self.log_belief.exp().cumsum(1)
        # A sum of rounded numbers may end short of 1, and the last column may be padding: the uniform number is scaled.
        drawn = (below <= uniform[:, None] * below[:, -1:]).sum(1).clamp(max=below.shape[1] - 1)
        likely, other = self.poi.gather(1, torch.stack([best, drawn], 1)).unbind(1)
        return likely, sure.exp(), other


@dataclass(frozen=True)
class Chain:
    """N `steps` over `pois` POIs, each with probability `jump` (b) a jump to any POI, itself included."""

    pois: int
    steps: int
    jump: float

    def stay(self, n: Tensor) -> Tensor:
        """Return a_n, the probability that n steps had no jump."""
        return (1 - self.jump) ** n

    def between(self, start: Tensor, end: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mass at the start, at the end and spread evenly, i steps after `start` and j before `end`."""
        a, b = self.stay(i), self.stay(j)
        # (a [x = start] + (1-a)/P) (b [x = end] + (1-b)/P), times P, divided by the sum over x
        both = torch.where(start == end, self.pois * a * b, 0)
        at_start, at_end, spread = a * (1 - b) + both, b * (1 - a), (1 - a) * (1 - b)
        total = at_start + at_end + spread
        return at_start / total, at_end / total, spread / total

    def draw(self, start: Tensor, end: Tensor, i: Tensor, j: Tensor, uniform: Tensor) -> Tensor:
        """Draw a POI from `between` with two uniform numbers in [0, 1) per row, (2, M) -> (M,)."""
        at_start, at_end, _ = self.between(start, end, i, j)
        anywhere = (uniform[1] * self.pois).long().clamp(max=self.pois - 1) + 1
        arrived = torch.where(uniform[0] < at_start + at_end, end, anywhere)
        return torch.where(uniform[0] < at_start, start, arrived)

    def informed(self, logits: Tensor, poi: Tensor, now: Tensor, end: Tensor, n: Tensor) -> Support:
        """Update logits (M, K) of x_0, given everything else, by the state `now` after n steps.

        Bayes: P(x_n | x_0, x_N) is Q^n[x_0, x_n] Q^(N-n)[x_n, x_N] / Q^N[x_0, x_N], and the middle factor is the same
        for every x_0. So the network need not learn what the chain itself says about x_0, and n = N adds nothing.
        """
        here, there = self._gain(n)[:, None], -self._gain(torch.full_like(n, self.steps))[:, None]
        known = logits + torch.where(poi == now[:, None], here, 0) + torch.where(poi == end[:, None], there, 0)
        return Support(poi, known.masked_fill(poi == 0, NEVER).log_softmax(1))

    def _gain(self, n: Tensor) -> Tensor:
        a = self.stay(n)
        return torch.log1p(self.pois * a / (1 - a))  # log Q^n[x, x] - log Q^n[x, y]

    def divergence(self, clean: Tensor, now: Tensor, n: Tensor, predicted: Support) -> Tensor:
        """Return KL(posterior with the true x_0 || posterior mixed over the predicted x_0) of x_(n-1), (M,).

        Both hold the factor Q[x_(n-1), x_n]. What is left is (a [x = x_0] + z) / Q^n[x_0, x_n] for the truth and
        a r(x) / Q^n[x, x_n] + z s for the mixture, where a = a_(n-1), z = (1-a)/P, r is the prediction and s the sum of
        r / Q^n. The truth is the same for all POIs but two, so one sum over the support is enough.
        """
        a, stayed = self.stay(n - 1), self.stay(n)
        z, apart = (1 - a) / self.pois, (1 - stayed) / self.pois  # apart: Q^n[x, y] where x is not y
        home = stayed + apart
        r_now = predicted.of(now)
        q_clean = torch.where(clean == now, home, apart)
        rest = z * (r_now / home + (1 - r_now).clamp(min=0) / apart)  # z s: the mixture where r is 0
        at_clean = _log(a * predicted.of(clean) / q_clean + rest)
        at_now = _log(a * r_now / home + rest)
        # The support as if it did not hold x_n; the sum below corrects that.
        inside = _log((a / apart)[:, None] * predicted.log_belief.exp() + rest[:, None])  # (M, K)
        real = predicted.poi > 0
        everywhere = torch.where(real, inside, 0).sum(1) + at_now - _log(a * r_now / apart + rest)
        everywhere = everywhere + (self.pois - real.sum(1)) * _log(rest)

        start, end, spread = self.between(clean, now, n - 1, torch.ones_like(n))
        other = spread / self.pois
        on_clean = start + other + torch.where(clean == now, end, 0)
        true = on_clean * _log((a + z) / q_clean) + (1 - on_clean) * _log(z / q_clean)
        return true - start * at_clean - end * at_now - other * everywhere


def _log(x: Tensor) -> Tensor:
    """Return a logarithm that stays finite at 0."""
    return x.clamp(min=TINY).log()


class BidirectionalPacking(Packing):
    """Packed windows in which every position sees all others of its window."""

    def __init__(self, lengths: Longs, heads: int, device: torch.device) -> None:
        super().__init__(lengths, heads, device)
        self.real = torch.zeros(len(self.there), dtype=torch.bool, device=device).index_fill_(0, self.back, True)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, part: slice) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.real[part].view(len(q), 1, 1, -1))


class PossibleOrigins(NamedTuple):
    """The POIs that may stand behind each of M released ones: L in all, as a list and as a table."""

    row: Tensor  # (L,) from 0 to M - 1
    column: Tensor  # (L,)
    poi: Tensor  # (L,)
    log_channel: Tensor  # (L,) of the released POI given this one
    table: Tensor  # (M, K), padded with 0


class Batch(NamedTuple):
    """Some windows end to end."""

    packing: BidirectionalPacking
    options: PossibleOrigins
    place: Tensor  # (M,) the index of every position in the corpus
    released: Tensor  # (M,)
    window: Tensor  # (M,) the window of every position, from 0
    hour: Tensor  # (M,) of the day
    log_gap: Tensor  # (M,) since the check-in before


class Corpus:
    """Released sessions with their times, cut into windows."""

    def __init__(self, sessions: Sessions, channel: Channel, model: ModelSettings, device: torch.device) -> None:
        self.poi, self.channel, self.heads, self.device = sessions.poi, channel, model.heads, device
        self.length = aligned(sessions.poi, sessions, model.max_positions).length  # (W,)
        self.start = np.cumsum(self.length) - self.length
        gap = np.diff(sessions.time, prepend=0)
        gap[sessions.start[:-1][sessions.length > 0]] = 0
        self.log_gap = (np.log1p(np.maximum(gap, 0)) / np.log1p(LONGEST_GAP_S)).astype(np.float32)  # (N,)
        self.hour = sessions.time // 3600 % HOURS  # (N,)

    def batch(self, windows: Longs) -> Batch:
        """Return some windows as a batch."""
        length = self.length[windows]
        window = np.repeat(np.arange(len(windows)), length)
        place = spans(self.start[windows], length)
        released = self.poi[place].astype(np.int64)
        parts = place, released, window, self.hour[place], self.log_gap[place]
        packing = BidirectionalPacking(length, self.heads, self.device)
        return Batch(packing, self._options(released), *map(self._to, parts))

    def by_length(self, positions: int) -> Iterator[Longs]:
        """Yield all windows, longest first, at most `positions` padded positions at a time."""
        left = np.argsort(-self.length, kind="stable")
        while len(left):
            count = max(1, positions // int(self.length[left[0]]))
            yield left[:count]
            left = left[count:]

    def _options(self, released: Longs) -> PossibleOrigins:
        row, entry = self.channel.behind(released)  # (L,)
        size = np.bincount(row, minlength=len(released))
        column = np.arange(len(row)) - (np.cumsum(size) - size)[row]
        table = np.zeros((len(released), int(size.max(initial=1))), np.int64)
        poi = table[row, column] = self.channel.clean[entry]
        log_channel = np.log(np.maximum(self.channel.probability[entry], 1e-9)).astype(np.float32)
        return PossibleOrigins(*map(self._to, (row, column, poi, log_channel, table)))

    def _to(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)


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

    def hidden(self, batch: Batch, now: Tensor, n: Tensor) -> Tensor:
        """Return the hidden states of a batch whose chains are at `now` after n steps, (M,) -> (M, d)."""
        p = self.settings.dropout if self.training else 0.0
        read = F.embedding(now, self.state) + F.embedding(batch.released, self.released) + F.embedding(n, self.step)
        read = read + F.embedding(batch.hour, self.hour) + batch.log_gap[:, None] * self.gap
        x = F.dropout(read + F.embedding(batch.packing.position, self.position), p, self.training)
        for block in self.blocks:
            x = block.finish(x, batch.packing.attend(block.project(x)), p)  # type: ignore[operator]
        return self.norm(x).float()  # (M, d)

    def predict(self, hidden: Tensor, now: Tensor, end: Tensor, n: Tensor, options: PossibleOrigins) -> Support:
        """Predict x_0 among the options from hidden states (M, d) and chains (M,)."""
        each = (hidden[options.row] * F.embedding(options.poi, self.released)).sum(1) + self.bias[options.poi]  # (L,)
        each = each + options.log_channel
        logits = each.new_zeros(options.table.shape).index_put((options.row, options.column), each)
        return self.chain.informed(logits, options.table, now, end, n.float())


def paired_answer(evidence: Evidence, settings: "PairedBridge", seed: Seed, device: torch.device) -> Ints:
    """Return the POIs that win the vote of the ways back, (N,); without a leak, the release."""
    clean = evidence.clean[evidence.positions]
    if not len(clean) or evidence.leaked.all():
        return evidence.released.poi
    chain = Chain(evidence.rows - 1, settings.steps, settings.jump)
    channel = evidence.rule.channel.covering(evidence.released.poi)
    leaked, rest = (
        Corpus(evidence.released.take(which), channel, settings.model, device)
        for which in (evidence.leaked, ~evidence.leaked)
    )
    denoiser = _train_bridge(settings, chain, leaked, clean, seed)
    restored = evidence.released.poi.copy()
    restored[~evidence.positions] = _vote(settings, denoiser, rest, seed).cpu().numpy()
    return restored


def _train_bridge(settings: "PairedBridge", chain: Chain, corpus: Corpus, clean: Ints, seed: Seed) -> Denoiser:
    """Learn x_0 from random states of the bridges between the leaked pairs; the weights are averaged."""
    device, t = corpus.device, settings.training
    model = Denoiser(settings.model, chain, seed.torch_seed("paired_bridge", "weights"))
    # Among few options popularity decides most, and counting it works better than learning it from few sessions.
    model.bias.data += torch.from_numpy(np.log(np.bincount(clean, minlength=len(model.bias)) + 0.5)).float()
    model.to(device).train()
    weights: list[Tensor] = list(model.parameters())
    averaged = [w.detach().clone() for w in weights]
    optimizer = torch.optim.AdamW(weights, lr=t.learning_rate, weight_decay=t.weight_decay, fused=True)
    noise = torch.Generator(device).manual_seed(seed.torch_seed("paired_bridge", "states"))
    origin, count = torch.from_numpy(clean.astype(np.int64)).to(device), len(corpus.length)
    size = max(t.batch_sessions, -(-t.epochs * count // settings.max_updates))
    orders = (seed.generator("paired_bridge", "order", epoch).permutation(count) for epoch in range(t.epochs))
    batches = (order[at : at + size] for order in orders for at in range(0, count, size))
    with seeded(device, seed.torch_seed("paired_bridge", "dropout")):
        for number, windows in enumerate(batches):
            batch = corpus.batch(windows)
            end, x0 = batch.released, origin[batch.place]
            n = torch.randint(1, chain.steps + 1, (len(windows),), generator=noise, device=device)[batch.window]
            uniform = torch.rand(2, len(x0), generator=noise, device=device)
            now = chain.draw(x0, end, n.float(), (chain.steps - n).float(), uniform)
            with precise(t.precision, device):
                predicted = model.predict(model.hidden(batch, now, n), now, end, n, batch.options)
            likelihood = predicted.of(x0)
            each = chain.divergence(x0, now, n.float(), predicted)
            each = each - settings.cross_entropy * likelihood.clamp(min=1e-20).log()
            possible = likelihood > 0  # a release may break the rule in places
            loss = torch.where(possible, each, 0).sum() / possible.sum().clamp(min=1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            if t.clip:
                nn.utils.clip_grad_norm_(weights, t.clip)
            optimizer.step()
            # The first updates count little: the average must not keep the random weights that it starts from.
            torch._foreach_lerp_(averaged, [w.detach() for w in weights], max(1 - settings.average, 1 / (1 + number)))
    with torch.no_grad():
        torch._foreach_copy_(weights, averaged)
    return model.eval()


@torch.no_grad()
def _vote(settings: "PairedBridge", model: Denoiser, corpus: Corpus, seed: Seed) -> Tensor:
    """Return the POI with the largest total probability over all ways back, (N,)."""
    device = corpus.device
    restored = torch.empty(len(corpus.poi), dtype=torch.long, device=device)
    noise = torch.Generator(device).manual_seed(seed.torch_seed("paired_bridge", "samples"))
    for windows in corpus.by_length(BATCH_POSITIONS[device.type == "cuda"]):
        batch = corpus.batch(windows)
        ways = [_way_back(settings, model, batch, noise) for _ in range(settings.samples)]
        poi, sure = map(torch.stack, zip(*ways, strict=True))  # (samples, M)
        votes = torch.where(poi[:, None] == poi[None], sure[None], 0).sum(1)  # of all samples for the POI of each
        restored[batch.place] = poi.gather(0, votes.argmax(0, keepdim=True)).squeeze(0)
    return restored


def _way_back(settings: "PairedBridge", model: Denoiser, batch: Batch, noise: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sample from step N back to the argmax at step 1; return it and its probability, (M,) each."""
    end = now = batch.released
    for step in range(model.chain.steps, 0, -1):
        n = torch.full_like(end, step)
        with precise(settings.training.precision, end.device):
            hidden = model.hidden(batch, now, n)
        uniform = torch.rand(3, len(end), generator=noise, device=end.device)
        likely, sure, drawn = model.predict(hidden, now, end, n, batch.options).guess(uniform[2])
        now = model.chain.draw(drawn, now, (n - 1).float(), torch.ones_like(n).float(), uniform[:2])
    return likely, sure


def answers(evidence: Evidence, bridge: "Bridge", seed: Seed, device: torch.device) -> list[Ints]:
    """Return the POIs after 0, 1 .. `passes` passes, each (N,); leaked sessions stay as released."""
    if not evidence.leaked.any() or evidence.leaked.all():
        return [evidence.released.poi] * (bridge.passes + 1)
    settings = bridge.model
    model = CausalTransformer(evidence.rows, settings, seed.torch_seed("bridge", "weights")).to(device)
    _learn(model, evidence, bridge, seed)
    rest = evidence.released.take(~evidence.leaked)
    found, read = [evidence.released.poi], rest.poi
    for _ in range(bridge.passes):
        read = fit.likeliest(model, aligned(read, rest, settings.max_positions), bridge.training.precision)
        found.append(evidence.released.poi.copy())
        found[-1][~evidence.positions] = read
    return found


def _learn(model: CausalTransformer, evidence: Evidence, bridge: "Bridge", seed: Seed) -> None:
    """Train the denoiser on the leaked pairs, and on what a variant of A2 adds to them."""
    from ghostpoi.attack.adversaries.bridges import AugmentedBridge, NaturalBridge

    released, clean = evidence.pairs()
    leaked, t = replace(evidence.released.take(evidence.leaked), poi=clean), bridge.training
    windows = aligned(released, leaked, bridge.model.max_positions)
    if not isinstance(bridge, AugmentedBridge | NaturalBridge):
        return fit.train(model, windows, t, seed, ("bridge",))
    mixed = replace(evidence.released, poi=leak_mixed(evidence))
    lm = pretrain(mixed, evidence.rows, bridge.lm, seed, model.device)
    if isinstance(bridge, AugmentedBridge):
        made = [released, *natural_draws(lm, leaked, evidence, bridge.copies, seed)]
        parts = [aligned(poi, leaked, bridge.model.max_positions) for poi in made]
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in ("token", "target", "length"))
        return fit.train(model, Windows(*joined), t, seed, ("bridge",))
    optimizer, loss_of = fit.adamw(model, t), partial(_natural_loss, model, lm, bridge.natural)
    for number in range(t.epochs):
        order = seed.generator("bridge", "order", number).permutation(len(windows.length))
        model.train()
        dropout = seed.torch_seed("bridge", "dropout", number)
        fit.packed_epoch(model, optimizer, windows, order, t, dropout, loss_of)
    model.eval()
    return None


@torch.no_grad()
def natural_draws(
    lm: CausalTransformer, clean: Sessions, evidence: Evidence, copies: int, seed: Seed
) -> Iterator[Ints]:
    """Yield further releases (N,) of clean sessions, drawn by the rule and by what the LM expects behind the prefix."""
    channel = evidence.rule.channel
    order = np.argsort(channel.clean, kind="stable")
    start = np.searchsorted(channel.clean[order], np.arange(evidence.rows + 1))
    size = start[clean.poi + 1] - start[clean.poi]  # (N,) what each POI may be released as
    owner, option = np.repeat(np.arange(len(size)), size), order[spans(start[clean.poi], size)]
    substitute = channel.released[option]
    hidden = torch.cat([h for h, _ in fit.hidden_states(lm, from_start(clean, lm.settings.max_positions))])
    at, poi = torch.from_numpy(owner).to(lm.device), torch.from_numpy(substitute).to(lm.device)
    parts = zip(torch.split(at, BATCH_POSITIONS[1]), torch.split(poi, BATCH_POSITIONS[1]), strict=True)
    logit = torch.cat([lm.readout().logit_of(hidden[a], q) for a, q in parts]).double().cpu().numpy()
    logit += np.log(np.maximum(channel.probability[option], TINY))
    first = (np.cumsum(size) - size)[size > 0]
    for copy in range(copies):
        noisy = logit + seed.generator("bridge", "copy", copy).gumbel(size=len(logit))
        best = noisy == np.repeat(np.maximum.reduceat(noisy, first), size[size > 0])
        drawn = clean.poi.copy()  # one without substitutes stays
        drawn[owner[best]] = substitute[best]
        yield drawn


def _natural_loss(model: CausalTransformer, lm: CausalTransformer, weight: float, batch: Windows) -> Tensor:
    """Return the loss of a denoiser that also counts how unlikely its answers are to the LM behind the clean prefix."""
    loss, hidden = fit.losses(model, batch)
    with torch.no_grad():
        natural = lm.log_probs(lm.hidden(torch.from_numpy(batch.behind).to(lm.device), batch.length).float())
        natural[:, 0] = 0  # padding is never restored
    return loss - weight * (model.log_probs(hidden).exp() * natural).sum(1).mean()
