"""A3: the table of clean given released."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class Table:
    """How often each clean POI stood behind each context in the leaked pairs."""

    context: Longs  # (T,) ascending; a number of the caller's choice
    clean: Longs  # (T,) most frequent first within a context, ties by the smaller POI
    count: Longs  # (T,)

    @staticmethod
    def of(context: Longs, clean: Ints, rows: int) -> "Table":
        """From one context and one clean POI per leaked position."""
        # Context and clean POI in one number: with a bigram as context it stays in 63 bits up to two million POIs.
        pair, count = np.unique(context * rows + clean, return_counts=True)
        context, poi = np.divmod(pair, rows)
        order = np.lexsort((poi, -count, context))
        return Table(context[order], poi[order], count[order])

    def argmax(self, context: Longs, fallback: Ints) -> Ints:
        """The most frequent clean POI of each context, the fallback where the context never leaked, (N,)."""
        if not len(self.context):
            return fallback
        first = np.minimum(np.searchsorted(self.context, context), len(self.context) - 1)
        return np.where(self.context[first] == context, self.clean[first], fallback).astype(np.int32)

    def entropy_bits(self) -> float:
        """H(clean | context) in bits: each context's entropy, weighted by how often the context leaked."""
        if not len(self.context):
            return 0.0
        _, which = np.unique(self.context, return_inverse=True)
        total = np.bincount(which, self.count)[which]
        return float((self.count * np.log2(total / self.count)).sum() / self.count.sum())


@dataclass(frozen=True)
class Frequency:
    """A3 holds leaked (clean, released) pairs and takes the release for a fixed map that it can look up backwards.

    Every released POI becomes the clean POI that stood behind it most often (the smallest POI of several); one that
    never leaked stays. A defence that A3 breaks is broken.
    """

    uses_leak: ClassVar[bool] = True

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The argmax of clean given released."""
        return self.table(evidence).argmax(evidence.released.poi.astype(np.int64), evidence.released.poi)

    def table(self, evidence: Evidence) -> Table:
        """Clean given released. Its `entropy_bits` is 0 for a fixed map; few pairs make it look smaller than it is.

        With every session leaked, the entropy is that of the publisher's map itself.
        """
        released, clean = evidence.pairs()
        return Table.of(released.astype(np.int64), clean, evidence.rows)
