"""The victim of the paper: a causal Transformer."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ghostpoi import fit
from ghostpoi.errors import InputError
from ghostpoi.fit import Accuracy, Training
from ghostpoi.model import CausalTransformer, ModelSettings
from ghostpoi.randomness import Seed
from ghostpoi.sessions import Sessions
from ghostpoi.victims import batched
from ghostpoi.victims.base import Job, Progress, Result, askable, counted
from ghostpoi.victims.stack import LOGITS_CUDA, Stack

STAGE = ("victim",)
MEMORY_SHARE = 0.7  # of the card's free memory, for the victims that are trained together


def victim_settings(protocol: str) -> tuple[ModelSettings, Training]:
    """Shape and training of the victim. Chosen by clean test accuracy, before any method's accuracy was measured."""
    if protocol == "strong":
        return ModelSettings(tied=False, dropout=0.2), Training(epochs=60, patience=5)
    if protocol == "paper":
        # Embeddings start as PyTorch's own, the likeliest reading of a paper that says nothing: the victim then learns
        # slowly, and with this many epochs has the paper's clean accuracy (ghostpoi study calibrate); .17 if let be.
        return ModelSettings(tied=True, dropout=0.2, start=1.0), Training(epochs=38, patience=3)
    raise InputError(f"there is no protocol {protocol!r}; protocols are strong, paper")


@dataclass(frozen=True)
class Transformer:
    """Somebody downloads the release and trains the model of the paper on it, with early stopping on clean sessions."""

    def train(
        self,
        jobs: Sequence[Job],
        validation: Sessions,
        test: Sessions,
        rows: int,
        protocol: str,
        device: torch.device,
        progress: Progress | None = None,
    ) -> list[Result]:
        """One result per job, in their order."""
        return train_victims(jobs, validation, test, rows, *victim_settings(protocol), device, progress)


def train_victims(
    jobs: Sequence[Job],
    validation: Sessions,
    test: Sessions,
    rows: int,
    model: ModelSettings,
    training: Training,
    device: torch.device,
    progress: Progress | None = None,
    together: bool | None = None,
    tf32: bool = True,
) -> list[Result]:
    """Train a victim for every job and rank every next POI of the test sessions, one result per job in their order.

    On CUDA, victims of the same seed and session lengths are trained together, with float32 products in TF32 unless
    told not to. On a CPU that wins nothing, so they are trained one by one; `together` decides otherwise.
    """
    for job in jobs:
        if job.train.positions and not (job.train.poi.min() >= 1 and job.train.poi.max() < rows):
            raise ValueError(f"{job.name}: a POI to train on lies outside 1..P")
    report = progress or (lambda label, victims: None)
    results: dict[int, Result] = {}
    with batched.tf32(tf32 and device.type == "cuda"):
        if together if together is not None else device.type == "cuda":
            for group in groups(jobs):
                for chunk in _chunks(group, jobs, rows, model, training, device):
                    some = [jobs[i] for i in chunk]
                    found = _train_together(some, validation, test, rows, model, training, device, report)
                    results.update(zip(chunk, found, strict=True))
        else:
            for i, job in enumerate(jobs):
                results[i] = _train_alone(job, validation, test, rows, model, training, device, report)
    return [results[i] for i in range(len(jobs))]


def groups(jobs: Sequence[Job]) -> list[list[int]]:
    """Which jobs can be trained together: those of one seed with sessions of the same lengths."""
    found: dict[tuple[Seed, bytes], list[int]] = defaultdict(list)
    for i, job in enumerate(jobs):
        found[job.seed, job.train.length.astype(np.int64).tobytes()].append(i)
    return list(found.values())


def initial(rows: int, model: ModelSettings, seed: Seed) -> CausalTransformer:
    """The weights that every victim of this seed starts from, whatever it learns from."""
    return CausalTransformer(rows, model, seed.torch_seed(*STAGE, "weights"))


def _train_alone(
    job: Job, validation: Sessions, test: Sessions, rows: int, settings: ModelSettings, training: Training,
    device: torch.device, report: Progress,
) -> Result:  # fmt: skip
    began = time.perf_counter()
    model = initial(rows, settings, job.seed).to(device)
    # fit.train cannot count a target as wrong by itself; the rarest training POI, which is never first, does it.
    rarest = int(np.bincount(job.train.poi, minlength=rows)[1:].argmin()) + 1
    goal, _ = askable(fit.next_poi(validation, settings.max_positions), rows, rarest)
    exam, known = askable(fit.next_poi(test, settings.max_positions), rows)
    ran = 0

    def count(number: int, loss: float, now: Accuracy | None) -> None:
        nonlocal ran
        ran = number + 1
        report(job.name, 1 / training.epochs)

    pairs = fit.next_poi(job.train, settings.max_positions)
    best = fit.train(model, pairs, goal, training, job.seed, STAGE, count)
    report(job.name, 1 - ran / max(1, training.epochs))
    ranks = counted(fit.ranks(model, exam), known)
    return Result(job.name, ranks, best.acc1 if best else 0.0, ran, time.perf_counter() - began)


def _train_together(
    jobs: Sequence[Job], validation: Sessions, test: Sessions, rows: int, settings: ModelSettings, training: Training,
    device: torch.device, report: Progress,
) -> list[Result]:  # fmt: skip
    began = time.perf_counter()
    seed, most = jobs[0].seed, settings.max_positions
    label = jobs[0].name if len(jobs) == 1 else f"{len(jobs)} victims together"
    stack = Stack.of(initial(rows, settings, seed).to(device), len(jobs), training.precision)
    pairs = [fit.next_poi(job.train, most) for job in jobs]
    goal, reachable = askable(fit.next_poi(validation, most), rows)
    trained = batched.train(stack, pairs, goal, reachable, training, seed, STAGE, lambda n: report(label, n))
    exam, known = askable(fit.next_poi(test, most), rows)
    ranks = batched.Examination(exam, known, trained.stack).ranks(trained.stack).cpu().numpy()
    seconds = (time.perf_counter() - began) / len(jobs)
    return [
        Result(job.name, counted(ranks[m], known), trained.validation[m], trained.epochs[m], seconds)
        for m, job in enumerate(jobs)
    ]


def _chunks(
    group: list[int], jobs: Sequence[Job], rows: int, model: ModelSettings, training: Training, device: torch.device
) -> Iterator[list[int]]:
    """As many victims of a group at once as the card has room for, in parts of equal size."""
    most = len(group)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch's own, in no use
        length = fit.next_poi(jobs[group[0]].train, model.max_positions).length
        room = MEMORY_SHARE * free - 3 * 4 * LOGITS_CUDA
        most = max(1, int(room // batched.bytes_per_victim(rows, model, training, length)))
    parts = -(-len(group) // most)
    for part in np.array_split(np.array(group), parts):
        yield part.tolist()
