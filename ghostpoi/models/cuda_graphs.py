"""CUDA graphs: what is captured once is replayed without Python, and without a launch for every kernel.

Models this small leave a card idle while the host launches hundreds of kernels a step. A graph needs static shapes, so
a batch's windows stand side by side in a fixed number of lines of equal width; a mask keeps them apart.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.data.checkins import Longs
from ghostpoi.models.fit import Pairs, packed_epoch, precise, seeded
from ghostpoi.models.transformer import CUDA_LOGITS, CausalTransformer
from ghostpoi.settings import Training

WIDTH = 64  # lines are at least this wide
ALIGN = 8  # their width is a multiple of this, which fast kernels ask of a mask; so is their number
NEVER = -1e9  # finite: a kernel that goes by tiles of keys may meet one where a query has nothing to look at
WARM_UPS = 2  # steps before a capture: libraries set themselves up and the optimizer makes its state


class Lines:
    """One batch in lines; a `Packing` of static shape."""

    def __init__(self, batch: Tensor, heads: int, dtype: torch.dtype) -> None:
        self.token, self.target, self.position, owner = batch.unbind()  # (lines, width) each; empty places: target 0
        self.heads = heads
        # Empty places share an owner, so that no row is left without any place to look at.
        same = owner[:, :, None] == owner[:, None, :]
        self.mask = torch.zeros(same.shape, dtype=dtype, device=same.device)
        self.mask.masked_fill_(~same.tril(), NEVER)

    def attend(self, qkv: Tensor) -> Tensor:
        """Causal attention inside every window, (lines, width, 3d) -> (lines, width, d)."""
        q, k, v = qkv.view(*qkv.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # each (lines, H, width, dh)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:, None])
        return found.transpose(1, 2).flatten(2)


def lay_out(pairs: Pairs, order: Longs, size: int) -> NDArray[np.int64]:
    """All batches of an epoch in lines, (batches, 4, lines, width): token, target, position, owner.

    The shape depends on the epoch alone, not on those before it: so does dropout.
    """
    length = pairs.length[order]
    width = _up(max(WIDTH, int(length.max(initial=1))))
    line, used, lines, first = 0, 0, 0, []
    for i, n in enumerate(length.tolist()):  # filled in order
        if i % size == 0:
            line, used = 0, 0
        elif used + n > width:
            line, used = line + 1, 0
        first.append(line * width + used)
        used += n
        lines = max(lines, line + 1)
    batches, lines = -(-len(order) // size), _up(lines)
    plan = np.zeros((4, batches * lines * width), np.int64)
    begin = np.arange(len(order)) // size * lines * width + np.array(first, np.int64)
    step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    at, source = np.repeat(begin, length) + step, np.repeat(pairs.start[order], length) + step
    plan[:, at] = pairs.token[source], pairs.target[source], step, np.repeat(np.arange(len(order)) + 1, length)
    return np.ascontiguousarray(plan.reshape(4, batches, lines, width).swapaxes(0, 1))


def loss_of(model: CausalTransformer, batch: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The sum of -log P(target) over a batch in lines (4, lines, width), and the number of its positions."""
    lines = Lines(batch, model.settings.heads, dtype)
    logits = F.linear(model.states(lines.token, lines), model.output[1:]).float().flatten(0, 1)
    loss = F.cross_entropy(logits, lines.target.flatten() - 1, ignore_index=-1, reduction="sum")
    return loss, (lines.target > 0).sum()


class Step(NamedTuple):
    """A captured training step, and what it reads and writes."""

    graph: torch.cuda.CUDAGraph
    batch: Tensor  # (4, lines, width)
    total: Tensor  # () the losses of all positions so far
    storage: tuple[int, ...]  # where weights and the optimizer's state were


_steps: WeakKeyDictionary[torch.optim.Optimizer, dict[object, Step]] = WeakKeyDictionary()


def epoch(
    model: CausalTransformer,
    optimizer: torch.optim.Optimizer,
    pairs: Pairs,
    order: Longs,
    settings: Training,
    seed: int,
) -> float:
    """The sum of all losses of an epoch of `fit.epoch` over windows in this order."""
    if not len(order):
        return 0.0
    plan = torch.from_numpy(lay_out(pairs, order, settings.batch_sessions)).pin_memory()
    if plan[0, 0].numel() * model.rows > CUDA_LOGITS:  # then launching is not what takes time, and memory matters
        return packed_epoch(model, optimizer, pairs, order, settings, seed)
    steps = _steps.setdefault(optimizer, {})
    key = (plan.shape[1:], settings.clip, settings.precision)
    step = steps.get(key)
    if step is None or step.storage != _storage(model, optimizer):
        step = steps[key] = _capture_step(model, optimizer, plan[0].to(model.device), settings)
    step.total.zero_()
    with seeded(model.device, seed):
        for batch in plan.to(model.device, non_blocking=True):
            step.batch.copy_(batch)
            step.graph.replay()
    return float(step.total)


def capture(work: Callable[[], object], pool: Any = None) -> torch.cuda.CUDAGraph:
    """A graph of what `work` launches. Nothing of it runs yet."""
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.current_stream()
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    before = generator.clone_state()
    try:
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            work()
    except BaseException:
        # Torch leaves its stream current, and its generator waiting for the end of the capture. Steps that were
        # captured with that generator would not see the seeds of the new one.
        torch.cuda.set_stream(stream)
        generator.graphsafe_set_state(before)
        _steps.clear()
        raise
    return graph


@contextmanager
def no_waiting() -> Iterator[None]:
    """RuntimeError where the host would wait for the card: such work cannot be captured."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch may miss some
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)


def _capture_step(
    model: CausalTransformer, optimizer: torch.optim.Optimizer, batch: Tensor, settings: Training
) -> Step:
    """Capture a step on this batch. Weights, the optimizer's state and the random generator stay as they were."""
    total = torch.zeros((), device=batch.device)
    dtype = torch.bfloat16 if settings.precision == "bfloat16" else torch.float32

    def work() -> None:
        optimizer.zero_grad(set_to_none=True)
        with precise(settings.precision, batch.device):
            loss, positions = loss_of(model, batch, dtype)
        (loss / positions).backward()  # type: ignore[no-untyped-call]
        if settings.clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        total.add_(loss.detach())

    with torch.no_grad():
        kept = [(w, w.clone()) for w in _tensors(model, optimizer)]
    known = {id(w) for w, _ in kept}
    stream = torch.cuda.Stream(batch.device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(batch.device))
    with seeded(batch.device, 0), torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            work()
    torch.cuda.current_stream(batch.device).wait_stream(stream)
    with seeded(batch.device, 0):
        graph = capture(work)
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        for w in _tensors(model, optimizer):
            if id(w) not in known:
                w.zero_()  # a state that the warm-up made starts from zero
        for w, before in kept:
            w.copy_(before)
    return Step(graph, batch, total, _storage(model, optimizer))


def _tensors(model: CausalTransformer, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """All that a step changes."""
    return [*model.parameters(), *(v for state in optimizer.state.values() for v in state.values())]


def _storage(model: CausalTransformer, optimizer: torch.optim.Optimizer) -> tuple[int, ...]:
    return tuple(w.data_ptr() for w in _tensors(model, optimizer))


def _up(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
