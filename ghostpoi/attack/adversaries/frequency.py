"""A3: the table of clean venues given the released one."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Measures, Seed
from ghostpoi.attack.inference.conditional_table import ConditionalTable


@dataclass(frozen=True)
class Frequency(Adversary):
    """A3 looks up each released POI in the leaked pairs. Ties go to the smaller POI; one that never leaked stays."""

    number = 3
    title = "frequency table"
    holds = "leaked pairs"
    does = "replaces each released venue by the clean venue most often behind it"

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        """Add the entropy of the table: 0 for a fixed map, and too small if few pairs leaked."""
        table = ConditionalTable.of(evidence, evidence.symbol)
        return table.argmax(evidence.symbol, evidence.released.poi), {"table_entropy_bits": table.entropy_bits()}
