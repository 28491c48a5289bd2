"""How an epoch and a scoring pass grow with positions and vocabulary, on synthetic cities of growing size."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ghostpoi.bench.data import synthetic
from ghostpoi.models import fit
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.publish.methods import METHODS
from ghostpoi.publish.rounds import Task, substitute
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Rounds, SpeedSettings, Training

CITIES = ((170, 500, 200), (1_700, 3_000, 200), (17_000, 20_000, 200))  # about 20 thousand, 200 thousand, 2 million


def run(sessions: int, device: torch.device, say: Callable[[str], None]) -> dict[str, Any]:
    """Time both on at most `sessions` sessions of each city and scale to all of them."""
    rows = []
    for users, pois, days in CITIES:
        say(f"a city of {users:,} users and {pois:,} venues")
        data = synthetic(users, pois, days)
        pick = np.zeros(len(data.train), bool)
        pick[np.random.default_rng(0).permutation(len(pick))[:sessions]] = True
        sample = data.train.take(pick)
        scale = data.train.positions / sample.positions
        shape, training, seed = ModelSettings(), Training(), Seed(0)
        surrogate = CausalTransformer(len(data.vocabulary), shape, 0).to(device)
        lm = CausalTransformer(len(data.vocabulary), ModelSettings(tied=True), 1).to(device)
        pairs, optimizer = fit.next_poi(sample, shape.max_positions), fit.adamw(surrogate, training)
        begin = time.perf_counter()
        fit.epoch(surrogate, optimizer, pairs, training, seed, ("bench",), 0)
        epoch_s = (time.perf_counter() - begin) * scale
        task = Task(
            sample, data.vocabulary, data.candidates, METHODS["ghost"], Rounds(), SpeedSettings(), shape, training, lm
        )  # fmt: skip
        begin = time.perf_counter()
        substitute(task, surrogate, seed, 1, device, lambda label, units: None)
        round_s = (time.perf_counter() - begin) * scale
        rows.append(
            {
                "positions": data.train.positions,
                "vocabulary": len(data.vocabulary) - 1,
                "candidates": float(data.candidates.size[1:].mean()),
                "measured_sessions": len(sample),
                "sessions": len(data.train),
                "epoch_seconds": epoch_s,
                "scoring_seconds": round_s,
            }
        )
    first, last = rows[0], rows[-1]
    return {"cities": rows, "ratio": last["scoring_seconds"] / first["scoring_seconds"]}
