"""A18: pseudonyms linked to known users, and sessions made for the victim."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary
from ghostpoi.attack.adversaries.distilled import Distilled
from ghostpoi.attack.adversaries.relink import Relink


@dataclass(frozen=True)
class RelinkDistilled(Relink):
    """A18 links sessions as A17 does, then runs A16 with the users found. Without a rule or a leak, A18 is A16."""

    number = 18
    title = "relinking, distilled"
    holds = "what A9 holds"
    does = "links sessions as A17 does, then runs A16"

    then: Adversary = Distilled()
