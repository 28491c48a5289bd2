"""Methods that can release any venue for any other: they have no candidate sets and no speed limit.

`synthetic` replaces all sessions by sessions that the trajectory LM makes up.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Ints
from ghostpoi.data.places import Places
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.methods.base import AnyMethod, KeepsCategory
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings, setting

if TYPE_CHECKING:
    from ghostpoi.models.transformer import CausalTransformer

LanguageModel: TypeAlias = "CausalTransformer | None"


@dataclass(frozen=True)
class FreeDraw(AnyMethod, ABC):
    """A way to choose all released venues at once, among all venues."""

    may_keep = True
    own_sets = True  # all venues, including the clean one

    @property
    def keeps_category(self) -> KeepsCategory:
        return "any"

    @abstractmethod
    def release(self, sessions: Sessions, vocabulary: Vocabulary, lm: LanguageModel, seed: Seed) -> Ints:
        """Return the released venue of every position of the sessions, (N,); `lm` is T_psi if the method needs it."""

    @abstractmethod
    def release_outside(self, places: Places, anchor: Ints, seed: Seed) -> Ints:
        """Return the released venues, (M,), of rows outside sessions, whose clean venues are `anchor` (M,)."""

    def candidate_sets(self, places: Places, rule: CandidateSettings, known: Bools | None = None) -> Candidates:
        return Candidates.anywhere(len(places.lat))


@dataclass(frozen=True)
class Synthetic(FreeDraw):
    """Draw p'_i with P = T_psi(p'_i | p'_0 .. p'_{i-1})."""

    label = "synthetic"
    summary = "Sample whole sessions from the trajectory LM, which learned from all clean sessions."

    min_visits: int = setting(5, "outside sessions, a venue counts as having at least this many visits", 1)

    @property
    def needs_trajectory_lm(self) -> bool:
        return True

    @property
    def published_aggregates(self) -> tuple[str, ...]:
        few = self.min_visits
        return ("what follows what in sessions", f"visits per venue, where fewer than {few} count as {few}")

    def release(self, sessions: Sessions, vocabulary: Vocabulary, lm: LanguageModel, seed: Seed) -> Ints:
        from ghostpoi.models.trajectory_lm import sample_sessions  # torch

        if lm is None:
            raise ValueError("a synthetic release needs the trajectory LM")
        return sample_sessions(lm, sessions.start, seed.generator("synthetic").random(sessions.positions))

    def release_outside(self, places: Places, anchor: Ints, seed: Seed) -> Ints:
        share = np.cumsum(np.maximum(places.visits[1:], self.min_visits), dtype=float)
        uniform = seed.generator("synthetic", "outside").random(len(anchor))
        return (np.searchsorted(share / share[-1], uniform, side="right") + 1).astype(np.int32)
