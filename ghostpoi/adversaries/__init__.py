"""Adversaries: each tries to win back from a release what a victim could have learned from the clean sessions."""

from ghostpoi.adversaries.base import Adversary, Evidence, leak, leak_mixed, purify
from ghostpoi.adversaries.bigram import Bigram
from ghostpoi.adversaries.bridge import Bridge
from ghostpoi.adversaries.frequency import Frequency
from ghostpoi.adversaries.none import NoAdversary

ADVERSARIES: dict[str, Adversary] = {
    "none": NoAdversary(),
    "bridge": Bridge(),
    "frequency": Frequency(),
    "bigram": Bigram(),
}

__all__ = ["ADVERSARIES", "Adversary", "Evidence", "leak", "leak_mixed", "purify"]
