"""A7: each user's habits by deconvolution."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.inference.habit_model import HABIT_MODEL, HabitModel


@dataclass(frozen=True)
class Habits(Adversary):
    """A7 knows the public rule and who released what, and infers the habits of each user.

    Each visit to a venue is another draw from the same candidate set, and what the draws have in common reveals the
    venue; so do the places that the user visits otherwise. A method without an exact channel gets one estimated from
    the release. Without a rule, the release stays.
    """

    number = 7
    title = "user habits"
    holds = "the public rule and who released what; no leak"
    does = "pools each user's visits, since repeated draws reveal a habit"
    uses_leak = False

    model: HabitModel = HABIT_MODEL

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        if evidence.rule is None:
            return evidence.released.poi
        return self.model.restore(evidence.without_leak(), evidence.rule)
