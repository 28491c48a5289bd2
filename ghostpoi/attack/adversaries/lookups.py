"""A1, A3, A4 and A5: the release as it is, and what tables of leaked pairs say about it."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Measures, Seed
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


@dataclass(frozen=True)
class NoAdversary(Adversary):
    """A1 trains on the release as it is: the publisher's best case."""

    number = 1
    title = "as released"
    holds = "the release"
    does = "trains on the release as it is"
    uses_leak = False
    needs_seed = False

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        return evidence.released.poi


@dataclass(frozen=True)
class Frequency(Adversary):
    """A3 looks up each released POI in the leaked pairs. Ties go to the smaller POI; one that never leaked stays."""

    number = 3
    title = "frequency table"
    holds = "leaked pairs"
    does = "replaces each released venue by the clean venue most often behind it"

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        """Add the entropy of the table: 0 for a fixed map, and too small if few pairs leaked."""
        table = ConditionalTable.of(evidence, evidence.symbol)
        return table.argmax(evidence.symbol, evidence.released.poi), {"table_entropy_bits": table.entropy_bits()}


@dataclass(frozen=True)
class Bigram(Adversary):
    """A4 extends A3 by the previous released POI, or the start of the session. An unknown context falls back to A3."""

    number = 4
    title = "bigram table"
    holds = "leaked pairs"
    does = "looks up each released venue together with the released venue before it"

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        released = evidence.released
        previous = np.roll(evidence.symbol, 1)
        previous[released.start[:-1][released.length > 0]] = 0  # no POI: the start of a session
        context = evidence.symbol * evidence.rows + previous
        unigram = Frequency().restore(evidence, seed, device)
        return ConditionalTable.of(evidence, context).argmax(context, unigram)


@dataclass(frozen=True)
class PerUser(Adversary):
    """A5 extends A3 by the user, because a publisher may repeat its draws. An unknown pair falls back to A3."""

    number = 5
    title = "per-user table"
    holds = "leaked pairs and their users"
    does = "keeps one table per user and falls back to A3"

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        context = evidence.user * evidence.rows + evidence.released.poi
        anybody = Frequency().restore(evidence, seed, device)
        return ConditionalTable.of(evidence, context).argmax(context, anybody)
