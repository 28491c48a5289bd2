"""The public rule of a release as a channel: the probability that a clean POI p is released as q.

Anyone who reads the code knows it. It is sparse, because a POI has few candidates. Entries are sorted by released POI,
so that A(q), the clean POIs that may be released as q, is one slice.
"""

from dataclasses import dataclass

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints, Longs


@dataclass(frozen=True)
class Channel:
    """K(q|p), with one entry per possible pair, sorted by released POI and then by clean POI."""

    clean: Longs  # (M,)
    released: Longs  # (M,) ascending
    probability: Floats  # (M,) of `released` given `clean`
    start: Longs  # (Q+1,) A(q) holds the entries start[q] to start[q+1] - 1

    @staticmethod
    def of(clean: Longs | Ints, released: Longs | Ints, probability: Floats, symbols: int) -> "Channel":
        """Build a channel from pairs in any order. Repeated pairs add up. `symbols` is the largest released POI + 1."""
        wide = int(clean.max(initial=0)) + 1
        pair, place = np.unique(released.astype(np.int64) * wide + clean, return_inverse=True)
        q, p = np.divmod(pair, wide)
        total: Floats = np.bincount(place, probability, len(pair)).astype(np.float64)
        return Channel(p, q, total, np.searchsorted(q, np.arange(symbols + 1)))

    def __len__(self) -> int:
        return len(self.clean)

    @property
    def symbols(self) -> int:
        """The largest released POI + 1."""
        return len(self.start) - 1

    def behind(self, released: Longs | Ints) -> tuple[Longs, Longs]:
        """Return the entries of A(q) for every q of `released` (G,), end to end: owner (0 to G-1) and index of each."""
        size = self.start[released + 1] - self.start[released]  # (G,)
        owner = np.repeat(np.arange(len(released)), size)
        shift = self.start[released] - (np.cumsum(size) - size)
        return owner, np.arange(len(owner)) + shift[owner]

    def find(self, clean: Longs | Ints, released: Longs | Ints) -> Longs:
        """Return the entry of each pair, -1 if the rule excludes the pair."""
        if not len(self):
            return np.full(len(clean), -1)
        wide = max(int(self.clean.max()), int(np.max(clean, initial=0))) + 1
        own, asked = self.released * wide + self.clean, released.astype(np.int64) * wide + clean
        at = np.minimum(np.searchsorted(own, asked), len(own) - 1)
        return np.where(own[at] == asked, at, -1)

    def released_as(self, other: Ints) -> "Channel":
        """Return the channel whose released POI q is replaced by other[q]."""
        return Channel.of(self.clean, other[self.released], self.probability, self.symbols)

    def covering(self, released: Longs | Ints) -> "Channel":
        """Return a channel that maps q to itself for each given q that this channel never releases."""
        alone = np.unique(released)
        alone = alone[self.start[alone + 1] == self.start[alone]].astype(np.int64)
        if not len(alone):
            return self
        return Channel.of(
            np.concatenate([self.clean, alone]), np.concatenate([self.released, alone]),
            np.concatenate([self.probability, np.ones(len(alone))]), self.symbols,
        )  # fmt: skip


def channel_of(candidates: Candidates, keeps: bool = False) -> Channel:
    """Draw candidates by their weights. `keeps` adds the POI itself; without candidates, it maps to itself.

    If every POI is a candidate of all, the rule reveals nothing, and the released POI stands for itself.

    Weights by time slot count with their mean. Venues of one crowd share them, so a recipient learns nothing from them
    about the venue behind a row.
    """
    anchor, column = np.nonzero(candidates.poi)
    size = np.count_nonzero(candidates.poi, axis=1)
    itself = np.flatnonzero((size == 0) | (keeps & ~candidates.is_hidden))
    itself = itself[itself > 0]
    clean = np.concatenate([anchor, itself])
    released = np.concatenate([candidates.poi[anchor, column], itself])
    weight = np.ones(len(clean))
    if candidates.weight is not None:
        weight[: len(anchor)] = candidates.weight[anchor, column]
    if candidates.slot_weight is not None:
        weight[: len(anchor)] *= candidates.slot_weight.mean(axis=0)[candidates.poi[anchor, column]]
    real = weight > 0
    clean, released, weight = clean[real], released[real], weight[real]
    return Channel.of(clean, released, weight / np.bincount(clean, weight)[clean], len(size))


def uniform(candidates: Candidates, keeps: bool = False) -> Channel:
    """Give all candidates the same probability, whatever they weigh."""
    return channel_of(Candidates(candidates.poi, candidates.radius_km), keeps)
