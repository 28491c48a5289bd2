"""Training of causal Transformers, and their hidden states and likeliest POIs.

An epoch depends only on the weights, the optimizer's state, the data and (seed, stage, epoch number). Training that
stops after any epoch therefore resumes with identical results.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.models import cuda_graphs
from ghostpoi.models.devices import precise, seeded, trim_heap
from ghostpoi.models.training_windows import Windows
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import Precision, Training

LOGITS = (1 << 21, 1 << 27)  # held at once: on a CPU, on CUDA
EVALUATION_WINDOWS = (512, 8192)  # windows read at once without gradients: on a CPU, on CUDA


def adamw(model: CausalTransformer, settings: Training) -> torch.optim.AdamW:
    """Return the optimizer. It outlives an epoch: the surrogate keeps its own from round to round."""
    cuda = model.device.type == "cuda"
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True, capturable=cuda
    )
    # Torch warns when a capturable optimizer steps outside a graph. Ours does so on purpose before a capture.
    optimizer._warned_capturable_if_run_uncaptured = True
    return optimizer


def epoch(
    model: CausalTransformer, optimizer: Optimizer, windows: Windows, settings: Training,
    seed: Seed, stage: tuple[object, ...], number: int,
) -> float:  # fmt: skip
    """Train on all windows once, in an order drawn for this epoch. Return the mean loss of a position."""
    return next(epochs(model, optimizer, windows, settings, seed, stage, range(number, number + 1)))


def epochs(
    model: CausalTransformer, optimizer: Optimizer, windows: Windows, settings: Training,
    seed: Seed, stage: tuple[object, ...], numbers: Sequence[int],
) -> Iterator[float]:  # fmt: skip
    """Train the epochs with these numbers, each when it is asked for, and yield the mean loss of a position.

    While a CUDA card works on an epoch, the host lays out the next one.
    """
    cuda, positions = model.device.type == "cuda", max(1, len(windows.token))

    def order(number: int) -> Longs:
        return seed.generator(*stage, "order", number).permutation(len(windows.length))

    plan = cuda_graphs.plan(windows, order(numbers[0]), settings) if cuda and numbers else None
    for at, number in enumerate(numbers):
        dropout = seed.torch_seed(*stage, "dropout", number)
        model.train()
        total = cuda_graphs.launch(model, optimizer, plan, settings, dropout) if cuda else None
        if total is None:
            total = packed_epoch(model, optimizer, windows, order(number), settings, dropout)
        if cuda and at + 1 < len(numbers):
            plan = cuda_graphs.plan(windows, order(numbers[at + 1]), settings)
        loss = float(total) / positions  # waits for the card
        model.eval()
        yield loss


def packed_epoch(
    model: CausalTransformer, optimizer: Optimizer, windows: Windows, order: Longs, settings: Training, seed: int,
    loss_of: Callable[[Windows], Tensor] | None = None,
) -> float:  # fmt: skip
    """Train on packed windows in this order, step by step. Return the sum of the losses of all positions.

    `loss_of` gives the mean loss of a batch: by default, -log P of the targets.
    """
    loss_of = loss_of or (lambda batch: losses(model, batch)[0])
    total = torch.zeros((), device=model.device)
    with seeded(model.device, seed):
        for batch in windows.batches(order, settings.batch_sessions):
            optimizer.zero_grad(set_to_none=True)
            with precise(settings.precision, model.device):
                loss = loss_of(batch)
            loss.backward()  # type: ignore[no-untyped-call]
            if settings.clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            total += loss.detach() * len(batch.token)
    trim_heap()
    return float(total)


def losses(model: CausalTransformer, batch: Windows) -> tuple[Tensor, Tensor]:
    """Return the mean of -log P(target) over a batch, and its hidden states (M, d)."""
    hidden = model.hidden(_to(batch.token, model.device), batch.length).float()
    return model.losses(hidden, _to(batch.target, model.device)).mean(), hidden


@torch.no_grad()
def likeliest(model: CausalTransformer, windows: Windows, precision: Precision) -> Ints:
    """Return the POI that the model holds likeliest at every position, (N,)."""
    rows, found = max(1, LOGITS[model.device.type == "cuda"] // model.rows), []
    with precise(precision, model.device):
        columns = model.output[1:].t().contiguous()  # (d, P): row 0 is never an answer
        for hidden, _ in hidden_states(model, windows):
            found += [torch.mm(part, columns).argmax(1) + 1 for part in torch.split(hidden, rows)]
    return torch.cat(found).cpu().numpy().astype(np.int32) if found else np.zeros(0, np.int32)


@torch.no_grad()
def hidden_states(model: CausalTransformer, windows: Windows) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the hidden states (M, d) and targets (M,) of all positions, in order, some windows at a time."""
    model.eval()
    for batch in windows.batches(np.arange(len(windows.length)), EVALUATION_WINDOWS[model.device.type == "cuda"]):
        hidden = model.hidden(_to(batch.token, model.device), batch.length)
        yield hidden.float(), _to(batch.target, model.device)


def train(
    model: CausalTransformer, windows: Windows, settings: Training, seed: Seed, stage: tuple[object, ...],
    progress: Callable[[float], None] = lambda loss: None,
) -> None:  # fmt: skip
    """Train in place. `progress` gets the mean loss of a position after every epoch."""
    for loss in epochs(model, adamw(model, settings), windows, settings, seed, stage, range(settings.epochs)):
        progress(loss)
    model.eval()


def _to(array: Longs, device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, non_blocking=True)
