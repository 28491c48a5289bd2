"""A4: the table of clean venues given the released one and the released one before it."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.adversaries.frequency import Frequency
from ghostpoi.attack.inference.conditional_table import ConditionalTable


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
