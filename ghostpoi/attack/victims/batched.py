"""Training many victims of the same shape at once, each as `fit.train` would train it alone.

The victims share a seed and the lengths of their sessions; only the POIs differ. So they share the order of batches,
where tokens stand, and dropout. AdamW works weight by weight, so that one over the stack is M separate ones; gradients
are clipped and training is stopped victim by victim.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ghostpoi.attack.victims.lines import Lines, lay_out
from ghostpoi.attack.victims.stack import Stack
from ghostpoi.attack.victims.steps import Seen, Steps, together
from ghostpoi.data.checkins import Longs
from ghostpoi.models.devices import seeded
from ghostpoi.models.windows import Windows
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

COMPACT_BELOW = 0.8  # stopped victims leave the stack when fewer than this share of it still learn
EVALUATION_TOKENS = (1 << 14, 1 << 19)  # of all victims, read at once when no gradient is wanted: on a CPU, on CUDA


@dataclass(frozen=True)
class Trained:
    """Victims in the order they were given, each with the weights of its best epoch."""

    stack: Stack
    validation: list[float]  # acc@1 of that epoch
    epochs: list[int]  # that ran


def train(
    stack: Stack,
    pairs: Sequence[Steps],
    validation: Steps,
    known: NDArray[np.bool_],
    settings: Training,
    seed: Seed,
    stage: tuple[object, ...],
    tick: Callable[[float], None] = lambda victims: None,
) -> Trained:
    """Train a stack in which victim m learns from pairs[m]; validation targets that are not `known` count as wrong.

    `tick` hears of victims done, an epoch being a part of one.
    """
    if any(not np.array_equal(p.length, pairs[0].length) for p in pairs):
        raise ValueError("victims that are trained together need windows of the same lengths")
    device, everyone = stack.device, len(stack)
    seen, target = Seen.of(pairs, device), together(pairs, "target", device)
    examination = Examination(validation, known, stack)
    optimizer = adamw(stack, settings)
    best, hits, ran = stack.take(torch.arange(everyone, device=device)), [-1] * everyone, [0] * everyone
    waited = [0] * everyone
    in_stack = list(range(everyone))  # the victim in each place of the stack
    learning = set(in_stack)
    plan = _plan(pairs[0], settings, seed, stage, 0, device)
    for number in range(settings.epochs):
        with seeded(device, seed.torch_seed(*stage, "dropout", number)):
            for lines in plan:
                _step(stack, optimizer, seen, target, lines, settings.clip)
        right = examination.hits(stack)
        if number + 1 < settings.epochs:  # while the device is still at work on this epoch
            plan = _plan(pairs[0], settings, seed, stage, number + 1, device)
        better = []
        for place, (victim, now) in enumerate(zip(in_stack, right.tolist(), strict=True)):  # the epoch's only wait
            if victim not in learning:
                continue
            ran[victim] += 1
            tick(1 / settings.epochs)
            if now > hits[victim]:
                hits[victim], waited[victim] = now, 0
                better.append(place)
            else:
                waited[victim] += 1
                if settings.patience and waited[victim] >= settings.patience:
                    learning.remove(victim)
                    tick(1 - ran[victim] / settings.epochs)
        _copy(stack, best, better, [in_stack[place] for place in better])
        if not learning:
            break
        if len(learning) < COMPACT_BELOW * len(stack):
            left = [place for place, victim in enumerate(in_stack) if victim in learning]
            stay = torch.tensor(left, device=device)
            stack, optimizer = _compact(stack, optimizer, stay, settings)
            seen, target = seen.of_victims(stay), target[stay]
            in_stack = [in_stack[place] for place in left]
    if not settings.epochs:
        tick(everyone)
    return Trained(best, [max(0, h) / max(1, len(known)) for h in hits], ran)


class Examination:
    """The same sessions for all victims, laid out once."""

    def __init__(self, pairs: Steps, known: NDArray[np.bool_], stack: Stack) -> None:
        device = stack.device
        self.seen = Seen.of([pairs], device)
        self.target, self.known = (torch.from_numpy(a).to(device) for a in (pairs.target, known))  # each (N,)
        at_once = EVALUATION_TOKENS[device.type == "cuda"] // (stack.bulk * len(stack))
        # Windows go together that end in the same stretch of `at_once` tokens; a long one may exceed it a little.
        piece = np.cumsum(pairs.length) // max(1, at_once)
        windows = np.split(np.arange(len(piece)), np.flatnonzero(np.diff(piece)) + 1) if len(piece) else []
        self.plan = lay_out(pairs, windows, device)

    @torch.no_grad()
    def ranks(self, stack: Stack) -> Tensor:
        """As `fit.ranks`, of every victim, (M, N)."""
        found = [self.target.new_empty(len(stack), 0)]
        for lines in self.plan:
            hidden = stack.hidden(self.seen.at(lines.index).for_all(len(stack)), lines)
            found.append(stack.ranks(hidden, self.target[lines.index]))
        return torch.cat(found, 1)

    def hits(self, stack: Stack) -> Tensor:
        """How many known targets each victim ranks first, (M,). Rank 0 is how NaN answers."""
        return ((self.ranks(stack) == 1) & self.known).sum(1)


def adamw(stack: Stack, settings: Training) -> torch.optim.AdamW:
    """As `fit.adamw`."""
    return torch.optim.AdamW(
        list(stack.weights.values()), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )


def clip(gradients: Sequence[Tensor], most: float) -> None:
    """Scale each victim's gradient, over all weights (M, ...), to a norm of at most `most`, as torch does for one."""
    norms = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients])
    scale = (most / (torch.linalg.vector_norm(norms, dim=0) + 1e-6)).clamp_(max=1.0)  # (M,)
    for g in gradients:
        g.mul_(scale.view(-1, *[1] * (g.dim() - 1)))


def bytes_per_victim(rows: int, model: ModelSettings, training: Training, length: Longs) -> int:
    """About what one more victim in a stack costs: weights, gradient, two moments, the best so far; one batch; data.

    The tiles of logits are not in it: all victims share LOGITS_CUDA.
    """
    d, wide = model.dim, model.feed_forward
    per_layer = 4 * d * d + 2 * d * wide + 9 * d + wide
    weights = rows * d * (1 if model.tied else 2) + model.max_positions * d + model.layers * per_layer
    mean = float(length.mean()) if len(length) else 0.0
    spread = float(length.std()) if len(length) else 0.0
    size = min(training.batch_sessions, len(length))
    tokens = size * mean + 4 * math.sqrt(size) * spread  # hardly a batch is larger
    kept_of_a_token = model.layers * (12 * d + 2 * wide + model.max_positions) + 12 * d
    return int(4 * (6 * weights + 1.5 * tokens * kept_of_a_token) + 32 * length.sum())


@contextmanager
def tf32(wanted: bool) -> Iterator[None]:
    """Matrix products of float32 in TF32 on CUDA, and as it was afterwards."""
    before = torch.get_float32_matmul_precision()
    if wanted:
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _plan(
    pairs: Windows, settings: Training, seed: Seed, stage: tuple[object, ...], number: int, device: torch.device
) -> list[Lines]:
    """The batches of `fit.epoch`."""
    order = seed.generator(*stage, "order", number).permutation(len(pairs.length))
    size = settings.batch_sessions
    return lay_out(pairs, [order[at : at + size] for at in range(0, len(order), size)], device)


def _step(
    stack: Stack, optimizer: torch.optim.Optimizer, seen: Seen, target: Tensor, lines: Lines, most: float
) -> None:
    optimizer.zero_grad(set_to_none=True)
    hidden = stack.hidden(seen.at(lines.index), lines, stack.settings.dropout)
    losses = stack.losses(hidden, target.index_select(1, lines.index))
    losses.sum().backward()  # type: ignore[no-untyped-call]
    if most:
        clip([w.grad for w in stack.weights.values() if w.grad is not None], most)
    optimizer.step()


def _copy(source: Stack, target: Stack, here: list[int], there: list[int]) -> None:
    """Put victims `here` of one stack in the places `there` of another."""
    if here:
        a, b = (torch.tensor(places, device=source.device) for places in (here, there))
        with torch.no_grad():
            for name, w in source.weights.items():
                target.weights[name].index_copy_(0, b, w.index_select(0, a))


def _compact(
    stack: Stack, optimizer: torch.optim.Optimizer, stay: Tensor, settings: Training
) -> tuple[Stack, torch.optim.AdamW]:
    """These victims alone, with their share of the optimizer's state."""
    left = stack.take(stay)
    fresh = adamw(left, settings)
    for name, w in stack.weights.items():
        state = optimizer.state[w]
        fresh.state[left.weights[name]] = {key: value[stay] if value.dim() else value for key, value in state.items()}
    return left, fresh
