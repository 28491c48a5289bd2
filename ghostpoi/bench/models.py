"""A scoring pass and a training epoch, compared with their plain definitions and with the machine's peak."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ghostpoi.bench.data import sample
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Sessions
from ghostpoi.models import fit, slow_reference
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.publish.scored_position import Options, Position
from ghostpoi.publish.session_walk import Walker
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, SpeedSettings, Training

TRIES, TURNS = 3, 5
NO_LIMIT = SpeedSettings(limit_kmh=1e9)  # the brute-force definition has no speed mask


def scoring(data: Prepared, share: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Score a share of the sessions both ways, then all of them the fast way.

    `ratio` is the time of the definition over the least of several fast times, `max_abs_diff` the largest difference
    of a score, `share_of_peak` the share of the machine's matrix-product peak that a pass achieves, and
    `manifold_share` the share of a pass that the manifold term takes: the median of `manifold_shares`, one per turn.
    """
    rows = len(data.vocabulary)
    surrogate = CausalTransformer(rows, ModelSettings(), 1).eval()
    lm = CausalTransformer(rows, ModelSettings(tied=True), 2).eval()
    some = sample(data.train, int(share * len(data.train)))
    _timed_walk(data, sample(data.train, 64), surrogate, lm)  # libraries initialise
    say(f"the definition, batched per position, on {len(some):,} of {len(data.train):,} sessions")
    _, recorder, released = _timed_walk(data, some, surrogate, lm, record=True)
    begin = time.perf_counter()
    expected = np.stack(slow_reference.brute_force_scores(some, released, data.candidates, surrogate, lm))
    definition_s = time.perf_counter() - begin
    real = expected > -np.inf
    say("the same sessions the fast way, one pass over all sessions, then the matrix-product peak")
    fast_s = min(_timed_walk(data, some, surrogate, lm)[0] for _ in range(TRIES))
    # The manifold term takes little time compared with the noise, so both kinds of passes run several times, in turn.
    turns = [[_timed_walk(data, data.train, surrogate, m) for m in (lm, None)] for _ in range(TURNS)]
    pass_s, shares = min(whole[0] for whole, _ in turns), [1 - adv[0] / whole[0] for whole, adv in turns]
    peak, operations = matmul_peak(), sum(turns[0][0][1].operations)
    return {
        "ratio": definition_s / fast_s, "max_abs_diff": float(np.abs(expected[real] - recorder.scores[real]).max()),
        "share_of_peak": operations / pass_s / peak, "manifold_share": float(np.median(shares)),
        "manifold_shares": shares,
        "sample_sessions": len(some), "definition_seconds": definition_s, "fast_seconds": fast_s,
        "pass_seconds": pass_s, "pass_operations": operations, "peak_operations_per_second": peak,
        "positions": data.train.positions, "vocabulary": rows - 1,
    }  # fmt: skip


def training(data: Prepared, share: float, epochs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Train a model both ways on a share of the sessions. `ratio` is the padded time over the packed time."""
    shape, settings = ModelSettings(), Training()
    windows = next_poi(sample(data.train, int(share * len(data.train))), shape.max_positions)
    seconds, losses = {}, {}
    for name, epoch in (("packed", fit.epoch), ("padded", slow_reference.padded_epoch)):
        say(f"{epochs} {name} epochs over {len(windows.length):,} sessions")
        model = CausalTransformer(len(data.vocabulary), shape, 0)
        optimizer = fit.adamw(model, settings)
        begin = time.perf_counter()
        losses[name] = [epoch(model, optimizer, windows, settings, Seed(0), ("bench",), e) for e in range(epochs)]
        seconds[name] = (time.perf_counter() - begin) / epochs
    return {
        "ratio": seconds["padded"] / seconds["packed"], "padded_seconds_per_epoch": seconds["padded"],
        "packed_seconds_per_epoch": seconds["packed"], "padded_losses": losses["padded"],
        "packed_losses": losses["packed"], "sessions": len(windows.length), "positions": len(windows.token),
    }  # fmt: skip


@dataclass
class _Recorder:
    """A greedy method that counts operations and records the scores if it has room for them."""

    model: CausalTransformer
    manifold: bool  # whether to compute the manifold term
    scores: np.ndarray  # (2, N, K) adv and mani, or empty
    operations: list[float] = field(default_factory=list)  # of each wave; batches run in parallel threads

    def choose(self, position: Position) -> Tensor:
        adv = position.adv()
        mani = position.mani() if self.manifold else torch.zeros_like(adv)
        if self.scores.size:
            self.scores[:, position.index.numpy()] = torch.stack([adv, mani]).numpy()
        self.operations.append(self._count(position))
        column = (adv + mani).argmax(1, keepdim=True)
        return position.candidates.gather(1, column).squeeze(1)

    def _count(self, position: Position) -> float:
        """Count the operations of a wave without attention; a multiply-add counts as two."""
        # A scored token passes all layers and one row of logits. A chosen token passes the trajectory LM's layers and
        # one row of logits, and the surrogate's layers up to the last keys and values.
        s, options = self.model.settings, position.options
        layers = 2 * s.layers * (4 * s.dim**2 + 2 * s.dim * s.feed_forward)
        logits = 2 * s.dim * (self.model.rows - 1)
        after_last_values = 2 * (s.dim**2 + 2 * s.dim * s.feed_forward)
        if not isinstance(options, Options):
            raise TypeError("the operations of a walk on the CPU are counted")
        scored = len(options.poi) if options.unique is None else len(options.unique)
        asked = 1 if options.unique is not None else int((position.candidates[:, 0] > 0).sum())
        chosen = len(position.anchor) * (2 * layers - after_last_values)
        return scored * (layers + logits) + chosen + asked * logits


def _timed_walk(
    data: Prepared, sessions: Sessions, surrogate: CausalTransformer, lm: CausalTransformer | None, record: bool = False
) -> tuple[float, _Recorder, np.ndarray]:
    """Return the seconds of a walk, its recorder and the released POIs."""
    shape = (2, sessions.positions, data.candidates.poi.shape[1]) if record else 0
    recorder = _Recorder(surrogate, lm is not None, np.full(shape, -np.inf, np.float32))
    begin = time.perf_counter()
    walker = Walker(
        sessions, data.candidates, data.vocabulary, NO_LIMIT, (surrogate, lm), recorder.choose, torch.device("cpu")
    )
    result = walker.run()
    return time.perf_counter() - begin, recorder, result.poi


def matmul_peak(size: int = 2048, tries: int = 5) -> float:
    """Return the operations per second of the fastest of several large float32 matrix products."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = np.inf
    for _ in range(tries):
        begin = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - begin)
    return 2 * size**3 / best
