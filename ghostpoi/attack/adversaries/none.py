"""A1: nobody stands between release and victim."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed


@dataclass(frozen=True)
class NoAdversary(Adversary):
    """A1 trains on the release as it is: the publisher's best case."""

    number = 1
    title = "as released"
    holds = "the release"
    does = "trains on the release as it is"
    uses_leak = False

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        return evidence.released.poi
