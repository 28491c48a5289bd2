"""A1, A3, A4 and A5: the release as it is, and what tables of leaked pairs say about it."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Measures, Seed
from ghostpoi.attack.counting import Table
from ghostpoi.data.checkins import Ints, Longs


def leaked_table(evidence: Evidence, context: Longs) -> Table:
    """Return how often each clean POI leaked in each context; `context` (N,) covers all positions."""
    at = evidence.positions
    return Table.of(context[at], evidence.clean[at].astype(np.int64), np.ones(int(at.sum())), evidence.rows, 0.0)


def looked_up(evidence: Evidence, context: Longs, fallback: Ints) -> Ints:
    """Return the clean POI that leaked most often in each context, ties to the smaller; the fallback if none did."""
    table = leaked_table(evidence, context)
    found = table.best[table.rows_of(context), 0]
    return np.where(found > 0, found, fallback).astype(np.int32)


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
        released, clean = evidence.pairs()
        table = leaked_table(evidence, evidence.symbol)
        share = table.at(table.rows_of(released.astype(np.int64)), clean.astype(np.int64)[:, None])
        entropy = float(np.log2(1 / share).mean()) if len(clean) else 0.0
        return looked_up(evidence, evidence.symbol, evidence.released.poi), {"table_entropy_bits": entropy}


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
        return looked_up(evidence, context, Frequency().restore(evidence, seed, device))


@dataclass(frozen=True)
class PerUser(Adversary):
    """A5 extends A3 by the user, because a publisher may repeat its draws. An unknown pair falls back to A3."""

    number = 5
    title = "per-user table"
    holds = "leaked pairs and their users"
    does = "keeps one table per user and falls back to A3"

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        context = evidence.user * evidence.rows + evidence.released.poi
        return looked_up(evidence, context, Frequency().restore(evidence, seed, device))
