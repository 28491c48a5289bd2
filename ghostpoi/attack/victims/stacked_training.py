"""Training many victims of one shape at once, each as it would be trained alone.

They share a seed and session lengths, and therefore batches and dropout. AdamW works weight by weight, so one optimizer
serves all; gradients are clipped and training is stopped victim by victim.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ghostpoi.attack.victims.base import STAGE, Exam, Job, Result, Victim, final_ranks, readable
from ghostpoi.attack.victims.judge import guesser_of
from ghostpoi.attack.victims.stacked_model import LOGITS_CUDA, PackedRows, StackedModel, pack
from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.devices import seeded, trim_heap
from ghostpoi.models.training_windows import Windows, next_poi
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

MEMORY_SHARE = 0.7  # of the free GPU memory, for one stack
COMPACT_BELOW = 0.8  # stopped victims leave the stack when fewer than this share of it still learn
EVALUATION_TOKENS = (1 << 14, 1 << 19)  # tokens of all victims read at once without gradients: on a CPU, on CUDA

Trained = tuple[StackedModel, list[float], list[int]]  # with the weights of the best epoch; its acc@1; epochs that ran


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


class StackedVictim(Victim):
    """A neural victim. Its fields are model settings that differ from the protocol's."""

    model_type = StackedModel

    def settings(self, protocol: str) -> tuple[ModelSettings, Training]:
        model, training = super().settings(protocol)
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return replace(model, **own), training

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """Train jobs with the same seed and session lengths as one stack."""
        model, training = self.settings(protocol)
        exam.check(jobs)
        results: dict[int, Result] = {}
        with tf32(exam.device.type == "cuda"):
            for group in groups(jobs):
                for chunk in np.array_split(group, self._chunks([jobs[i] for i in group], exam, model, training)):
                    some = [jobs[i] for i in chunk]
                    stack = self.model_type(some, exam, model, training.precision)
                    results.update(zip(chunk.tolist(), _results(stack, some, exam, training), strict=True))
        return [results[i] for i in range(len(jobs))]

    def _chunks(self, jobs: Sequence[Job], exam: Exam, model: ModelSettings, training: Training) -> int:
        """Return the number of equal parts of a group of jobs that each fit into the GPU's memory."""
        if exam.device.type != "cuda":
            return 1
        free, _ = torch.cuda.mem_get_info(exam.device)
        # Memory that torch holds without using it is free too.
        free += torch.cuda.memory_reserved(exam.device) - torch.cuda.memory_allocated(exam.device)
        length = next_poi(jobs[0].train, model.max_positions).length
        each = self.model_type.memory_factor * bytes_per_victim(exam.rows, model, training, length)
        most = max(1, int((MEMORY_SHARE * free - 3 * 4 * LOGITS_CUDA) // each))
        return -(-len(jobs) // most)


def groups(jobs: Sequence[Job]) -> list[list[int]]:
    """Group the jobs that can form one stack: one seed, and sessions of the same lengths."""
    found: dict[tuple[Seed, bytes], list[int]] = defaultdict(list)
    for i, job in enumerate(jobs):
        found[job.seed, job.train.length.astype(np.int64).tobytes()].append(i)
    return list(found.values())


def _results(stack: StackedModel, jobs: Sequence[Job], exam: Exam, training: Training) -> list[Result]:
    began = time.perf_counter()
    best, validated, epochs = train(stack, jobs, exam, training)
    test, known = readable(timed_pairs(exam.test, stack.settings.max_positions), exam.rows)
    examination = Examination(test, best)
    ranks = [final_ranks(r, known) for r in examination.ranks(best).cpu().numpy()]
    distances = _distances(examination, best, jobs, exam)
    seconds = (time.perf_counter() - began) / len(jobs)
    return [Result(job.name, ranks[m], validated[m], epochs[m], seconds, distances[m]) for m, job in enumerate(jobs)]


def _distances(
    examination: "Examination", best: StackedModel, jobs: Sequence[Job], exam: Exam
) -> list[dict[str, float]]:
    """Measure the distances of every victim, if the exam asks for them."""
    guessers = [guesser for job in jobs if (guesser := guesser_of(exam, job.seed)) is not None]
    if guessers:
        for scores in examination.probabilities(best):
            for guesser, own in zip(guessers, scores, strict=True):
                guesser.read(own)
    return [guesser.shares() for guesser in guessers] or [{} for _ in jobs]


def train(stack: StackedModel, jobs: Sequence[Job], exam: Exam, settings: Training) -> Trained:
    """Train the stack of these jobs, which share a seed and the lengths of their sessions."""
    tick = partial(exam.progress, jobs[0].name if len(jobs) == 1 else f"stack of {len(jobs)}")
    seed, most = jobs[0].seed, stack.settings.max_positions
    pairs = [timed_pairs(job.train, most) for job in jobs]
    validation, known = readable(timed_pairs(exam.validation, most), exam.rows)
    if any(not np.array_equal(p.length, pairs[0].length) for p in pairs):
        raise ValueError("victims of one stack need windows of the same lengths")
    device, everyone = stack.device, len(stack)
    inputs, target = inputs_of(pairs, device), torch.from_numpy(np.stack([p.target for p in pairs])).to(device)
    examination, counts = Examination(validation, stack), torch.from_numpy(known).to(device)
    adamw = partial(torch.optim.AdamW, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
    optimizer = adamw(stack.weights.values())
    best = stack.take(torch.arange(everyone, device=device))
    hits, ran, waited = [-1] * everyone, [0] * everyone, [0] * everyone
    in_stack, learning = list(range(everyone)), set(range(everyone))  # the victim in each place; those not stopped
    batches = _batches(pairs[0], settings, seed, 0, device)
    for number in range(settings.epochs):
        with seeded(device, seed.torch_seed(*STAGE, "dropout", number)):
            for rows in batches:
                optimizer.zero_grad(set_to_none=True)
                stack.losses(  # its graph must not outlive the step: a compacted stack would keep the old weights
                    stack.hidden(inputs.index_select(2, rows.index), rows, stack.settings.dropout),
                    target.index_select(1, rows.index),
                ).sum().backward()  # type: ignore[no-untyped-call]
                if settings.clip:
                    clip([w.grad for w in stack.weights.values() if w.grad is not None], settings.clip)
                optimizer.step()
        trim_heap()
        right = ((examination.ranks(stack) == 1) & counts).sum(1)  # a model that diverged to NaN ranks none first
        if number + 1 < settings.epochs:  # while the device still works on this epoch
            batches = _batches(pairs[0], settings, seed, number + 1, device)
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
        if better:
            here, there = (torch.tensor(p, device=device) for p in (better, [in_stack[place] for place in better]))
            with torch.no_grad():
                for name, w in stack.weights.items():
                    best.weights[name].index_copy_(0, there, w[here])
        if not learning:
            break
        if len(learning) < COMPACT_BELOW * len(stack):
            stay = torch.tensor([victim in learning for victim in in_stack], device=device).nonzero().flatten()
            compact = stack.take(stay)
            fresh = adamw(compact.weights.values())
            for name, w in stack.weights.items():  # each weight keeps its share of the optimizer's state
                state = optimizer.state[w].items()
                fresh.state[compact.weights[name]] = {key: v[stay] if v.dim() else v for key, v in state}
            stack, optimizer = compact, fresh
            inputs, target = inputs[:, stay], target[stay]
            in_stack = [victim for victim in in_stack if victim in learning]
    if not settings.epochs:
        tick(everyone)
    return best, [max(0, h) / max(1, len(known)) for h in hits], ran


class Examination:
    """The same sessions for all victims, laid out once."""

    def __init__(self, pairs: TimedPairs, stack: StackedModel) -> None:
        device = stack.device
        self.inputs, self.target = inputs_of([pairs], device), torch.from_numpy(pairs.target).to(device)
        at_once = EVALUATION_TOKENS[device.type == "cuda"] // (stack.memory_factor * len(stack))
        # A batch holds the windows that end in the same stretch of `at_once` tokens; a long one may exceed it a little.
        piece = np.cumsum(pairs.length) // max(1, at_once)
        windows = np.split(np.arange(len(piece)), np.flatnonzero(np.diff(piece)) + 1) if len(piece) else []
        self.batches = pack(pairs, windows, device)

    @torch.no_grad()
    def ranks(self, stack: StackedModel) -> Tensor:
        """Return the rank of every target among all POIs for every victim, (M, N)."""
        found = [self.target.new_empty(len(stack), 0)]
        for rows in self.batches:
            hidden = stack.hidden(self.inputs[:, :, rows.index].expand(-1, len(stack), -1), rows)
            found.append(stack.ranks(hidden, self.target[rows.index]))
        return torch.cat(found, 1)

    @torch.no_grad()
    def probabilities(self, stack: StackedModel) -> Iterator[Tensor]:
        """Yield the probabilities of all POIs at some steps, in order, for every victim, (M, n, P+1)."""
        for rows in self.batches:
            hidden = stack.hidden(self.inputs[:, :, rows.index].expand(-1, len(stack), -1), rows)
            yield from stack.probabilities(hidden)


def clip(gradients: Sequence[Tensor], most: float) -> None:
    """Scale each victim's gradient over all weights (M, ...) to a norm of at most `most`, as torch does for one."""
    norms = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients])
    scale = (most / (torch.linalg.vector_norm(norms, dim=0) + 1e-6)).clamp_(max=1.0)  # (M,)
    for g in gradients:
        g.mul_(scale.view(-1, *[1] * (g.dim() - 1)))


def bytes_per_victim(rows: int, model: ModelSettings, training: Training, length: Longs) -> int:
    """Estimate the memory of a victim: weights, gradient, two moments and best weights; a batch; data; no logits."""
    d, wide = model.dim, model.feed_forward
    per_layer = 4 * d * d + 2 * d * wide + 9 * d + wide
    weights = rows * d * (1 if model.tied else 2) + model.max_positions * d + model.layers * per_layer
    mean, spread = (float(length.mean()), float(length.std())) if len(length) else (0.0, 0.0)
    size = min(training.batch_sessions, len(length))
    tokens = size * mean + 4 * math.sqrt(size) * spread  # hardly any batch is larger
    kept_of_a_token = model.layers * (12 * d + 2 * wide + model.max_positions) + 12 * d
    return int(4 * (6 * weights + 1.5 * tokens * kept_of_a_token) + 32 * length.sum())


@contextmanager
def tf32(wanted: bool) -> Iterator[None]:
    """Compute float32 matrix products in TF32 on CUDA; restore the setting afterwards."""
    before = torch.get_float32_matmul_precision()
    if wanted:
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _batches(pairs: Windows, settings: Training, seed: Seed, number: int, device: torch.device) -> list[PackedRows]:
    order = seed.generator(*STAGE, "order", number).permutation(len(pairs.length))
    size = settings.batch_sessions
    return pack(pairs, [order[at : at + size] for at in range(0, len(order), size)], device)
