"""A10: the paired categorical bridge, a faithful form of A2."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.inference.bridge_settings import BridgeSettings


@dataclass(frozen=True)
class PairedBridge(Adversary):
    """A10 learns the way back from released to clean sessions, in many small steps, and lets several samples vote.

    With a rule, only A(released) is considered. Without a leak, the release stays.
    """

    number = 10
    title = "paired bridge"
    holds = "leaked pairs and the public rule"
    does = "learns a categorical bridge from released to clean sessions on the leaked pairs"
    trains = True

    settings: BridgeSettings = BridgeSettings()

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        from ghostpoi.attack.inference import paired_bridge

        return paired_bridge.restore(evidence, self.settings, seed, device)
