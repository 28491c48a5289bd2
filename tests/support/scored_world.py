"""A random city with two models, to compare scores with their definition."""

from collections.abc import Callable
from typing import Literal
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.model_walk import BUDGET, Walker
from ghostpoi.draw.scoring import Position
from ghostpoi.draw.walks import Substitution
from ghostpoi.models.prefix_cache import Prefix
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import ModelSettings, Precision, SpeedSettings

CPU, DEFAULT = torch.device("cpu"), SpeedSettings()
SCORED = dict[int, tuple[Tensor, Tensor, Tensor]]  # position -> feasible, adv, mani, each (K,)


class World:
    """A small random city with sessions and two models."""

    def __init__(self, seed: int, lengths: list[int], pois: int = 30, k: int = 20, hurry: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        n = sum(lengths)
        lat, lon = 40 + rng.random(pois + 1) * 0.5, -74 + rng.random(pois + 1) * 0.5
        lat[0] = lon[0] = np.nan
        self.vocabulary = Vocabulary(lat, lon, np.zeros(pois + 1, np.int32), np.arange(-1, pois, dtype=np.int32))
        sets = np.zeros((pois + 1, k), np.int32)
        for p in range(1, pois + 1):
            size = rng.choice([0, 1, 3, 9, k])
            sets[p, :size] = rng.permutation(np.setdiff1d(np.arange(1, pois + 1), [p]))[:size]
        self.candidates = Candidates(sets, np.ones(pois + 1))
        time = np.cumsum(rng.choice([0, 60, 600, 1800, 40_000], n)) if hurry else np.arange(n) * 10**6
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        poi = rng.integers(1, pois + 1, n).astype(np.int32)
        self.sessions = Sessions(np.zeros(len(lengths), np.int32), start, poi, time.astype(np.int64), np.arange(n))
        self.surrogate, self.trajectory_lm = (self.model(pois + 1, seed + s, tied=s == 1) for s in range(2))

    @staticmethod
    def model(rows: int, seed: int, tied: bool) -> CausalTransformer:
        model = CausalTransformer(rows, ModelSettings(8, 2, 2, 12, max_positions=4, dropout=0.1, tied=tied), seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in model.parameters():
                weight += 0.4 * torch.randn(weight.shape, generator=generator)
        return model

    def walk(
        self, empty: Literal["strict", "ignore"] = "strict", budget: int | None = None,
        precision: Precision = "float32", padded: bool = False,
    ) -> tuple[Substitution, SCORED]:  # fmt: skip
        """Choose the candidate with the best score, and return all scores. `padded`: as a CUDA card computes them."""
        scored: SCORED = {}

        def choose(position: Position) -> Tensor:
            adv, mani = position.adv(), position.mani()
            for b, index in enumerate(position.index.tolist()):
                scored[index] = position.feasible[b], adv[b], mani[b]
            best = (2 * adv + 0.5 * mani).argmax(1, keepdim=True)
            return position.candidates.gather(1, best).squeeze(1)

        with patch.dict(BUDGET, {"cpu": budget or BUDGET["cpu"]}):
            walker = self.walker(choose, SpeedSettings(empty=empty), precision)
        walker.padded = padded
        with patch.object(Prefix, "in_one_call", padded):
            return walker.run(), scored

    def walker(
        self, choose: Callable[[Position], Tensor], speed: SpeedSettings = DEFAULT, precision: Precision = "float32",
        models: bool = True,
    ) -> Walker:  # fmt: skip
        scorers = (self.surrogate, self.trajectory_lm) if models else (None, None)
        return Walker(self.sessions, self.candidates, self.vocabulary, speed, scorers, choose, CPU, precision)


WORLDS = st.builds(
    World, st.integers(0, 10**6), st.lists(st.integers(1, 11), min_size=1, max_size=6), k=st.sampled_from([9, 20])
)


def last_log_prob(model: CausalTransformer, tokens: list[int], poi: int) -> float:
    hidden = model.hidden(torch.tensor(tokens), np.array([len(tokens)]))
    return float(model.log_probs(hidden[-1:])[0, poi])
