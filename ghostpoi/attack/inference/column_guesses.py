"""What kept columns suggest about clean venues: the guesses of A13."""

from collections.abc import Iterator

import numpy as np

from ghostpoi.attack.evidence import Evidence
from ghostpoi.attack.inference.conditional_table import ConditionalTable
from ghostpoi.attack.inference.visits import likeliest
from ghostpoi.data.checkins import Bools, Floats, Ints
from ghostpoi.data.geo import haversine_km

UNITS_KM = (1.0, 1e-3, 1.609344)  # kilometres, metres, miles
TOLERANCE_KM, ROUNDING = 0.01, 0.005  # how well a distance must fit, absolute and relative
ROUNDS = 4  # each leads one venue further from what A8 knows
FEWEST = 5  # guesses at leaked positions that are needed to trust a column
SHIFTS = (0, 1, -1)  # a row's own value, and those of the next and the previous row of the session


def with_half_of_leak(evidence: Evidence) -> Evidence:
    """Return the evidence of an adversary who holds every other leaked session only."""
    half = evidence.leaked.copy()
    half[np.flatnonzero(half)[1::2]] = False
    return evidence.with_leak(half)


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
            table = ConditionalTable.of(evidence, context).argmax(context, nothing)
            for suggested in (column.named[row], table):
                guess = np.where(inside, suggested, 0).astype(np.int32)
                yield guess
                yield _allowed(guess, evidence)  # the rule excludes some true pairs too
        for unit in UNITS_KM:
            yield at_distance(evidence, column.value * unit, restored)


def at_distance(evidence: Evidence, km: Floats, restored: Ints) -> Ints:
    """Return the option of every position at this distance (N,) from the venue before it, (N,); 0 if there is none."""
    found, rule = np.zeros(len(km), np.int32), evidence.rule
    if rule is None or rule.lat is None or rule.lon is None or not np.isfinite(km).any():
        return found
    owner, entry = rule.channel.behind(evidence.symbol)
    option, first = rule.channel.clean[entry], np.flatnonzero(np.diff(owner, prepend=-1))
    follows = np.append(False, np.diff(evidence.released.session_of()) == 0)
    tolerance = np.maximum(TOLERANCE_KM, ROUNDING * km)
    for _ in range(ROUNDS if len(first) else 0):
        before = np.roll(np.where(found > 0, found, restored), 1)[owner]
        true = haversine_km(rule.lat[option], rule.lon[option], rule.lat[before], rule.lon[before])
        miss = np.nan_to_num(np.abs(true - km[owner]), nan=np.inf)
        near = np.minimum.reduceat(miss, first) < tolerance[owner[first]]
        best = likeliest(-miss, option, owner, first)
        found[owner[first]] = np.where(near & follows[owner[first]], best, 0)
    return found


def _allowed(guess: Ints, evidence: Evidence) -> Ints:
    """Drop guesses that the rule cannot turn into the released POI."""
    made = np.flatnonzero(guess)
    if evidence.rule is None or not len(made):
        return guess
    channel = evidence.rule.channel
    possible = channel.find(guess[made].astype(np.int64), evidence.symbol[made]) >= 0
    return np.where(np.isin(np.arange(len(guess)), made[possible]), guess, 0).astype(np.int32)


def gain_of(guess: Ints, right: Bools, clean: Ints, at: Bools) -> float:
    """Return how much more often a guess is right than A8 where there is one; 0 if there are too few to tell."""
    made = at & (guess > 0)
    return float((guess == clean)[made].mean() - right[made].mean()) if made.sum() >= FEWEST else 0.0
