"""A20: sessions made for the victim, from all that a release alone tells about steps."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.inference.distillation import LeaklessDistillation


@dataclass(frozen=True)
class DistilledRelease(Adversary):
    """A20 is A16 without a leak: it weighs released steps, the steps that A14 infers, and staying.

    Anybody knows that people often stay where they are. An adversary that only restores visits does not use it. Without
    a rule, the release stays.
    """

    number = 20
    title = "distilled release"
    holds = "what A14 holds"
    does = "weighs released steps, inferred steps and staying, and makes sessions that teach the result"
    uses_leak = False

    model: LeaklessDistillation = LeaklessDistillation()

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        return self.model.restore(evidence, evidence.rule, seed) if evidence.rule else evidence.released.poi
