"""Crowd: a visit is released as some venue of its crowd, drawn without looking at which of them was visited.

Two visits to venues of one crowd, in the same place of the same released trajectory, are released alike: drawn evenly,
a release tells the crowd and nothing more, however often somebody comes back and however many releases there are. With
a weight on the manifold term it also tells what is popular (docs/crowd.md).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ghostpoi.attack.rule import Channel, uniform
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints
from ghostpoi.publish import crowds
from ghostpoi.publish.crowds import Bools
from ghostpoi.publish.methods.base import sample
from ghostpoi.publish.scoring import Position
from ghostpoi.settings import Section, setting


@dataclass(frozen=True)
class Crowd(Section):
    """P(p') proportional to T_psi(p' | released prefix)^beta over the crowd, the same for all venues of the crowd."""

    size: int = setting(32, "venues in a crowd, at least, where there are so many near; less than twice as many", 2)
    reach_km: float = setting(40.0, "no crowd is wider than this", 0, 20_100)
    beta: float = setting(0.0, "weight of the manifold term, made of clean data; 0 draws evenly", 0, 1e6)

    needs_surrogate: ClassVar[bool] = False
    may_keep: ClassVar[bool] = True  # a venue is one of its own candidates

    @property
    def needs_trajectory_lm(self) -> bool:
        return self.beta > 0

    @property
    def leaning(self) -> float:
        """The power of released counts that tells what is popular inside a crowd; 0: they tell nothing."""
        return 1.0 if self.beta else 0.0

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        even = torch.zeros_like(position.feasible, dtype=torch.float64)
        score = self.beta * position.mani() if self.beta else even
        return sample(torch.where(position.feasible, score, -torch.inf), uniform)

    def sets(self, lat: Floats, lon: Floats, category: Ints, known: Bools | None = None) -> Candidates:
        return crowds.find(lat, lon, category, self.size, self.reach_km, known)

    def channel(self, candidates: Candidates) -> Channel:
        return uniform(candidates)
