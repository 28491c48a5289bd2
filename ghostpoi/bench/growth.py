"""How the cost of an epoch and of a scoring round grows with the data, on synthetic cities of growing size."""

import time
from collections.abc import Callable
from typing import Any

import torch

from ghostpoi.bench.data import sample
from ghostpoi.data.prepared import prepare_city
from ghostpoi.models import fit
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.models.windows import next_poi
from ghostpoi.progress import no_report
from ghostpoi.publish.protocols import publication
from ghostpoi.publish.rounds import Task, substitute
from ghostpoi.randomness import Seed

CITIES = ((170, 500, 200), (1_700, 3_000, 200), (17_000, 20_000, 200))  # about 20,000, 200,000, 2 million check-ins


def run(sessions: int, device: torch.device, say: Callable[[str], None]) -> dict[str, Any]:
    """Time both on at most `sessions` sessions of each city, scaled to all its positions.

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
        substitute(Task.of(settings, some, data.vocabulary, data.candidates, lm), surrogate, seed, 1, device, no_report)
        end = time.perf_counter()
        city = {
            "positions": data.train.positions,
            "vocabulary": len(data.vocabulary) - 1,
            "candidates": float(data.candidates.size[1:].mean()),
            "measured_sessions": len(some),
            "sessions": len(data.train),
            "epoch_seconds": (between - begin) * scale,
            "scoring_seconds": (end - between) * scale,
        }
        cities.append(city)
    return {"cities": cities, "ratio": cities[-1]["scoring_seconds"] / cities[0]["scoring_seconds"]}
