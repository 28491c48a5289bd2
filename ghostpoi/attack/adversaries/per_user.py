"""A5: the table of clean given released, one for each user."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.attack.adversaries.frequency import Frequency, Table
from ghostpoi.attack.inference.visits import users
from ghostpoi.data.checkins import Ints
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class PerUser:
    """A5 holds A3's pairs and knows whose they are: it hopes that the publisher treats a user's habit always alike.

    What a user released becomes the clean POI that most often stood behind it in that user's leaked sessions (the
    smallest of several); what this user never leaked falls back to A3's table, and what nobody leaked stays.
    """

    uses_leak: ClassVar[bool] = True

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The argmax of clean given user and released."""
        at, context = evidence.positions, users(evidence) * evidence.rows + evidence.released.poi
        table = Table.of(context[at], evidence.clean[at], evidence.rows)
        return table.argmax(context, Frequency().restore(evidence, seed, device))
