"""The only training loop: packed sessions, no padding waste; and full-ranking accuracy.

An epoch depends on the weights, the optimizer's state, the data and (seed, stage, epoch number) alone, so that
training goes on after any epoch exactly as if it had never stopped.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models import memory
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import Precision, Training

RANK_LOGITS = 1 << 21  # logits ranked at once on a CPU
RANK_LOGITS_CUDA = 1 << 27
EVALUATION_WINDOWS = (512, 8192)  # windows read at once when no gradient is wanted: on a CPU, on CUDA


@dataclass(frozen=True)
class Pairs:
    """What a model learns from: windows end to end, each an input sequence with a target at every position."""

    token: Longs  # (N,) inputs
    target: Longs  # (N,)
    length: Longs  # (W,), none over max_positions

    @property
    def start(self) -> Longs:
        return np.cumsum(self.length) - self.length  # (W,)

    def take(self, windows: Longs) -> "Pairs":
        """These windows, in this order."""
        length = self.length[windows]
        index = np.repeat(self.start[windows] - (np.cumsum(length) - length), length) + np.arange(length.sum())
        return Pairs(self.token[index], self.target[index], length)


def next_poi(sessions: Sessions, max_positions: int) -> Pairs:
    """Input p_0 .. p_{L-2}, target p_1 .. p_{L-1}.

    Long inputs are cut in windows. The last target of a window is the first input of the next: no pair is lost.
    """
    first, last = sessions.start[:-1], sessions.start[1:] - 1
    is_input, is_target = np.ones(sessions.positions, bool), np.ones(sessions.positions, bool)
    filled = sessions.length > 0
    is_input[last[filled]] = is_target[first[filled]] = False
    return _cut(sessions.poi[is_input], sessions.poi[is_target], np.maximum(sessions.length - 1, 0), max_positions)


def from_start(sessions: Sessions, max_positions: int) -> Pairs:
    """Input 0, p_0 .. p_{L-2}, target p_0 .. p_{L-1} in each window: every POI is predicted, the first included."""
    pairs = aligned(sessions.poi, sessions, max_positions)
    token = np.concatenate([[0], pairs.token[:-1]])[: len(pairs.token)]
    token[pairs.start] = 0
    return Pairs(token, pairs.target, pairs.length)


def aligned(token: Ints, sessions: Sessions, max_positions: int) -> Pairs:
    """Input `token` (N,), target the POI of `sessions` at the same position: what a denoiser learns."""
    return _cut(token, sessions.poi, sessions.length, max_positions)


def _cut(token: Ints, target: Ints, length: Longs, max_positions: int) -> Pairs:
    windows = -(-length // max_positions)
    cut = np.full(int(windows.sum()), max_positions, np.int64)
    last = np.cumsum(windows)[windows > 0] - 1
    cut[last] = (length - (windows - 1) * max_positions)[windows > 0]
    return Pairs(token.astype(np.int64), target.astype(np.int64), cut)


def adamw(model: CausalTransformer, settings: Training) -> torch.optim.AdamW:
    """The optimizer. It outlives an epoch: the surrogate's goes on from round to round."""
    cuda = model.device.type == "cuda"
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True, capturable=cuda
    )
    # Torch warns of capturable optimizers that take a step outside a graph; ours do so on purpose before a capture.
    optimizer._warned_capturable_if_run_uncaptured = True
    return optimizer


def batches(pairs: Pairs, windows: Longs, size: int) -> Iterator[Pairs]:
    """These windows, in this order, `size` at a time."""
    for at in range(0, len(windows), size):
        yield pairs.take(windows[at : at + size])


def epoch(
    model: CausalTransformer,
    optimizer: torch.optim.Optimizer,
    pairs: Pairs,
    settings: Training,
    seed: Seed,
    stage: tuple[object, ...],
    number: int,
) -> float:
    """One pass over all windows in an order of its own; the mean loss of a position."""
    order = seed.generator(*stage, "order", number).permutation(len(pairs.length))
    dropout = seed.torch_seed(*stage, "dropout", number)
    model.train()
    if model.device.type == "cuda":
        from ghostpoi.models import cuda_graphs as graphs  # which builds on this module

        total = graphs.epoch(model, optimizer, pairs, order, settings, dropout)
    else:
        total = packed_epoch(model, optimizer, pairs, order, settings, dropout)
    model.eval()
    return total / max(1, len(pairs.token))


def packed_epoch(
    model: CausalTransformer,
    optimizer: torch.optim.Optimizer,
    pairs: Pairs,
    order: Longs,
    settings: Training,
    seed: int,
) -> float:
    """The sum of all losses of an epoch over windows in this order, step by step."""
    total = torch.zeros((), device=model.device)
    with seeded(model.device, seed):
        for batch in batches(pairs, order, settings.batch_sessions):
            optimizer.zero_grad(set_to_none=True)
            with precise(settings.precision, model.device):
                hidden = model.hidden(_to(batch.token, model.device), batch.length)
                loss = model.losses(hidden.float(), _to(batch.target, model.device)).mean()
            loss.backward()  # type: ignore[no-untyped-call]
            if settings.clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            total += loss.detach() * len(batch.token)
    memory.give_back()
    return float(total)


@dataclass(frozen=True)
class Accuracy:
    """Full-ranking accuracy over positions."""

    acc1: float
    acc5: float
    acc10: float
    mrr: float
    positions: int

    @staticmethod
    def of(ranks: Longs) -> "Accuracy":
        """From the rank of every target, 1 the best; 0, how a model that diverged to NaN answers, is wrong."""
        n = len(ranks)
        ranks = np.where(ranks >= 1, ranks, np.iinfo(np.int64).max)
        acc1, acc5, acc10 = (float((ranks <= k).mean()) if n else 0.0 for k in (1, 5, 10))
        return Accuracy(acc1, acc5, acc10, float((1 / ranks).mean()) if n else 0.0, n)


@torch.no_grad()
def ranks(model: CausalTransformer, pairs: Pairs, precision: Precision = "float32") -> Longs:
    """The rank of every target among all POIs, 1 the best, (N,) in the order of `pairs`; a tie counts against it."""
    cpu = model.device.type == "cpu"
    rows = max(1, (RANK_LOGITS if cpu else RANK_LOGITS_CUDA) // model.rows)
    found = []
    with precise(precision, model.device):
        columns = model.output[1:].t().contiguous()  # (d, P)
        for hidden, target in hidden_states(model, pairs):
            for part, goal in zip(torch.split(hidden, rows), torch.split(target[:, None] - 1, rows), strict=True):
                logits = torch.mm(part, columns)
                found.append((logits >= logits.gather(1, goal)).sum(1))
    return torch.cat(found).cpu().numpy() if found else np.zeros(0, np.int64)


@torch.no_grad()
def hidden_states(model: CausalTransformer, pairs: Pairs) -> Iterator[tuple[Tensor, Tensor]]:
    """The hidden state (M, d) and the target (M,) of all positions, in order, some windows at a time."""
    model.eval()
    for batch in batches(pairs, np.arange(len(pairs.length)), EVALUATION_WINDOWS[model.device.type == "cuda"]):
        hidden = model.hidden(_to(batch.token, model.device), batch.length)
        yield hidden.float(), _to(batch.target, model.device)


def accuracy(model: CausalTransformer, pairs: Pairs, precision: Precision = "float32") -> Accuracy:
    """acc@1, 5, 10 and MRR over all positions of `pairs`."""
    return Accuracy.of(ranks(model, pairs, precision))


Progress = Callable[[int, float, Accuracy | None], None]  # epoch from 0, mean loss, validation


def train(
    model: CausalTransformer,
    pairs: Pairs,
    validation: Pairs | None,
    settings: Training,
    seed: Seed,
    stage: tuple[object, ...],
    progress: Progress | None = None,
) -> Accuracy | None:
    """Train in place. With validation, keep the weights of the epoch with the best acc@1 and return its accuracy."""
    optimizer = adamw(model, settings)
    best: Accuracy | None = None
    kept: dict[str, Tensor] = {}
    waited = 0
    for number in range(settings.epochs):
        loss = epoch(model, optimizer, pairs, settings, seed, stage, number)
        now = accuracy(model, validation, settings.precision) if validation is not None else None
        if progress:
            progress(number, loss, now)
        if now is None:
            continue
        if best is None or now.acc1 > best.acc1:
            best, waited = now, 0
            kept = {name: weight.detach().clone() for name, weight in model.state_dict().items()}
        else:
            waited += 1
            if settings.patience and waited >= settings.patience:
                break
    if kept:
        model.load_state_dict(kept)
    model.eval()
    return best


def precise(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Matrix products in this type."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """torch's global generators under a seed of their own, and as they were afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _to(array: Longs, device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, non_blocking=True)
