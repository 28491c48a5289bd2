"""A11: several releases of the same rows."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Device, Evidence, Ints, Measures, Seed
from ghostpoi.attack.adversaries.habits_leak import HabitsLeak


@dataclass(frozen=True)
class MultiRelease(HabitsLeak):
    """A11 extends A8 to several releases: a publisher who draws again gives several draws per visit.

    Only a venue that could have been released as all of them stands behind them. With one release, A11 is A8.
    """

    number = 11
    title = "several releases"
    holds = "what A8 holds, for several releases of the same rows"
    does = "multiplies the evidence of all releases"
    many_releases = True

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        rule = evidence.rule
        return self.model.restore_jointly(evidence, rule) if rule else super().restore(evidence, seed, device)

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        return self.restore(evidence, seed, device), {"releases": 1 + len(evidence.further)}
