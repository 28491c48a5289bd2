"""A4: the table of clean given released and the released POI before it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.attack.adversaries.frequency import Frequency, Table
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class Bigram:
    """A4 holds A3's pairs and hopes that the released POI before a position tells more of its clean one.

    The start of a session is a context of its own. A pair of released POIs that never leaked falls back to A3's table,
    and a released POI that never leaked stays. Ties go to the smallest POI, as in A3.
    """

    uses_leak: ClassVar[bool] = True

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The argmax of clean given released and previous released."""
        unigram = Frequency().restore(evidence, seed, device)
        return self.table(evidence).argmax(_context(evidence.released, evidence.rows), unigram)

    def table(self, evidence: Evidence) -> Table:
        """Clean given (released, previous released)."""
        at = evidence.positions
        return Table.of(_context(evidence.released, evidence.rows)[at], evidence.clean[at], evidence.rows)


def _context(released: Sessions, rows: int) -> Longs:
    """Each position's POI and the one before it in one number; before the first stands 0, which is no POI."""
    previous = np.roll(released.poi, 1).astype(np.int64)
    previous[released.start[:-1][released.length > 0]] = 0
    return released.poi.astype(np.int64) * rows + previous
