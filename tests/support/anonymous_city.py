"""Adversaries that are quick to train, and sessions in a city without positions."""

from dataclasses import replace

import numpy as np
import torch
from builders import sessions_of

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Adversary, Predictor, predicted, purify
from ghostpoi.attack.adversaries.bridges import AugmentedBridge, Bridge, NaturalBridge, PairedBridge
from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training, TrajectoryLM

CPU = torch.device("cpu")
SEED = Seed(7)
SMALL = ModelSettings(dim=32, heads=2, feed_forward=32, dropout=0.1, tied=True)
QUICK = Bridge(SMALL, Training(epochs=20, batch_sessions=16, learning_rate=5e-3))
LIGHT: dict[str, Adversary] = {
    **ADVERSARIES,
    "bridge": replace(QUICK, training=replace(QUICK.training, epochs=2)),
    "bridge-augmented": AugmentedBridge(SMALL, Training(epochs=2), lm=TrajectoryLM(SMALL, Training(epochs=2))),
    "bridge-natural": NaturalBridge(SMALL, Training(epochs=2), lm=TrajectoryLM(SMALL, Training(epochs=2))),
    "paired-bridge": PairedBridge(SMALL, Training(epochs=2), steps=4, samples=2),
}


def restored_by(adversary: Adversary, evidence: Evidence) -> Ints:
    """What an adversary restores, or what one that predicts takes for the likeliest."""
    if not isinstance(adversary, Predictor):
        return purify(adversary, evidence, SEED, CPU)[0]
    found = predicted(adversary, evidence, city(6, evidence.rows - 1, 5), SEED, CPU).restored
    assert found is not None
    return found


def city(sessions: int, pois: int, seed: int = 0) -> Sessions:
    """Sessions of 3 to 9 check-ins; some POIs are far more popular than others."""
    g = np.random.default_rng(seed)
    weight = 1 / np.arange(1, pois + 1)
    draw = [g.choice(pois, size=g.integers(3, 10), p=weight / weight.sum()) + 1 for _ in range(sessions)]
    return sessions_of(*[d.tolist() for d in draw])


def choices(pois: int, number: int = 4) -> Candidates:
    """Each POI's candidates are the next few in a circle; the last POI has none."""
    poi = (np.arange(pois)[:, None] + np.arange(1, number + 1)) % pois + 1
    poi[-1] = 0
    return Candidates(np.concatenate([np.zeros((1, number)), poi]).astype(np.int32), np.ones(pois + 1))


def drawn(clean: Sessions, candidates: Candidates, seed: int = 1) -> Sessions:
    """A random release: any candidate, every time another."""
    column = np.random.default_rng(seed).integers(candidates.poi.shape[1], size=clean.positions)
    poi = candidates.poi[clean.poi, column]
    return replace(clean, poi=np.where(poi > 0, poi, clean.poi).astype(np.int32))
