"""The model of A23: a Transformer over users, hours and crowds that learns from A21's soft labels.

A21 spreads every visit over the venues that may be behind it. The Transformer reads the mean of their embeddings, with
those of the crowd, the user and the hour, and maximises the marginal likelihood of the next visit: the probability that
it gives to all the venues that may be behind it, each weighted by its share. Its predictions are blended with A21's
counts, with the weight that predicts clean validation sessions best.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.attack.counting import CountingModel, SoftSessions
from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.fit import adamw, packed_epoch
from ghostpoi.models.training_windows import Windows, next_place
from ghostpoi.models.transformer import CausalTransformer, Packing
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

HOUR_S, HOURS = 3600, 7 * 24
STAGE = ("learned posterior",)  # of the seeds of weights, batches and dropout
WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)  # of the Transformer in the blend, tried on validation sessions
READ = 512  # windows read at once without gradients
TINY = 1e-12


def crowds_of(evidence: Evidence) -> Longs:
    """Number the crowds, (P+1,): venues with the same candidates share one."""
    return np.unique(evidence.rule.candidates.poi, axis=0, return_inverse=True)[1].reshape(-1)


def blended(
    soft: SoftSessions, counts: CountingModel, evidence: Evidence, validation: Sessions, shape: ModelSettings,
    training: Training, seed: Seed, device: torch.device,
) -> "Blend":  # fmt: skip
    """Train the Transformer on soft sessions, and blend it with what counts predict."""
    users = 1 + max(int(s.user.max(initial=0)) for s in (soft.sessions, validation))
    reader = Reader(evidence.rows, crowds_of(evidence), users, shape, seed.torch_seed(*STAGE)).to(device)
    reader.learn(soft, validation, training, seed)
    return Blend(counts, reader, 0.0).chosen(validation)


@dataclass(frozen=True)
class Visits:
    """What is known about some visits, on the device of the model."""

    poi: Tensor  # (N, K)
    share: Tensor  # (N, K)
    crowd: Tensor  # (N,)
    user: Tensor  # (N,) 0: unknown
    hour: Tensor  # (N,)

    def take(self, which: Tensor) -> "Visits":
        return Visits(*(part[which] for part in vars(self).values()))


class Reader(CausalTransformer):
    """A Transformer whose inputs are visits spread over several venues."""

    def __init__(self, rows: int, crowd_of: Longs, users: int, settings: ModelSettings, seed: int) -> None:
        super().__init__(rows, settings, seed)
        self.users = users
        self.register_buffer("crowd_of", torch.from_numpy(crowd_of))
        self.crowd = nn.Parameter(torch.zeros(int(crowd_of.max(initial=0)) + 1, settings.dim))
        self.user = nn.Parameter(torch.zeros(users + 1, settings.dim))  # 0 stands for users without sessions
        self.hour = nn.Parameter(torch.zeros(HOURS, settings.dim))

    def visits(self, soft: SoftSessions) -> Visits:
        """Move soft sessions to the device of the model. The crowd of a visit is that of its likeliest venue."""
        s = soft.sessions
        user = np.repeat(s.user, s.length).astype(np.int64)
        arrays = (
            np.where(soft.poi < self.rows, soft.poi, 0).astype(np.int64), soft.share.astype(np.float32),
            np.where(user < self.users, user + 1, 0), s.time // HOUR_S % HOURS,
        )  # fmt: skip
        poi, share, known, hour = (torch.from_numpy(array).to(self.device) for array in arrays)
        return Visits(poi, share, self.crowd_of[poi[:, 0]], known, hour)  # type: ignore[index]

    def read(self, visits: Visits, lengths: Longs) -> Tensor:
        """Return the hidden states of packed windows of visits, (N, d)."""
        x = (F.embedding(visits.poi, self.embedding) * visits.share[:, :, None]).sum(1)
        x = x + F.embedding(visits.crowd, self.crowd) + F.embedding(visits.user, self.user)
        return self.through(x + F.embedding(visits.hour, self.hour), Packing(lengths, self.settings.heads, self.device))

    def learn(self, soft: SoftSessions, validation: Sessions, training: Training, seed: Seed) -> None:
        """Train with early stopping by the accuracy on clean validation sessions."""
        visits, windows = self.visits(soft), next_place(soft.sessions, self.settings.max_positions)
        optimizer, best, waited, kept = adamw(self, training), -1.0, 0, self.state_dict()
        for number in range(training.epochs):
            self.train()
            order = seed.generator(*STAGE, "order", number).permutation(len(windows.length))
            dropout = seed.torch_seed(*STAGE, "dropout", number)
            packed_epoch(self, optimizer, windows, order, training, dropout, partial(self.marginal_loss, visits))
            now = self.accuracy(validation)
            if now > best:
                best, waited = now, 0
                kept = {name: weight.detach().clone() for name, weight in self.state_dict().items()}
            elif (waited := waited + 1) >= training.patience:
                break
        self.load_state_dict(kept)
        self.eval()

    def marginal_loss(self, visits: Visits, batch: Windows) -> Tensor:
        """Return -log of the probability of all venues that may be behind the next visits, by their shares; a mean."""
        token, target = (torch.from_numpy(a).to(self.device) for a in (batch.token, batch.target))
        log_p = self.log_probs(self.read(visits.take(token), batch.length))
        log_p = log_p.gather(1, visits.poi[target]) + torch.log(visits.share[target] + TINY)
        return -torch.logsumexp(log_p, 1).mean()

    @torch.no_grad()
    def states_of(self, sessions: Sessions) -> Tensor:
        """Return the hidden state before every step of clean sessions, (n, d)."""
        self.eval()
        visits, windows = self.visits(SoftSessions.hard(sessions)), next_place(sessions, self.settings.max_positions)
        batches = windows.batches(np.arange(len(windows.length)), READ)
        some = [self.read(visits.take(torch.from_numpy(b.token).to(self.device)), b.length) for b in batches]
        return torch.cat(some) if some else torch.zeros(0, self.settings.dim, device=self.device)

    @torch.no_grad()
    def probabilities_of(self, states: Tensor) -> Tensor:
        """Return the probability of each venue, (n, P+1), 0 in column 0."""
        return torch.exp(self.log_probs(states))

    def accuracy(self, sessions: Sessions) -> float:
        """Return how often the likeliest venue is the next one."""
        target, hits = torch.from_numpy(targets(sessions)).to(self.device), 0
        for states, goal in zip(torch.split(self.states_of(sessions), READ), torch.split(target, READ), strict=True):
            hits += int((self.probabilities_of(states).argmax(1) == goal).sum())
        return hits / max(1, len(target))


@dataclass(frozen=True)
class Blend:
    """A scorer: the mean of what counts and the Transformer predict, which `weight` shares between them."""

    counts: CountingModel  # of A21
    reader: Reader
    weight: float  # of the Transformer

    def probabilities(self, sessions: Sessions) -> Iterator[Tensor]:
        """Yield the probabilities of the venues after each step, some steps at a time."""
        for counted, read in self._both(sessions):
            yield torch.lerp(counted, read, self.weight)

    def chosen(self, validation: Sessions) -> "Blend":
        """Return the blend with the weight that predicts these sessions best, the smallest of equals."""
        target, at, hits = torch.from_numpy(targets(validation)).to(self.reader.device), 0, [0] * len(WEIGHTS)
        for counted, read in self._both(validation):
            goal = target[at : at + len(read)]
            at += len(read)
            for place, weight in enumerate(WEIGHTS):
                hits[place] += int((torch.lerp(counted, read, weight).argmax(1) == goal).sum())
        return replace(self, weight=WEIGHTS[int(np.argmax(hits))])

    def _both(self, sessions: Sessions) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the probabilities (n, P+1) by the counts and by the Transformer."""
        states, at = self.reader.states_of(sessions), 0
        for scores in self.counts.probabilities(sessions):
            for begin in range(0, len(scores), READ):
                part = scores[begin : begin + READ].dense()
                counted = torch.from_numpy(part.astype(np.float32)).to(states.device)
                read = self.reader.probabilities_of(states[at : at + len(counted)])
                at += len(counted)
                yield counted / counted.sum(1, keepdim=True).clamp(min=TINY), read


def targets(sessions: Sessions) -> Longs:
    """Return the venue after every step inside sessions, (n,)."""
    return sessions.poi[sessions.steps() + 1].astype(np.int64)
