"""Counts of leaked pairs by context: the tables of A3, A4, A5 and A13."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.checkins import Ints, Longs


@dataclass(frozen=True)
class ConditionalTable:
    """The number of leaked positions per context and clean POI."""

    context: Longs  # (T,) ascending; the caller decides what the number means
    clean: Longs  # (T,) most frequent first within a context, ties by the smaller POI
    count: Longs  # (T,)

    @staticmethod
    def of(evidence: Evidence, context: Longs) -> "ConditionalTable":
        """Count the leaked positions; `context` (N,) covers all positions."""
        at, rows = evidence.positions, evidence.rows
        # One number per pair: with two POIs as context it stays within 63 bits up to two million POIs.
        pair, count = np.unique(context[at] * rows + evidence.clean[at], return_counts=True)
        found, poi = np.divmod(pair, rows)
        order = np.lexsort((poi, -count, found))
        return ConditionalTable(found[order], poi[order], count[order])

    def argmax(self, context: Longs, fallback: Ints) -> Ints:
        """Return the most frequent clean POI of each context, or the fallback if the context never leaked, (N,)."""
        if not len(self.context):
            return fallback
        first = np.minimum(np.searchsorted(self.context, context), len(self.context) - 1)
        return np.where(self.context[first] == context, self.clean[first], fallback).astype(np.int32)

    def entropy_bits(self) -> float:
        """Return H(clean | context) in bits, each context weighted by how often it leaked."""
        if not len(self.context):
            return 0.0
        _, which = np.unique(self.context, return_inverse=True)
        total = np.bincount(which, self.count)[which]
        return float((self.count * np.log2(total / self.count)).sum() / self.count.sum())
