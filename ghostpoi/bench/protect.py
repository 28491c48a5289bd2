"""Protection of the training split under the paper's settings, including the trajectory LM."""

import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ghostpoi.bench.scoring import matmul_peak
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Sessions
from ghostpoi.models import trajectory_lm
from ghostpoi.publish.protocols import Publication, publication
from ghostpoi.publish.rounds import Task, publish
from ghostpoi.randomness import Seed


def run(data: Prepared, method: str, device: torch.device, say: Callable[[str], None]) -> dict[str, Any]:
    """Time one whole run, after a short one on the longest sessions that initialises libraries and kernels.

    `ratio` is the time over that of the same matrix products at this machine's peak; None on CUDA.
    """
    settings = publication(method, "paper")
    say("warming up")
    few = data.train.take(data.train.length >= data.train.length.max() // 2)
    brief = replace(
        settings, rounds=replace(settings.rounds, outer=2, inner=1), lm_training=replace(settings.lm_training, epochs=1)
    )
    _protect(data, few, brief, device)
    say(f"protecting {data.train.positions:,} positions with {method}")
    seconds, lm_seconds = _protect(data, data.train, settings, device)
    return {
        "seconds": seconds,
        "trajectory_lm_seconds": lm_seconds,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "ratio": seconds / (operations(data, settings) / matmul_peak()) if device.type == "cpu" else None,
        "positions": data.train.positions,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
    }


def _protect(data: Prepared, sessions: Sessions, settings: Publication, device: torch.device) -> tuple[float, float]:
    """Return the seconds of a whole run, and those of its trajectory LM."""
    begin = time.perf_counter()
    lm = None
    if settings.method.needs_trajectory_lm:
        lm = trajectory_lm.pretrain(sessions, len(data.vocabulary), settings.trajectory_lm, Seed(0), device)
    if device.type == "cuda":
        torch.cuda.synchronize()
    lm_seconds = time.perf_counter() - begin
    publish(Task(settings, sessions, data.vocabulary, data.candidates, lm), Seed(1), device)
    return time.perf_counter() - begin, lm_seconds


def operations(data: Prepared, settings: Publication) -> float:
    """Count the operations of all epochs (a backward pass costs two forward passes) and all rounds.

    A multiply-add counts as two operations. Attention is left out.
    """
    s = settings.surrogate
    token = 2 * (s.layers * (4 * s.dim**2 + 2 * s.dim * s.feed_forward) + s.dim * (len(data.vocabulary) - 1))
    epochs = settings.rounds.outer * settings.rounds.inner + settings.lm_training.epochs
    scored = float(data.candidates.size[data.train.poi].sum()) + data.train.positions
    return token * (3 * epochs * data.train.positions + settings.rounds.outer * scored)
