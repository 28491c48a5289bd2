"""The public rule of a release: how likely a clean POI p is released as q. Who reads the code knows it.

It is sparse: a POI has a handful of candidates. Entries are sorted by what was released, so that all that may stand
behind q, A(q), is one slice. Any rule fits: uniform over candidate sets, over crowds that hold the venue itself, or
what a solver found.
"""

from dataclasses import dataclass

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints, Longs


@dataclass(frozen=True)
class Channel:
    """K(q|p), one entry per pair that can happen, by released POI and then by clean POI."""

    clean: Longs  # (M,)
    released: Longs  # (M,) ascending
    probability: Floats  # (M,) of `released` given `clean`
    start: Longs  # (Q+1,) A(q) is the entries start[q] to start[q+1]

    @staticmethod
    def of(clean: Longs | Ints, released: Longs | Ints, probability: Floats, symbols: int) -> "Channel":
        """From pairs in any order; those named twice add up. `symbols` is one more than the largest released POI."""
        wide = int(clean.max(initial=0)) + 1
        pair, place = np.unique(released.astype(np.int64) * wide + clean, return_inverse=True)
        q, p = np.divmod(pair, wide)
        total: Floats = np.bincount(place, probability, len(pair)).astype(np.float64)
        return Channel(p, q, total, np.searchsorted(q, np.arange(symbols + 1)))

    def __len__(self) -> int:
        return len(self.clean)

    @property
    def symbols(self) -> int:
        """One more than the largest released POI."""
        return len(self.start) - 1

    def behind(self, released: Longs | Ints) -> tuple[Longs, Longs]:
        """All entries of A(q) for each q given (G,), end to end: whose they are (0 to G-1) and which they are."""
        size = self.start[released + 1] - self.start[released]  # (G,)
        owner = np.repeat(np.arange(len(released)), size)
        shift = self.start[released] - (np.cumsum(size) - size)
        return owner, np.arange(len(owner)) + shift[owner]

    def find(self, clean: Longs | Ints, released: Longs | Ints) -> Longs:
        """The entry of each pair, -1 where the rule does not allow it."""
        if not len(self):
            return np.full(len(clean), -1)
        wide = max(int(self.clean.max()), int(np.max(clean, initial=0))) + 1
        own, asked = self.released * wide + self.clean, released.astype(np.int64) * wide + clean
        at = np.minimum(np.searchsorted(own, asked), len(own) - 1)
        return np.where(own[at] == asked, at, -1)

    def covering(self, released: Longs | Ints) -> "Channel":
        """The same, with q standing behind itself for each q given that the rule could not have released."""
        alone = np.unique(released)
        alone = alone[self.start[alone + 1] == self.start[alone]].astype(np.int64)
        if not len(alone):
            return self
        return Channel.of(
            np.concatenate([self.clean, alone]), np.concatenate([self.released, alone]),
            np.concatenate([self.probability, np.ones(len(alone))]), self.symbols,
        )  # fmt: skip


def uniform(candidates: Candidates, keeps: bool = False) -> Channel:
    """Every candidate alike; a POI without any as itself. With `keeps` the POI itself is one more candidate."""
    anchor, column = np.nonzero(candidates.poi)
    size = candidates.size
    itself = np.flatnonzero((size == 0) | keeps)
    itself = itself[itself > 0]
    clean = np.concatenate([anchor, itself])
    released = np.concatenate([candidates.poi[anchor, column], itself])
    return Channel.of(clean, released, 1.0 / np.bincount(clean)[clean], len(size))
