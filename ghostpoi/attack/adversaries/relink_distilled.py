"""A18: pseudonyms linked to known users, and sessions made for the victim."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Evidence, Ints
from ghostpoi.attack.adversaries.distilled import Distilled
from ghostpoi.attack.inference.distillation import Distillation
from ghostpoi.attack.inference.relinked_steps import RelinkedSteps
from ghostpoi.attack.inference.relinking import Relinker


@dataclass(frozen=True)
class RelinkDistilled(Distilled):
    """A18 is A16 with the users that A17 finds, also while half of the leak decides how much to trust them."""

    number = 18
    title = "relinking, distilled"
    holds = "what A9 holds"
    does = "links sessions as A17 does, then runs A16"
    needs_pseudonyms = True

    model: Distillation = Distillation(RelinkedSteps())

    def users(self, evidence: Evidence) -> Ints:
        return Relinker().users(evidence, evidence.rule) if evidence.rule else evidence.released.user
