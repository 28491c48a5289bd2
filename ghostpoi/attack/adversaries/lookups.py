"""A1, A3, A4, A5 and A13: the release as it is, and what tables of leaked pairs and kept columns say about it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Measures, Seed
from ghostpoi.attack.adversaries.deconvolution import likeliest
from ghostpoi.attack.adversaries.habits import HabitsLeak
from ghostpoi.attack.counting import Table
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import haversine_km

UNITS_KM = (1.0, 1e-3, 1.609344)  # kilometres, metres, miles
TOLERANCE_KM, ROUNDING = 0.01, 0.005  # how well a distance must fit, absolute and relative
ROUNDS = 4  # each leads one venue further from what A8 knows
FEWEST = 5  # guesses at leaked positions that are needed to trust a column
SHIFTS = (0, 1, -1)  # a row's own value, and those of the next and the previous row of the session


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


def guesses(evidence: Evidence, restored: Ints) -> Iterator[Ints]:
    """Yield the POI that each column and each neighbouring row suggest for every position, (N,); 0 for none.

    `restored` (N,) is what A8 restores, from which a column of distances leads further.
    """
    session, n = evidence.released.session_of(), len(evidence.clean)
    nothing = np.zeros(n, np.int32)
    for column in evidence.kept:
        for shift in SHIFTS:
            row = np.clip(np.arange(n) + shift, 0, n - 1)
            inside: Bools = session[row] == session
            context = np.where(inside, column.code[row] + 1, 0)
            for suggested in (column.named[row], looked_up(evidence, context, nothing)):
                guess = np.where(inside, suggested, 0).astype(np.int32)
                yield guess
                # Only those that the rule can turn into the released POI; it excludes some true pairs, too.
                yield np.where(evidence.rule.channel.find(guess, evidence.symbol) >= 0, guess, 0).astype(np.int32)
        for unit in UNITS_KM:
            yield at_distance(evidence, column.value * unit, restored)


def at_distance(evidence: Evidence, km: Floats, restored: Ints) -> Ints:
    """Return the option of every position at this distance (N,) from the venue before it, (N,); 0 if there is none."""
    found, rule = np.zeros(len(km), np.int32), evidence.rule
    if rule.lat is None or rule.lon is None or not np.isfinite(km).any():
        return found
    owner, entry = rule.channel.behind(evidence.symbol)
    option, first = rule.channel.clean[entry], np.flatnonzero(np.diff(owner, prepend=-1))
    place = np.repeat(np.arange(len(first)), np.diff(first, append=len(owner)))  # of the owner among those with options
    follows = np.append(False, np.diff(evidence.released.session_of()) == 0)
    tolerance = np.maximum(TOLERANCE_KM, ROUNDING * km)
    for _ in range(ROUNDS if len(first) else 0):
        before = np.roll(np.where(found > 0, found, restored), 1)[owner]
        true = haversine_km(rule.lat[option], rule.lon[option], rule.lat[before], rule.lon[before])
        miss = np.nan_to_num(np.abs(true - km[owner]), nan=np.inf)
        near = np.minimum.reduceat(miss, first) < tolerance[owner[first]]
        best = likeliest(-miss, option, place, first)
        found[owner[first]] = np.where(near & follows[owner[first]], best, 0)
    return found


def gain_of(guess: Ints, right: Bools, clean: Ints, at: Bools) -> float:
    """Return how much more often a guess is right than A8 where there is one; 0 if there are too few to know."""
    made = at & (guess > 0)
    return float((guess == clean)[made].mean() - right[made].mean()) if made.sum() >= FEWEST else 0.0


@dataclass(frozen=True)
class KeptColumns(Adversary):
    """A13 extends A8 by every column that the release did not change. Without kept columns, A13 is A8.

    A value may name a venue (an id, a position), be the length of a step, or go with a venue as leaked pairs show. Half
    of the leak decides which of these guesses are better than A8.
    """

    number = 13
    title = "kept columns"
    holds = "what A8 holds, and the columns that the release kept"
    does = "looks for venues in kept columns, and learns from leaked pairs which values go with which venue"
    effort = 15.0
    needs_columns = True

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        restored = HabitsLeak().restore(evidence, seed, device)
        if not evidence.kept or evidence.leaked.sum() < 2:
            return restored
        known = evidence.with_half_of_leak()
        at = evidence.positions & ~known.positions
        before = HabitsLeak().restore(known, seed, device)
        gains = [gain_of(guess, before == evidence.clean, evidence.clean, at) for guess in guesses(known, before)]
        found = sorted(zip(gains, guesses(evidence, restored), strict=True), key=lambda pair: pair[0])
        for gain, guess in found:  # the best comes last and wins
            if gain > 0:
                restored = np.where(guess > 0, guess, restored)
        return restored
