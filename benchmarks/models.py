"""A scoring pass, a training epoch and a whole run of a method, compared with definitions and the machine's peak."""

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import slow_reference
from ghostpoi.data import prepared
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.model_walk import Substituter, Walker
from ghostpoi.draw.noise import ByPosition
from ghostpoi.draw.publication import Publication, Task, publication
from ghostpoi.draw.scoring import Options, Position
from ghostpoi.draw.table import publish
from ghostpoi.models import fit, trajectory_lm
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import no_report
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, SpeedSettings, Training
from ghostpoi.study import prepare_city, prepare_file

NYC = "dataset_TSMC2014_NYC.txt.xz"
CITIES = ((170, 500, 200), (1_700, 3_000, 200), (17_000, 20_000, 200))  # about 20,000, 200,000, 2 million check-ins
TRIES, TURNS = 3, 5
NO_LIMIT = SpeedSettings(limit_kmh=1e9)  # the brute-force definition has no speed mask


def load(path: Path | None) -> Prepared:
    """Load the prepared file. Without a path, take NYC if it is present, else a synthetic city."""
    if path is not None:
        return prepared.load(path)
    nyc = Path(os.environ.get("GHOSTPOI_DATA", "../shared/data")) / NYC
    return prepare_file(nyc) if nyc.is_file() else prepare_city(1000, 4000, 250, 0)


def sample(sessions: Sessions, count: int) -> Sessions:
    """Draw `count` sessions, at least one and at most all. Every call draws the same ones."""
    pick = np.zeros(len(sessions), bool)
    pick[np.random.default_rng(0).permutation(len(pick))[: max(1, count)]] = True
    return sessions.take(pick)


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
        Substituter(task, surrogate, device).round(ByPosition(seed, some.positions), 1, no_report)
        end = time.perf_counter()
        cities.append({
            "positions": data.train.positions, "vocabulary": len(data.vocabulary) - 1,
            "candidates": float(data.candidates.size[1:].mean()), "measured_sessions": len(some),
            "sessions": len(data.train), "epoch_seconds": (between - begin) * scale,
            "scoring_seconds": (end - between) * scale,
        })  # fmt: skip
    return {"cities": cities, "ratio": cities[-1]["scoring_seconds"] / cities[0]["scoring_seconds"]}
