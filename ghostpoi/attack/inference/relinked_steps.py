"""A9's model with the users that relinking finds: the steps of A18."""

from dataclasses import dataclass

from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.attack.inference.hidden_markov import States, TransitionModel
from ghostpoi.attack.inference.relinking import Relinker
from ghostpoi.data.checkins import Floats


@dataclass(frozen=True)
class RelinkedSteps(TransitionModel):
    """Links sessions from the leak that it is given: A16 hides half of it to see how far links can be trusted."""

    relinker: Relinker = Relinker()

    def infer(self, evidence: Evidence, rule: Rule) -> tuple[States, Floats]:
        return super().infer(evidence.with_users(self.relinker.users(evidence, rule)), rule)
