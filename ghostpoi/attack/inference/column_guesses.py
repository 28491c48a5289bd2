"""What kept columns suggest about clean venues: the guesses of A13."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ghostpoi.attack.evidence import Evidence
from ghostpoi.attack.inference.conditional_table import ConditionalTable
from ghostpoi.data.checkins import Bools, Ints

FEWEST = 5  # guesses at leaked positions that are needed to trust a column
SHIFTS = (0, 1, -1)  # a row's own value, and those of the next and the previous row of the session


def with_half_of_leak(evidence: Evidence) -> Evidence:
    """Return the evidence of an adversary who holds every other leaked session only."""
    half = evidence.leaked.copy()
    half[np.flatnonzero(half)[1::2]] = False
    clean = np.where(np.repeat(half, evidence.released.length), evidence.clean, 0).astype(np.int32)
    return replace(evidence, leaked=half, clean=clean)


def guesses(evidence: Evidence) -> Iterator[Ints]:
    """Yield the POI that each column and each neighbouring row suggest for every position, (N,); 0 for none."""
    session, n = evidence.released.session_of(), len(evidence.clean)
    nothing = np.zeros(n, np.int32)
    for column in evidence.kept:
        for shift in SHIFTS:
            row = np.clip(np.arange(n) + shift, 0, n - 1)
            inside: Bools = session[row] == session
            context = np.where(inside, column.code[row] + 1, 0)
            table = ConditionalTable.of(evidence, context).argmax(context, nothing)
            for guess in (column.named[row], table):
                yield _allowed(np.where(inside, guess, 0).astype(np.int32), evidence)


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
