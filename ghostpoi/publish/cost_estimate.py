"""Estimate the time, memory and substitutions of `protect` from a sample, for --dry-run."""

import resource
import time
from typing import Any

import numpy as np
import torch

from ghostpoi.models import fit
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import no_report
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.publish.rounds import Substituter, Task
from ghostpoi.publish.whole_table import WholeTable
from ghostpoi.randomness import Seed

SAMPLE = 512  # sessions


def estimate(whole: WholeTable, settings: Publication, device: torch.device) -> dict[str, Any]:
    """Time one epoch and one round of scoring on a sample of sessions; scale both to all sessions."""
    data, method, rounds = whole.data, settings.method, settings.rounds
    rows, seed = len(data.vocabulary), Seed(0)
    chosen = np.zeros(len(data.all), bool)
    chosen[seed.generator("sample").permutation(len(data.all))[:SAMPLE]] = True
    sample = data.all.take(chosen)
    surrogate = CausalTransformer(rows, settings.surrogate, 0).to(device)
    optimizer = fit.adamw(surrogate, settings.training)
    pairs = next_poi(sample, settings.surrogate.max_positions)
    fit.epoch(surrogate, optimizer, pairs, settings.training, seed, ("warm",), 0)  # the first epoch includes set-up
    begin = time.perf_counter()
    fit.epoch(surrogate, optimizer, pairs, settings.training, seed, ("timed",), 0)
    scale = data.all.positions / sample.positions
    epoch_s = (time.perf_counter() - begin) * scale
    lm = CausalTransformer(rows, settings.lm, 0).to(device) if method.needs_trajectory_lm else None
    task = Task(settings, sample, data.vocabulary, whole.session_sets, lm)
    begin = time.perf_counter()
    Substituter(task, surrogate if method.needs_surrogate else None, device).round(seed, 1, no_report)
    round_s = (time.perf_counter() - begin) * scale
    epochs = rounds.outer * rounds.inner if method.needs_surrogate else 0
    epochs += settings.lm_training.epochs if method.needs_trajectory_lm else 0
    scorings = rounds.outer if method.needs_surrogate else 1
    return {
        "seconds": epochs * epoch_s + scorings * round_s,
        "seconds_per_epoch": epoch_s,
        "epochs": epochs,
        "seconds_per_round": round_s,
        "rounds": scorings,
        # The peak so far includes the table, the candidate sets and one batch, which dominate a full run.
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "rows": len(whole.table),
        "substitution_rate": float(whole.has_candidates.mean()),
        "rows_in_sessions": data.all.positions,
        "substitution_rate_in_sessions": float((whole.session_sets.size[data.all.poi] > 0).mean()),
    }
