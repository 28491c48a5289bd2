"""CUDA graphs: work is captured once, then replayed without Python and without a launch for every kernel.

Models this small leave a card idle while the host launches hundreds of kernels per step. A graph needs static shapes,
so the windows of a batch are packed into a fixed number of rows of equal width. A mask separates them.
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
from torch.optim import Optimizer

from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import spans
from ghostpoi.models.devices import precise, seeded
from ghostpoi.models.output_layer import CUDA_LOGITS
from ghostpoi.models.training_windows import Windows
from ghostpoi.models.transformer import CausalTransformer, RowPacking
from ghostpoi.settings import Training

WIDTH = 64  # minimum width of a row
ALIGN = 8  # width and number of rows are multiples of this: fast attention kernels require it of a mask
WARM_UPS = 2  # steps before a capture: libraries initialise, and the optimizer creates its state


def pack_rows(windows: Windows, order: Longs, size: int) -> NDArray[np.int64]:
    """Pack all batches of an epoch into rows, (batches, 4, rows, width): token, target, position, owner.

    The shape depends on this epoch alone, not on earlier ones, and so does dropout.
    """
    length = windows.length[order]
    width = row_width(length)
    filled = [fill_rows(length[at : at + size], width) for at in range(0, len(order), size)]
    batches, rows = len(filled), _round_up(max(rows for _, rows in filled))
    plan = np.zeros((4, batches * rows * width), np.int64)
    begin = np.arange(len(order)) // size * rows * width + np.concatenate([first for first, _ in filled])
    at, source, step = (spans(first, length) for first in (begin, windows.start[order], np.zeros_like(length)))
    plan[:, at] = windows.token[source], windows.target[source], step, np.repeat(np.arange(len(order)) + 1, length)
    return np.ascontiguousarray(plan.reshape(4, batches, rows, width).swapaxes(0, 1))


def row_width(length: Longs) -> int:
    """Return the width of rows for windows of these lengths."""
    return _round_up(max(WIDTH, int(length.max(initial=1))))


def fill_rows(length: Longs, width: int) -> tuple[Longs, int]:
    """Fill rows with windows in order; return the first place of each window and the number of rows."""
    first, row, used = [], 0, 0
    for n in length.tolist():
        if used + n > width:
            row, used = row + 1, 0
        first.append(row * width + used)
        used += n
    return np.array(first, np.int64), row + 1


def loss_of(model: CausalTransformer, batch: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the sum of -log P(target) over a packed batch (4, rows, width), and the number of its positions."""
    packing = RowPacking(batch, model.settings.heads, dtype)
    logits = F.linear(model.states(packing.token, packing), model.output[1:]).float().flatten(0, 1)
    loss = F.cross_entropy(logits, packing.target.flatten() - 1, ignore_index=-1, reduction="sum")
    return loss, (packing.target > 0).sum()


class CapturedStep(NamedTuple):
    """A captured training step, and the memory that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    batch: Tensor  # (4, rows, width)
    total: Tensor  # () sum of the losses so far
    storage: tuple[int, ...]  # addresses of the weights and the optimizer's state


_steps: WeakKeyDictionary[Optimizer, dict[object, CapturedStep]] = WeakKeyDictionary()


def plan(windows: Windows, order: Longs, settings: Training) -> Tensor | None:
    """Lay an epoch out in memory that a card copies from while the host goes on. None if there is nothing to train."""
    return torch.from_numpy(pack_rows(windows, order, settings.batch_sessions)).pin_memory() if len(order) else None


def launch(
    model: CausalTransformer, optimizer: Optimizer, plan: Tensor | None, settings: Training, seed: int
) -> Tensor | float | None:
    """Train by a plan with a captured step. Return the sum of the losses of all positions; only reading it waits.

    Return None, untrained, if batches are so large that launches take little of the time and memory matters more.
    """
    if plan is None:
        return 0.0
    if plan[0, 0].numel() * model.rows > CUDA_LOGITS:
        return None
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
    return step.total


def capture(work: Callable[[], object], pool: Any = None) -> torch.cuda.CUDAGraph:
    """Capture what `work` launches. Nothing runs before the graph is replayed."""
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.current_stream()
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    before = generator.clone_state()
    try:
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            work()
    except BaseException:
        # A failed capture leaves torch's capture stream current and its generator in capture mode. Steps captured
        # earlier hold that generator and would ignore seeds set on the restored one, so they are dropped.
        torch.cuda.set_stream(stream)
        generator.graphsafe_set_state(before)
        _steps.clear()
        raise
    return graph


@contextmanager
def no_waiting() -> Iterator[None]:
    """Raise RuntimeError wherever the host would wait for the card: such work cannot be captured."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it may miss some waits
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)


def _capture_step(model: CausalTransformer, optimizer: Optimizer, batch: Tensor, settings: Training) -> CapturedStep:
    """Capture a step on this batch. Weights, the optimizer's state and the random generator stay unchanged."""
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
                w.zero_()  # the warm-up created this state: it starts from zero
        for w, before in kept:
            w.copy_(before)
    return CapturedStep(graph, batch, total, _storage(model, optimizer))


def _tensors(model: CausalTransformer, optimizer: Optimizer) -> list[Tensor]:
    """Return everything that a step changes."""
    return [*model.parameters(), *(v for state in optimizer.state.values() for v in state.values())]


def _storage(model: CausalTransformer, optimizer: Optimizer) -> tuple[int, ...]:
    return tuple(w.data_ptr() for w in _tensors(model, optimizer))


def _round_up(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
