"""synthetic: replace all sessions by sessions that the trajectory LM makes up."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.data.places import Places
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.methods.base import FreeDraw, LanguageModel
from ghostpoi.draw.noise import Noise
from ghostpoi.settings import setting


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

    def release(self, sessions: Sessions, vocabulary: Vocabulary, lm: LanguageModel, noise: Noise) -> Ints:
        from ghostpoi.models.trajectory_lm import sample_sessions  # torch

        if lm is None:
            raise ValueError("a synthetic release needs the trajectory LM")
        return sample_sessions(lm, sessions.start, noise.uniform("synthetic"))

    def release_outside(self, places: Places, anchor: Ints, noise: Noise) -> Ints:
        share = np.cumsum(np.maximum(places.visits[1:], self.min_visits), dtype=float)
        uniform = noise.uniform("synthetic", "outside")
        return (np.searchsorted(share / share[-1], uniform, side="right") + 1).astype(np.int32)
