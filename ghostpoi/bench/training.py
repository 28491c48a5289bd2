"""A packed training epoch compared with a plain padded one, on the same sessions, batches and seeds."""

import time
from collections.abc import Callable
from typing import Any

from ghostpoi.bench.data import sample
from ghostpoi.data.prepared import Prepared
from ghostpoi.models import fit, reference
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.models.windows import next_poi
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training


def run(data: Prepared, share: float, epochs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Train a model both ways on a share of the sessions. `ratio` is the padded time over the packed time."""
    shape, settings = ModelSettings(), Training()
    windows = next_poi(sample(data.train, int(share * len(data.train))), shape.max_positions)
    seconds, losses = {}, {}
    for name, epoch in (("packed", fit.epoch), ("padded", reference.padded_epoch)):
        say(f"{epochs} {name} epochs over {len(windows.length):,} sessions")
        model = CausalTransformer(len(data.vocabulary), shape, 0)
        optimizer = fit.adamw(model, settings)
        begin = time.perf_counter()
        losses[name] = [epoch(model, optimizer, windows, settings, Seed(0), ("bench",), e) for e in range(epochs)]
        seconds[name] = (time.perf_counter() - begin) / epochs
    return {
        "ratio": seconds["padded"] / seconds["packed"],
        "padded_seconds_per_epoch": seconds["padded"],
        "packed_seconds_per_epoch": seconds["packed"],
        "padded_losses": losses["padded"],
        "packed_losses": losses["packed"],
        "sessions": len(windows.length),
        "positions": len(windows.token),
    }
