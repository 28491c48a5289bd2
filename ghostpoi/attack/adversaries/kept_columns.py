"""A13: the columns that the publisher kept."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.adversaries.habits_leak import HabitsLeak
from ghostpoi.attack.inference.column_guesses import gain_of, guesses, with_half_of_leak


@dataclass(frozen=True)
class KeptColumns(Adversary):
    """A13 extends A8 by every column that the release did not change.

    A value may name a venue (an id, a position), be the length of a step, or go with a venue as leaked pairs show. Half
    of the leak decides which of these guesses are better than A8. Without kept columns, A13 is A8.
    """

    number = 13
    title = "kept columns"
    holds = "what A8 holds, and the columns that the release kept"
    does = "looks for venues in kept columns, and learns from leaked pairs which values go with which venue"
    needs_columns = True

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        restored = HabitsLeak().restore(evidence, seed, device)
        if not evidence.kept or evidence.leaked.sum() < 2:
            return restored
        known = with_half_of_leak(evidence)
        at = evidence.positions & ~known.positions
        before = HabitsLeak().restore(known, seed, device)
        gains = [gain_of(guess, before == evidence.clean, evidence.clean, at) for guess in guesses(known, before)]
        found = sorted(zip(gains, guesses(evidence, restored), strict=True), key=lambda pair: pair[0])
        for gain, guess in found:  # the best comes last and wins
            if gain > 0:
                restored = np.where(guess > 0, guess, restored)
        return restored
