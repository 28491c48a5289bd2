"""A5: the table of clean venues given the released one, per user."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.adversaries.frequency import Frequency
from ghostpoi.attack.inference.conditional_table import ConditionalTable


@dataclass(frozen=True)
class PerUser(Adversary):
    """A5 extends A3 by the user, whose visits it expects to be treated alike. An unknown pair falls back to A3."""

    number = 5
    title = "per-user table"
    holds = "leaked pairs and their users"
    does = "keeps one table per user and falls back to A3"

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        context = evidence.user * evidence.rows + evidence.released.poi
        anybody = Frequency().restore(evidence, seed, device)
        return ConditionalTable.of(evidence, context).argmax(context, anybody)
