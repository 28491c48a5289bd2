"""A8: habits by deconvolution, and leaked pairs of each user."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.attack.adversaries.habits import MODEL, HabitModel, decoded
from ghostpoi.attack.adversaries.per_user import PerUser
from ghostpoi.data.checkins import Ints
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class HabitsLeak:
    """A8 is A5 and A7 in one: it knows the rule, who released what, and the pairs of some sessions of some users.

    A leaked pair is a visit whose venue is certain: it counts among its user's habits, in the popularity of all, and in
    the channel where that is but a guess. How alike the publisher treats the visits of one user to one venue shows in
    the pairs; the more alike, the more a pair says of the same user's other visits. Without a rule A8 is A5.
    """

    model: HabitModel = MODEL
    uses_leak: ClassVar[bool] = True

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The likeliest clean POI given all that its user released and all that leaked."""
        if evidence.rule is None:
            return PerUser().restore(evidence, seed, device)
        return decoded(self.model, evidence, evidence.rule)
