"""A10: the paired categorical bridge, the faithful form of A2."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.attack.inference.categorical import Chain, Support
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models import fit
from ghostpoi.models.devices import precise, seeded
from ghostpoi.models.transformer import Block, Packing, Pad, Unpad
from ghostpoi.models.windows import aligned
from ghostpoi.publish.channel import Channel
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

HOURS = 24
LONGEST_GAP_S = 86_400.0  # of a session: log gaps are scaled to 0..1
MODEL = ModelSettings(dropout=0.1)
TRAINING = Training(epochs=50, batch_sessions=64)  # a leak of a few hundred sessions is soon known by heart
BATCH_POSITIONS = (1 << 13, 1 << 18)  # padded positions read at once in sampling: on a CPU, on CUDA


@dataclass(frozen=True)
class PairedBridge:
    """A10 holds leaked (clean, released) pairs and learns the way back from released to clean sessions step by step.

    Between a clean and a released POI lies a chain of N uniform jumps. A bidirectional Transformer, given the released
    session, the state of the chain at step n and the times, learns on the leaked sessions which clean POIs the chain
    came from; from N down to 1 it then draws every other session's way back, each step on what the whole session has
    become so far, and the last step takes the likeliest. Several such ways vote. Whoever knows the candidate rule also
    knows that only the POIs of A(released) can stand behind a released one, and asks for no other. Without a leak there
    is nothing to learn from, and the release stays.
    """

    model: ModelSettings = MODEL
    training: Training = TRAINING
    most_updates: int = 500  # a leak too large for that is read in larger batches
    steps: int = 32  # N
    jump: float = 0.03  # b
    cross_entropy: float = 0.5  # lambda: its weight beside the divergence of posteriors
    average: float = 0.99  # of weights, per update
    samples: int = 8  # ways back that vote; 1 is one sample
    restricted: bool = True  # to A(released), where the evidence has the rule
    uses_leak: ClassVar[bool] = True

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """What most of the ways back lead to."""
        released, clean = evidence.pairs()
        if not len(clean) or evidence.leaked.all():
            return evidence.released.poi
        chain = Chain(evidence.rows - 1, self.steps, self.jump)
        channel = evidence.rule.channel.covering(evidence.released.poi) if evidence.rule and self.restricted else None
        leaked, rest = (
            Corpus(evidence.released.take(which), channel, self.model, device)
            for which in (evidence.leaked, ~evidence.leaked)
        )
        denoiser = self._train(chain, leaked, clean, seed)
        restored = evidence.released.poi.copy()
        restored[~evidence.positions] = self._vote(chain, denoiser, rest, seed).cpu().numpy()
        if channel is None:  # of a released POI that never leaked the denoiser knows nothing: it stays, as in A3
            unknown = ~np.isin(evidence.released.poi, released)
            restored[unknown] = evidence.released.poi[unknown]
        return restored

    def _train(self, chain: Chain, corpus: "Corpus", clean: Ints, seed: Seed) -> "Denoiser":
        """Learn x_0 from random states of the bridges between the leaked pairs; the weights are averaged."""
        device, t = corpus.device, self.training
        model = Denoiser(self.model, chain, seed.torch_seed("paired_bridge", "weights"))
        if corpus.channel is not None:
            # Among a few options popularity decides most, and it is better counted than learned from few sessions.
            model.bias.data += torch.from_numpy(np.log(np.bincount(clean, minlength=len(model.bias)) + 0.5)).float()
        model.to(device).train()
        weights = list(model.parameters())
        averaged = [w.detach().clone() for w in weights]
        optimizer = torch.optim.AdamW(weights, lr=t.learning_rate, weight_decay=t.weight_decay, fused=True)
        noise = torch.Generator(device).manual_seed(seed.torch_seed("paired_bridge", "states"))
        with seeded(device, seed.torch_seed("paired_bridge", "dropout")):
            for number, (batch, x0) in enumerate(self._batches(corpus, clean, seed)):
                n = torch.randint(1, chain.steps + 1, (batch.windows,), generator=noise, device=device)[batch.window]
                end = batch.released
                uniform = torch.rand(2, len(x0), generator=noise, device=device)
                now = chain.draw(x0, end, n.float(), (chain.steps - n).float(), uniform)
                with precise(t.precision, device):
                    predicted = model.belief(model.hidden(corpus, batch, now, end, n), now, end, n, batch.options)
                lost = self._loss(chain, x0, now, n.float(), predicted)
                optimizer.zero_grad(set_to_none=True)
                lost.backward()  # type: ignore[no-untyped-call]
                if t.clip:
                    nn.utils.clip_grad_norm_(weights, t.clip)
                optimizer.step()
                # The first updates count little: an average that starts at random weights would keep them.
                torch._foreach_lerp_(averaged, [w.detach() for w in weights], max(1 - self.average, 1 / (1 + number)))
        with torch.no_grad():
            for weight, average in zip(weights, averaged, strict=True):
                weight.copy_(average)
        return model.eval()

    def _loss(self, chain: Chain, x0: Tensor, now: Tensor, n: Tensor, predicted: Support) -> Tensor:
        """The mean over positions whose clean POI the belief can name: a rule may be broken here and there."""
        divergence = chain.divergence(x0, now, n, predicted)
        likelihood = predicted.of(x0)
        each = divergence - self.cross_entropy * likelihood.clamp(min=1e-20).log()
        can = likelihood > 0
        return torch.where(can, each, 0).sum() / can.sum().clamp(min=1)

    def _batches(self, corpus: "Corpus", clean: Ints, seed: Seed) -> Iterator[tuple["Batch", Tensor]]:
        """All windows and their clean POIs (M,), in every epoch in an order of its own."""
        origin = torch.from_numpy(clean.astype(np.int64)).to(corpus.device)
        epochs, windows = self.training.epochs, len(corpus.length)
        size = max(self.training.batch_sessions, -(-epochs * windows // self.most_updates))
        for epoch in range(epochs):
            order = seed.generator("paired_bridge", "order", epoch).permutation(windows)
            for first in range(0, windows, size):
                batch = corpus.batch(order[first : first + size])
                yield batch, origin[batch.place]

    @torch.no_grad()
    def _vote(self, chain: Chain, model: "Denoiser", corpus: "Corpus", seed: Seed) -> Tensor:
        """The POI that the ways back find likeliest together, (N,)."""
        device = corpus.device
        restored = torch.empty(len(corpus.poi), dtype=torch.long, device=device)
        noise = torch.Generator(device).manual_seed(seed.torch_seed("paired_bridge", "samples"))
        for windows in corpus.by_length(BATCH_POSITIONS[device.type == "cuda"]):
            batch = corpus.batch(windows)
            ways = (self._way_back(chain, model, corpus, batch, noise) for _ in range(self.samples))
            found, share = zip(*ways, strict=True)
            poi, sure = torch.stack(found), torch.stack(share)  # (samples, M)
            votes = torch.where(poi[:, None] == poi[None], sure[None], 0).sum(1)  # of all for the POI of each
            restored[batch.place] = poi.gather(0, votes.argmax(0, keepdim=True)).squeeze(0)
        return restored

    def _way_back(
        self, chain: Chain, model: "Denoiser", corpus: "Corpus", batch: "Batch", noise: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """One sample from step N to the argmax at step 1, and how sure the last step was of it, (M,) each."""
        end = now = batch.released
        for step in range(chain.steps, 0, -1):
            n = torch.full_like(end, step)
            with precise(self.training.precision, end.device):
                hidden = model.hidden(corpus, batch, now, end, n)
            uniform = torch.rand(3, len(end), generator=noise, device=end.device)
            likely, sure, drawn = model.guess(hidden, now, end, n, batch.options, uniform[2])
            if step == 1:
                now = likely
            else:
                now = chain.draw(drawn, now, (n - 1).float(), torch.ones_like(n).float(), uniform[:2])
        return now, sure


class Options(NamedTuple):
    """The POIs that may stand behind each of M released ones: L in all, and the same in a table."""

    row: Tensor  # (L,) from 0 to M - 1
    column: Tensor  # (L,)
    poi: Tensor  # (L,)
    log_channel: Tensor  # (L,) of the released POI given this one
    table: Tensor  # (M, K), padded with 0


class Batch(NamedTuple):
    """Some windows end to end."""

    packing: "BothWays"
    place: Tensor  # (M,) of every position in the corpus
    released: Tensor  # (M,)
    window: Tensor  # (M,) of every position, from 0
    windows: int
    options: Options | None  # None: every POI


class Corpus:
    """Released sessions with their times, cut in windows, on a device."""

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
        """These windows."""
        length = self.length[windows]
        window = np.repeat(np.arange(len(windows)), length)
        place = (self.start[windows] - (np.cumsum(length) - length))[window] + np.arange(len(window))
        packing = BothWays(length, self.heads, self.device)
        released = self.poi[place].astype(np.int64)
        at, poi, of = (self._to(a) for a in (place, released, window))
        return Batch(packing, at, poi, of, len(windows), self._options(released))

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

    def by_length(self, positions: int) -> Iterator[Longs]:
        """All windows, longest first, at most so many padded positions at a time."""
        order = np.argsort(-self.length, kind="stable")
        first = 0
        while first < len(order):
            count = max(1, positions // int(self.length[order[first]]))
            yield order[first : first + count]
            first += count


class BothWays(Packing):
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
        together = out[0] if len(out) == 1 else torch.cat(out)
        return Unpad.apply(together, self.there, self.back)  # type: ignore[no-any-return,no-untyped-call]


class Denoiser(nn.Module):
    """A bidirectional Transformer that reads the chain's state, the released session, the step and the times."""

    def __init__(self, s: ModelSettings, chain: Chain, seed: int) -> None:
        super().__init__()
        self.settings, self.chain = s, chain
        rows = chain.pois + 1
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach CUDA's generators too
            self.state, self.released = (nn.Parameter(torch.randn(rows, s.dim) * 0.02) for _ in range(2))
            self.position, self.step, self.hour = (
                nn.Parameter(torch.randn(n, s.dim) * 0.02) for n in (s.max_positions, chain.steps + 1, HOURS)
            )
            self.gap = nn.Parameter(torch.randn(1, s.dim) * 0.02)  # torch's own start would drown out all embeddings
            self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
            for name, weight in self.blocks.named_parameters():
                if name.endswith("bias"):
                    nn.init.zeros_(weight)
                elif weight.dim() == 2:
                    nn.init.normal_(weight, std=0.02)
            self.norm = nn.LayerNorm(s.dim)
        self.bias = nn.Parameter(torch.zeros(rows))

    def hidden(self, corpus: Corpus, batch: Batch, now: Tensor, end: Tensor, n: Tensor) -> Tensor:
        """Hidden states of a batch whose chains are at `now` after n steps, (M,) -> (M, d)."""
        p = self.settings.dropout if self.training else 0.0
        place = batch.place
        read = F.embedding(now, self.state) + F.embedding(end, self.released) + F.embedding(n, self.step)
        read = read + F.embedding(corpus.hour[place], self.hour) + corpus.log_gap[place, None] * self.gap
        x = F.dropout(read + F.embedding(batch.packing.position, self.position), p, self.training)
        for block in self.blocks:
            x = block.finish(x, batch.packing.attend(block.project(x)), p)  # type: ignore[operator]
        return self.norm(x).float()  # type: ignore[no-any-return]  # (M, d)

    def belief(self, hidden: Tensor, now: Tensor, end: Tensor, n: Tensor, options: Options | None) -> Support:
        """What x_0 may be, over all POIs or over the options alone; arguments (M, d) and (M,)."""
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
        """The likeliest x_0, its probability, and one drawn by a uniform number, (M,) each."""
        if options is not None:
            return self.belief(hidden, now, end, n, options).guess(uniform)
        logits = fit.RANK_LOGITS if hidden.device.type == "cpu" else fit.RANK_LOGITS_CUDA
        at_once = max(1, logits // self.chain.pois)
        parts = (slice(at, at + at_once) for at in range(0, len(n), at_once))
        found = [self.belief(hidden[i], now[i], end[i], n[i], None).guess(uniform[i]) for i in parts]
        likely, sure, drawn = (torch.cat(column) for column in zip(*found, strict=True))
        return likely, sure, drawn
