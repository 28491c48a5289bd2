"""A packed training epoch against the plain padded loop, on the same sessions, batches and seeds."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ghostpoi.data.prepared import Prepared
from ghostpoi.models import fit, reference
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training


def run(data: Prepared, share: float, epochs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Train a model both ways on a share of the sessions."""
    pick = np.zeros(len(data.train), bool)
    pick[np.random.default_rng(0).permutation(len(pick))[: max(1, int(share * len(pick)))]] = True
    shape = ModelSettings()
    pairs = fit.next_poi(data.train.take(pick), shape.max_positions)
    seconds, losses = {}, {}
    for name, epoch in (("packed", fit.epoch), ("padded", reference.padded_epoch)):
        say(f"{epochs} {name} epochs over {len(pairs.length):,} sessions")
        settings = Training()
        model = CausalTransformer(len(data.vocabulary), shape, 0)
        optimizer = fit.adamw(model, settings)
        begin = time.perf_counter()
        losses[name] = [epoch(model, optimizer, pairs, settings, Seed(0), ("bench",), e) for e in range(epochs)]
        seconds[name] = (time.perf_counter() - begin) / epochs
    return {
        "ratio": seconds["padded"] / seconds["packed"],
        "padded_seconds_per_epoch": seconds["padded"],
        "packed_seconds_per_epoch": seconds["packed"],
        "padded_losses": losses["padded"],
        "packed_losses": losses["packed"],
        "sessions": len(pairs.length),
        "positions": len(pairs.token),
    }
