"""A model of walks round a ring."""

import numpy as np
from builders import flat_sessions

from ghostpoi.data.sessions import Sessions
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

ROWS = 17
SEED = Seed(3)
TRAINING = Training(batch_sessions=8, learning_rate=0.01, epochs=4)


def ring_walks(lengths: list[int], seed: int = 0) -> Sessions:
    """Learnable sessions: walks round a ring of POIs, with noise."""
    rng = np.random.default_rng(seed)
    return flat_sessions(np.cumsum(rng.choice([1, 1, 1, 5], sum(lengths))) % (ROWS - 1) + 1, lengths)


def model_of(dropout: float = 0.2, tied: bool = False) -> CausalTransformer:
    return CausalTransformer(ROWS, ModelSettings(16, 2, 2, 24, 10, dropout, tied), 1)


TRAIN = ring_walks([3, 12, 5, 7, 4, 25, 3, 9] * 5)
