"""A14: the hidden Markov model of A9 without a leak."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.inference.step_lengths import KnownLengths


@dataclass(frozen=True)
class StepLengths(Adversary):
    """A14 extends A7 by the steps from one venue to the next, as A9 extends A8.

    No leak tells it how far people go; a table of another region does. Without a rule, the release stays.
    """

    number = 14
    title = "known step lengths"
    holds = "what A7 holds, and how far people go between check-ins in another region"
    does = "runs A9's model without a leak"
    uses_leak = False

    model: KnownLengths = KnownLengths()

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        return self.model.restore(evidence, evidence.rule) if evidence.rule else evidence.released.poi
