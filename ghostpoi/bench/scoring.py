"""One scoring pass against its definition, and against what the machine's matrix products can do at best."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Sessions
from ghostpoi.models import reference
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.publish.position import Position
from ghostpoi.publish.walk import walk
from ghostpoi.settings import ModelSettings, SpeedSettings

EVERY_SPEED = SpeedSettings(limit_kmh=1e9)  # the definition knows no mask


def run(data: Prepared, share: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Score a share of the sessions both ways, then all of them the fast way."""
    shape = ModelSettings()
    surrogate = CausalTransformer(len(data.vocabulary), shape, 1).eval()
    lm = CausalTransformer(len(data.vocabulary), ModelSettings(tied=True), 2).eval()
    pick = np.zeros(len(data.train), bool)
    pick[np.random.default_rng(0).permutation(len(pick))[: max(1, int(share * len(pick)))]] = True
    sample = data.train.take(pick)
    few = data.train.take(np.arange(len(data.train)) < 64)
    _walk(data, few, surrogate, lm, keep=False)  # libraries set themselves up
    say(f"the definition, batched per position, on {len(sample):,} of {len(data.train):,} sessions")
    _, keeper, released = _walk(data, sample, surrogate, lm, keep=True)
    begin = time.perf_counter()
    adv, mani = reference.brute_force_scores(sample, released, data.candidates, surrogate, lm)
    slow_s = time.perf_counter() - begin
    real = adv > -np.inf
    difference = max(
        float(np.abs(adv[real] - keeper.adv[real]).max()), float(np.abs(mani[real] - keeper.mani[real]).max())
    )
    say("the same sessions the fast way, one pass over all sessions, then the matrix-product peak")
    fast_s, *_ = _walk(data, sample, surrogate, lm, keep=False)
    # What the manifold term adds is small beside a machine's moods: the better of two passes each, in turn.
    turns = [[_walk(data, data.train, surrogate, m, keep=False) for m in (lm, None)] for _ in range(2)]
    pass_s, adv_s = (min(turn[which][0] for turn in turns) for which in (0, 1))
    keeper = turns[0][0][1]
    peak = matmul_peak()
    operations = sum(keeper.counted)
    return {
        "ratio": slow_s / fast_s,
        "max_abs_diff": difference,
        "share_of_peak": operations / pass_s / peak,
        "manifold_share": 1 - adv_s / pass_s,  # of the pass: what it takes longer than with the adversarial term alone
        "sample_sessions": len(sample),
        "definition_seconds": slow_s,
        "fast_seconds": fast_s,
        "pass_seconds": pass_s,
        "pass_operations": operations,
        "peak_operations_per_second": peak,
        "positions": data.train.positions,
        "vocabulary": len(data.vocabulary) - 1,
    }


@dataclass
class _Keeper:
    """A greedy method that counts operations and, if asked, keeps the scores."""

    shape: ModelSettings
    rows: int
    manifold: bool  # whether the manifold term is asked for
    adv: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mani: np.ndarray = field(default_factory=lambda: np.zeros(0))
    counted: list[float] = field(default_factory=list)  # a wave's operations each: batches are walked side by side

    def choose(self, position: Position) -> Tensor:
        adv = position.adv()
        mani = position.mani() if self.manifold else torch.zeros_like(adv)
        if len(self.adv):
            at = position.index.numpy()
            self.adv[at], self.mani[at] = adv.numpy(), mani.numpy()
        options = position._options
        scored = len(options.poi) if options.unique is None else len(options.unique)
        sessions = len(position.anchor)
        # Multiply-adds count as two, attention aside. A scored token: all layers and a row of logits. A chosen one: the
        # trajectory LM's layers and a row of logits, and what the surrogate's keys and values need.
        layers = 2 * self.shape.layers * (4 * self.shape.dim**2 + 2 * self.shape.dim * self.shape.feed_forward)
        logits = 2 * self.shape.dim * (self.rows - 1)
        last = 2 * (self.shape.dim**2 + 2 * self.shape.dim * self.shape.feed_forward)  # left out: nobody asks for it
        asked = 1 if options.unique is not None else int((position.candidates[:, 0] > 0).sum())
        self.counted.append(scored * (layers + logits) + sessions * (2 * layers - last) + asked * logits)
        column = (adv + mani).argmax(1, keepdim=True)
        return position.candidates.gather(1, column).squeeze(1)


def _walk(
    data: Prepared, sessions: Sessions, surrogate: CausalTransformer, lm: CausalTransformer | None, keep: bool
) -> tuple[float, _Keeper, np.ndarray]:
    keeper = _Keeper(surrogate.settings, surrogate.rows, lm is not None)
    if keep:
        shape = (sessions.positions, data.candidates.poi.shape[1])
        keeper.adv, keeper.mani = np.full(shape, -np.inf, np.float32), np.full(shape, -np.inf, np.float32)
    begin = time.perf_counter()
    result = walk(sessions, data.candidates, data.vocabulary, EVERY_SPEED, surrogate, lm, keeper.choose)
    return time.perf_counter() - begin, keeper, result.poi


def matmul_peak(size: int = 2048, tries: int = 5) -> float:
    """Operations per second of the best of several large float32 matrix products."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = np.inf
    for _ in range(tries):
        begin = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - begin)
    return 2 * size**3 / best
