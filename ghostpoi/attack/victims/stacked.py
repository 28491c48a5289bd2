"""M models of one shape as one, every weight (M, ...), because a single small model leaves a large GPU idle.

They share a seed and session lengths, and therefore batches and dropout, and each is trained as it would be alone.
AdamW works weight by weight, so one optimizer serves all; gradients are clipped and training is stopped victim by
victim.
"""

import copy
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.attack.victims.base import STAGE, Exam, Job, Result, Victim
from ghostpoi.attack.victims.judge import final_ranks, guesser_of, shown
from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions, spans
from ghostpoi.models.cuda_graphs import fill_rows, row_width
from ghostpoi.models.devices import precise, seeded, trim_heap
from ghostpoi.models.training_windows import Windows, next_place
from ghostpoi.models.transformer import CausalTransformer, Pad, Unpad, row_mask
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Precision, Training

TOKEN, USER, TIME = range(3)  # the parts of inputs, (3, M, N)
LOGITS = 1 << 21  # logits of all victims held at once on a CPU
LOGITS_CUDA = 1 << 28  # 1 GiB in float32, and as much again for their gradient
MEMORY_SHARE = 0.7  # of the free GPU memory, for one stack
COMPACT_BELOW = 0.8  # stopped victims leave the stack when fewer than this share of it still learn
EVALUATION_TOKENS = (1 << 14, 1 << 19)  # tokens of all victims read at once without gradients: on a CPU, on CUDA
ALIGN = 16  # output matrices are padded to a multiple of rows: products over an odd vocabulary are slow on CUDA


@dataclass(frozen=True)
class PackedRows:
    """One batch of windows, the same for every victim: N tokens in B rows of t places, with little padding."""

    running: list[int]  # the number of windows that reach each position, on the host
    owner: Tensor  # (B, t) the window at each place, -1 at an empty one
    index: Tensor  # (N,) the position of each token in the pairs
    position: Tensor  # (N,) its position in the window
    place: Tensor  # (N,) its place in the rows
    token_at: Tensor  # (B*t,) the token at each place; any token at an empty one
    step_order: Tensor  # (N,) the tokens by position, and among equal positions from the longest window to the shortest
    step_rank: Tensor  # (N,) the rank of each token in that order

    def attend(self, qkv: Tensor, heads: int, mask: Tensor) -> Tensor:
        """Attend causally inside every window, (M, N, 3d) -> (M, N, d)."""
        victims, (rows, width) = len(qkv), self.owner.shape
        padded = Pad.apply(qkv, self.token_at, self.place)  # type: ignore[no-untyped-call]
        q, k, v = padded.view(victims * rows, width, 3, heads, -1).permute(2, 0, 3, 1, 4)  # each (M*B, H, t, dh)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        found = found.transpose(1, 2).reshape(victims, rows * width, -1)
        return Unpad.apply(found, self.token_at, self.place)  # type: ignore[no-untyped-call]

    def mask(self, victims: int, dtype: torch.dtype) -> Tensor:
        """Return what keeps windows apart and hides later places, for every victim, (M*B, 1, t, t)."""
        return row_mask(self.owner, dtype).repeat(victims, 1, 1)[:, None]


def pack(pairs: Windows, batches: Sequence[Longs], device: torch.device) -> list[PackedRows]:
    """Lay out batches of windows. All travel to the device at once, so that no training step waits for one."""
    parts: list[Longs] = []  # seven per batch
    sizes: list[tuple[int, list[int]]] = []  # width and running
    start = pairs.start
    for windows in batches:
        length = pairs.length[windows]
        width = row_width(length)
        first, rows = fill_rows(length, width)
        position, place = spans(np.zeros_like(length), length), spans(first, length)
        token_at, owner = np.zeros(rows * width, np.int64), np.full(rows * width, -1)
        token_at[place] = np.arange(len(place))
        owner[place] = np.repeat(np.arange(len(length)), length)
        index = spans(start[windows], length)
        by_length = np.argsort(np.argsort(-length, kind="stable"))
        order = np.argsort(position * len(length) + np.repeat(by_length, length), kind="stable")
        parts += [owner, index, position, place, token_at, order, np.argsort(order)]
        sizes.append((width, np.bincount(position).tolist()))
    if not parts:
        return []
    joined = torch.from_numpy(np.concatenate(parts))
    if device.type == "cuda":
        joined = joined.pin_memory().to(device, non_blocking=True)
    piece = torch.split(joined, [len(part) for part in parts])
    return [
        PackedRows(running, piece[7 * i].view(-1, width), *piece[7 * i + 1 : 7 * i + 7])
        for i, (width, running) in enumerate(sizes)
    ]


class StackedModel:
    """Causal Transformers for jobs that share a seed. One that diverges to NaN leaves the others unchanged."""

    memory_factor = 1  # the memory that a victim needs at most, relative to a plain Transformer

    def __init__(self, jobs: Sequence[Job], exam: Exam, settings: ModelSettings, precision: Precision) -> None:
        self.rows, self.device, self.settings, self.precision = exam.rows, exam.device, settings, precision
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32  # of matrix products
        self.weights = {
            name: w.detach().to(self.device)[None].repeat(len(jobs), *[1] * w.dim()).requires_grad_()
            for name, w in self.initial(jobs, exam).items()
        }

    def __len__(self) -> int:
        return len(self.weights["embedding"])

    def initial(self, jobs: Sequence[Job], exam: Exam) -> dict[str, Tensor]:
        """Return the weights that each victim starts from, named as in `CausalTransformer`; store other data."""
        seed = jobs[0].seed.torch_seed(*STAGE, "weights")
        return dict(CausalTransformer(self.rows, self.settings, seed).named_parameters())

    @property
    def output(self) -> Tensor:
        """The output matrices, (M, P+1, d)."""
        return self.weights["embedding" if self.settings.tied else "untied"]

    def take(self, victims: Tensor) -> Self:
        """Return a copy of some victims."""
        taken = copy.copy(self)
        taken.weights = {name: w.detach()[victims].requires_grad_() for name, w in self.weights.items()}
        return taken

    def embed(self, inputs: Tensor, rows: PackedRows) -> Tensor:
        """Return what the first block reads, (M, N, d)."""
        position = rows.position.expand(len(self), -1)
        return look_up(self.table(), inputs[TOKEN]) + look_up(self.weights["position"], position)

    def table(self) -> Tensor:
        """Return the embedding of every POI, (M, P+1, d)."""
        return self.weights["embedding"]

    def masks(self, inputs: Tensor, rows: PackedRows) -> list[Tensor]:
        """Return what each layer adds to its attention logits, each (M*B, 1 or H, t, t)."""
        return [rows.mask(len(self), self.dtype)] * self.settings.layers

    def hidden(self, inputs: Tensor, rows: PackedRows, dropout: float = 0.0) -> Tensor:
        """Return the hidden states of a batch, (M, N, d)."""
        s = self.settings
        masks = self.masks(inputs, rows)
        with precise(self.precision, self.device):
            x = dropped(self.embed(inputs, rows), dropout)
            for i in range(s.layers):
                block = f"blocks.{i}."
                qkv = self._linear(block + "qkv", self._norm(block + "before_attention", x))
                x = x + dropped(self._linear(block + "merge", rows.attend(qkv, s.heads, masks[i])), dropout)
                wide = F.gelu(self._linear(block + "widen", self._norm(block + "before_feed_forward", x)))
                x = x + dropped(self._linear(block + "narrow", wide), dropout)
            return self._norm("norm", x).float()

    def losses(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean of -log P(target) of each victim, differentiable: (M, N, d), (M, N) -> (M,)."""
        return _MeanLosses.apply(hidden, self.output, target, self.dtype)  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def ranks(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the rank of each target among all POIs, a tie counting against it: (M, N, d), (N,) -> (M, N)."""
        matrix = _padded(self.output, torch.float32)  # whatever the precision: bfloat16 would make ties
        step, found = _tile_rows(matrix), [target.new_empty(len(self), 0)]
        for a in range(0, len(target), step):
            logits = _logits(hidden[:, a : a + step], matrix, self.rows)
            own = logits.gather(2, target[a : a + step].expand(len(self), -1)[:, :, None])
            found.append((logits >= own).sum(2))
        return torch.cat(found, 1)

    @torch.no_grad()
    def probabilities(self, hidden: Tensor) -> Iterator[Tensor]:
        """Yield the probabilities of all POIs, some steps at a time, (M, N, d) -> (M, n, P+1); POI 0 has none."""
        matrix = _padded(self.output, torch.float32)
        step = _tile_rows(matrix)
        for a in range(0, hidden.shape[1], step):
            yield torch.softmax(_logits(hidden[:, a : a + step], matrix, self.rows), 2)[:, :, : self.rows]

    def _linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return torch.addcmul(bias[:, None], F.layer_norm(x, x.shape[2:]), weight[:, None])


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """Return rows of every victim's own table: (M, rows, d), (M, n) -> (M, n, d)."""
    first = torch.arange(len(table), device=table.device)[:, None] * table.shape[1]
    return F.embedding(index + first, table.view(-1, table.shape[2]))


def dropped(x: Tensor, p: float) -> Tensor:
    """Apply dropout with one mask for all victims, the one that a model alone would draw."""
    return x * F.dropout(torch.ones(x.shape[1:], device=x.device), p) if p else x


class _MeanLosses(torch.autograd.Function):
    """The mean of -log P(target), (M,). Losses and both gradients come from one pass over tiles of logits."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, output: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
        rows, n = output.shape[1], hidden.shape[1]
        matrix, h = _padded(output, dtype), hidden.to(dtype)
        d_hidden, d_matrix = torch.empty_like(hidden), torch.zeros_like(matrix, dtype=torch.float32)
        total = torch.zeros(len(h), device=h.device)
        step = _tile_rows(matrix)
        for a in range(0, n, step):
            part, goal = h[:, a : a + step], target[:, a : a + step, None]
            error = torch.softmax(_logits(part, matrix, rows), 2)
            right = error.gather(2, goal)
            total -= right.float().clamp_min(torch.finfo(torch.float32).tiny).log_().sum((1, 2))
            error.scatter_(2, goal, right - 1)  # now the gradient of the logits
            d_hidden[:, a : a + step] = torch.bmm(error, matrix)
            if dtype == torch.float32:
                d_matrix.baddbmm_(error.transpose(1, 2), part)
            else:
                d_matrix += torch.bmm(error.transpose(1, 2), part)
        ctx.save_for_backward(d_hidden, d_matrix[:, :rows])
        return total / n

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        d_hidden, d_output = ctx.saved_tensors
        share = (grad / d_hidden.shape[1])[:, None, None]
        return d_hidden * share, d_output * share, None, None


def _padded(output: Tensor, dtype: torch.dtype) -> Tensor:
    """Pad output matrices (M, P+1, d) with rows of zeros to a multiple of ALIGN."""
    return F.pad(output.detach().to(dtype), (0, 0, 0, -output.shape[1] % ALIGN))


def _logits(hidden: Tensor, matrix: Tensor, rows: int) -> Tensor:
    """Return logits, (M, n, d) -> (M, n, rows of the matrix); row 0 and the padded rows are never an answer."""
    logits = torch.bmm(hidden, matrix.transpose(1, 2))
    logits[:, :, 0] = -torch.inf
    logits[:, :, rows:] = -torch.inf
    return logits


def _tile_rows(matrix: Tensor) -> int:
    logits_at_once = LOGITS if matrix.device.type == "cpu" else LOGITS_CUDA
    return max(1, logits_at_once // (matrix.shape[0] * matrix.shape[1]))


Trained = tuple[StackedModel, list[float], list[int]]  # with the weights of the best epoch; its acc@1; epochs that ran


def inputs_of(sessions: Sequence[Sessions], windows: Windows, device: torch.device) -> Tensor:
    """Return what victims read at each place, TOKEN, USER and TIME, (3, M, N); victim m reads sessions[m]."""
    # The time of the target is unknown when it is predicted.
    known = ((s.poi, np.repeat(s.user, s.length), s.time) for s in sessions)
    parts = [[part[windows.token].astype(np.int64) for part in parts] for parts in known]
    return torch.from_numpy(np.stack(parts, 1)).to(device)


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
        length = next_place(jobs[0].train, model.max_positions).length
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
    test = Examination(exam.test, best)
    ranks = [final_ranks(r, test.known.numpy(force=True)) for r in test.ranks(best).cpu().numpy()]
    guessers = [guesser for job in jobs if (guesser := guesser_of(exam, job.seed)) is not None]
    for scores in test.probabilities(best) if guessers else ():
        for guesser, own in zip(guessers, scores, strict=True):
            guesser.read(own)
    distances = [guesser.shares() for guesser in guessers] or [{} for _ in jobs]
    seconds = (time.perf_counter() - began) / len(jobs)
    return [Result(job.name, ranks[m], validated[m], epochs[m], seconds, distances[m]) for m, job in enumerate(jobs)]


def train(stack: StackedModel, jobs: Sequence[Job], exam: Exam, settings: Training) -> Trained:
    """Train the stack of these jobs, which share a seed and the lengths of their sessions."""
    tick = partial(exam.progress, jobs[0].name if len(jobs) == 1 else f"stack of {len(jobs)}")
    device, everyone, seed, trained_on = stack.device, len(stack), jobs[0].seed, [job.train for job in jobs]
    if any(not np.array_equal(some.length, trained_on[0].length) for some in trained_on):
        raise ValueError("victims of one stack need windows of the same lengths")
    windows = next_place(trained_on[0], stack.settings.max_positions)
    target = torch.from_numpy(np.stack([some.poi[windows.target].astype(np.int64) for some in trained_on])).to(device)
    inputs, examination = inputs_of(trained_on, windows, device), Examination(exam.validation, stack)
    adamw = partial(torch.optim.AdamW, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
    optimizer = adamw(stack.weights.values())
    best = stack.take(torch.arange(everyone, device=device))
    hits, ran, waited = [-1] * everyone, [0] * everyone, [0] * everyone
    in_stack, learning = list(range(everyone)), set(range(everyone))  # the victim in each place; those not stopped
    batches = _batches(windows, settings, seed, 0, device)
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
        # A model that diverged to NaN ranks none first.
        right = ((examination.ranks(stack) == 1) & examination.known).sum(1)
        if number + 1 < settings.epochs:  # while the device still works on this epoch
            batches = _batches(windows, settings, seed, number + 1, device)
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
    return best, [max(0, h) / max(1, len(examination.known)) for h in hits], ran


class Examination:
    """The same sessions for all victims, laid out once."""

    def __init__(self, sessions: Sessions, stack: StackedModel) -> None:
        device, pairs = stack.device, next_place(sessions, stack.settings.max_positions)
        sessions = shown(sessions, stack.rows)
        target = torch.from_numpy(sessions.poi[pairs.target].astype(np.int64)).to(device)
        self.inputs, self.known, self.target = inputs_of([sessions], pairs, device), target > 0, target.clamp(min=1)
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
