"""A1: nobody stands between release and victim."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.data.checkins import Ints
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class NoAdversary:
    """A1 knows the release alone and trains on it as it is: the publisher's best case."""

    uses_leak: ClassVar[bool] = False

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The release itself."""
        return evidence.released.poi
