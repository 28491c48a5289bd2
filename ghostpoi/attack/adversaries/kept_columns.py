"""A12: the columns that the publisher kept."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.adversaries.frequency import ConditionalTable
from ghostpoi.attack.adversaries.habits_leak import HabitsLeak
from ghostpoi.data.checkins import Bools

FEWEST = 5  # guesses at leaked positions that are needed to trust a column
SHIFTS = (0, 1, -1)  # a row's own value, and those of the next and the previous row of the session


@dataclass(frozen=True)
class KeptColumns(Adversary):
    """A12 extends A8 by every column that the release did not change.

    A value may name a venue (an id, a position), or leaked pairs may show which venue it goes with. Half of the leak
    decides which of these guesses are better than A8. Without kept columns, A12 is A8.
    """

    number = 12
    title = "kept columns"
    holds = "what A8 holds, and the columns that the release kept"
    does = "looks for venues in kept columns, and learns from leaked pairs which values go with which venue"
    needs_columns = True

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        restored = HabitsLeak().restore(evidence, seed, device)
        if not evidence.kept or evidence.leaked.sum() < 2:
            return restored
        known = _with_half_of_leak(evidence)
        at = evidence.positions & ~known.positions
        right = HabitsLeak().restore(known, seed, device) == evidence.clean
        gains = [_gain(guess, right, evidence.clean, at) for guess in _guesses(known)]
        found = sorted(zip(gains, _guesses(evidence), strict=True), key=lambda pair: pair[0])
        for gain, guess in found:  # the best comes last and wins
            if gain > 0:
                restored = np.where(guess > 0, guess, restored)
        return restored


def _with_half_of_leak(evidence: Evidence) -> Evidence:
    half = evidence.leaked.copy()
    half[np.flatnonzero(half)[1::2]] = False
    clean = np.where(np.repeat(half, evidence.released.length), evidence.clean, 0).astype(np.int32)
    return replace(evidence, leaked=half, clean=clean)


def _guesses(evidence: Evidence) -> Iterator[Ints]:
    """Yield the POI that each column and each neighbouring row suggest for every position, (N,); 0 for none."""
    session, n = evidence.released.session_of(), len(evidence.clean)
    nothing = np.zeros(n, np.int32)
    for column in evidence.kept:
        for shift in SHIFTS:
            row = np.clip(np.arange(n) + shift, 0, n - 1)
            inside: Bools = session[row] == session
            yield np.where(inside, column.named[row], 0).astype(np.int32)
            context = np.where(inside, column.code[row] + 1, 0)
            table = ConditionalTable.of(evidence, context)
            yield np.where(inside, table.argmax(context, nothing), 0).astype(np.int32)


def _gain(guess: Ints, right: Bools, clean: Ints, at: Bools) -> float:
    """Return how much more often a guess is right than A8 where there is one; 0 if there are too few to tell."""
    made = at & (guess > 0)
    return float((guess == clean)[made].mean() - right[made].mean()) if made.sum() >= FEWEST else 0.0
