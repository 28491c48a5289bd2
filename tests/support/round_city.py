"""People who go round a circle of venues, and quick audits of their check-ins."""

from pathlib import Path
from typing import Any

import numpy as np
from conftest import HEADER

from ghostpoi.audits.audit import audit
from ghostpoi.audits.request import AuditRequest
from ghostpoi.formats import Source

USERS, DAYS, POIS = 12, 25, 24
LM = ("lm.dim=16", "lm.heads=2", "lm.feed_forward=16", "lm_training.epochs=1")
TINY = (  # for a Transformer
    "victim.dim=16", "victim.heads=2", "victim.feed_forward=16", "victim.layers=1", "training.epochs=6",
    "training.learning_rate=0.02", "training.batch_sessions=16", *LM,
)  # fmt: skip


FAST = ("none", "frequency", "bigram")
Row = tuple[str, int, int]  # user, POI, time
DAY = 86_400


def rows() -> list[Row]:
    """People who go round a circle of venues, four check-ins every other day."""
    rng = np.random.default_rng(3)
    out = []
    for user in range(USERS):
        for day in range(DAYS):
            start = int(rng.integers(POIS))
            times = 1_333_400_000 + user + 2 * DAY * day + 3600 * np.arange(4)
            out += [(f"u{user}", (start + k) % POIS, int(t)) for k, t in enumerate(times)]
    return out


def text(table: list[Row], north: float = 40.7, mark: str = "v") -> str:
    lines = [f"{u},{mark}{p},c{p % 2},{north + 0.002 * (p % 5)},{-74 + 0.002 * (p // 5)},{t}" for u, p, t in table]
    return "\n".join([HEADER, *lines]) + "\n"


CLEAN = rows()


def run(file: Path, release: Path, **options: Any) -> dict[str, Any]:
    given = {"adversaries": FAST, "victims": ("markov",), "seeds": 1, "set": LM, "naturalness": False}
    given |= {"cache": release.parent / "cache"}
    request = AuditRequest(file=Source(file), release=Source(release), **given | options)
    return audit(request, None, None, lambda text: None, lambda label, units: None)
