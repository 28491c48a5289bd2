"""Trails: sessions, or all check-ins of users, from which venues are drawn one after the other."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints, Longs


@dataclass(frozen=True)
class Trails:
    """Check-ins in the order of their trails and times, and the places that can be drawn."""

    trail: Longs | Ints  # (N,) ascending
    time: Longs  # (N,)
    anchor: Ints  # (N,) the clean venue
    lat: Floats  # (P+1,)
    lon: Floats  # (P+1,)
    sets: Candidates

    def neighbour(self, at: Longs, step: int, chosen: Ints) -> tuple[Ints, Longs]:
        """Return the venue one step away in the trail (0: none or not chosen), and the time between, (B,) each."""
        there = np.clip(at + step, 0, len(self.trail) - 1)
        exists = (there != at) & (self.trail[there] == self.trail[at])
        return np.where(exists, chosen[there], 0), np.where(exists, np.abs(self.time[there] - self.time[at]), 0)
