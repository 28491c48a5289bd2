"""What a run of `protect` would take, from a sample: the answer of --dry-run."""

import resource
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ghostpoi.models import fit
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.models.windows import next_poi
from ghostpoi.publish.protocols import Publication
from ghostpoi.publish.rounds import substitute
from ghostpoi.publish.table import Prepared, make_task
from ghostpoi.randomness import Seed

SAMPLE = 512  # sessions


def estimate(prepared: Prepared, settings: Publication, device: torch.device) -> dict[str, Any]:
    """Time one epoch and one round of scoring on a sample of sessions and scale them to the whole."""
    data, method, rounds = prepared.data, settings.method, settings.rounds
    rows, seed = len(data.vocabulary), Seed(0)
    pick = np.zeros(len(data.all), bool)
    pick[seed.generator("sample").permutation(len(data.all))[:SAMPLE]] = True
    sample = data.all.take(pick)
    surrogate = CausalTransformer(rows, settings.surrogate, 0).to(device)
    optimizer = fit.adamw(surrogate, settings.training)
    pairs = next_poi(sample, settings.surrogate.max_positions)
    fit.epoch(surrogate, optimizer, pairs, settings.training, seed, ("warm",), 0)  # the first pays for set-up
    begin = time.perf_counter()
    fit.epoch(surrogate, optimizer, pairs, settings.training, seed, ("timed",), 0)
    scale = data.all.positions / sample.positions
    epoch_s = (time.perf_counter() - begin) * scale
    lm = CausalTransformer(rows, settings.lm, 0).to(device) if method.needs_trajectory_lm else None
    task = replace(make_task(prepared, settings, lm), sessions=sample)
    begin = time.perf_counter()
    substitute(task, surrogate if method.needs_surrogate else None, seed, 1, device, lambda label, units: None)
    round_s = (time.perf_counter() - begin) * scale
    epochs = rounds.outer * rounds.inner if method.needs_surrogate else 0
    epochs += settings.lm_training.epochs if method.needs_trajectory_lm else 0
    times = rounds.outer if method.needs_surrogate else 1
    return {
        "seconds": epochs * epoch_s + times * round_s,
        "seconds_per_epoch": epoch_s,
        "epochs": epochs,
        "seconds_per_round": round_s,
        "rounds": times,
        # What the sample reached already holds the table, the candidates and one batch, the largest things there are.
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "rows": len(prepared.table),
        "substitution_rate": float(prepared.has_candidates.mean()),
        "covered_rows": data.all.positions,
        "covered_substitution_rate": float((prepared.covered.size[data.all.poi] > 0).mean()),
    }
