"""Protection of the training split, and how the cost of an epoch and of a scoring round grows with the data."""

import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ghostpoi.bench.data import sample
from ghostpoi.bench.models import matmul_peak
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Sessions
from ghostpoi.formats.prepare import prepare_city
from ghostpoi.models import fit, trajectory_lm
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import no_report
from ghostpoi.publish.model_rounds import Substituter
from ghostpoi.publish.publication_settings import Publication, publication
from ghostpoi.publish.rounds import publish
from ghostpoi.publish.task import Task
from ghostpoi.randomness import Seed

CITIES = ((170, 500, 200), (1_700, 3_000, 200), (17_000, 20_000, 200))  # about 20,000, 200,000, 2 million check-ins


def protect(data: Prepared, method: str, device: torch.device, say: Callable[[str], None]) -> dict[str, Any]:
    """Time one run under the paper's settings, after a short one that initialises libraries and kernels.

    `ratio` is the time over that of the same matrix products at this machine's peak; None on CUDA.
    """
    settings = publication(method, "paper")
    say("warming up")
    few = data.train.take(data.train.length >= data.train.length.max() // 2)
    rounds, lm_training = replace(settings.rounds, outer=2, inner=1), replace(settings.lm_training, epochs=1)
    _protect(data, few, replace(settings, rounds=rounds, lm_training=lm_training), device)
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


def growth(sessions: int, device: torch.device, say: Callable[[str], None]) -> dict[str, Any]:
    """Time an epoch and a scoring round on at most `sessions` sessions of each city, scaled to all.

    `ratio` is the scoring time of the largest city over that of the smallest.
    """
    cities = []
    settings, seed = publication("ghost"), Seed(0)
    for users, pois, days in CITIES:
        say(f"a city of {users:,} users and {pois:,} venues")
        data = prepare_city(users, pois, days, 0)
        some = sample(data.train, sessions)
        scale = data.train.positions / some.positions
        surrogate = CausalTransformer(len(data.vocabulary), settings.surrogate, 0).to(device)
        lm = CausalTransformer(len(data.vocabulary), settings.lm, 1).to(device)
        windows = next_poi(some, settings.surrogate.max_positions)
        optimizer = fit.adamw(surrogate, settings.training)
        begin = time.perf_counter()
        fit.epoch(surrogate, optimizer, windows, settings.training, seed, ("bench",), 0)
        between = time.perf_counter()
        task = Task(settings, some, data.vocabulary, data.candidates, lm)
        Substituter(task, surrogate, device).round(seed, 1, no_report)
        end = time.perf_counter()
        cities.append({
            "positions": data.train.positions, "vocabulary": len(data.vocabulary) - 1,
            "candidates": float(data.candidates.size[1:].mean()), "measured_sessions": len(some),
            "sessions": len(data.train), "epoch_seconds": (between - begin) * scale,
            "scoring_seconds": (end - between) * scale,
        })  # fmt: skip
    return {"cities": cities, "ratio": cities[-1]["scoring_seconds"] / cities[0]["scoring_seconds"]}
