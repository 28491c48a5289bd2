"""A8: each user's habits by deconvolution, with leaked pairs."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.adversaries.per_user import PerUser
from ghostpoi.attack.inference.habit_model import HabitModel


@dataclass(frozen=True)
class HabitsLeak(Adversary):
    """A8 combines A5 and A7: a leaked pair is a visit whose venue is certain.

    Leaked pairs also show whether the publisher repeats what it drew for a user and a venue. Without a rule, A8 is A5.
    """

    number = 8
    title = "user habits with leak"
    holds = "the public rule, who released what, and leaked pairs with their users"
    does = "combines A5 and A7 in one model"

    model: HabitModel = HabitModel()

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        if evidence.rule is None:
            return PerUser().restore(evidence, seed, device)
        return self.model.restore(evidence, evidence.rule)
