"""A9: a hidden Markov model of the clean sessions."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.adversaries.bigram import Bigram
from ghostpoi.attack.inference.hidden_markov import TransitionModel


@dataclass(frozen=True)
class HiddenMarkov(Adversary):
    """A9 extends A8 by the steps from one venue to the next, which people repeat.

    A step is as likely as the user, or failing that everybody, was seen to take it. Without a rule, A9 is A4.
    """

    number = 9
    title = "hidden Markov model"
    holds = "what A8 holds"
    does = "adds the steps from one venue to the next"

    model: TransitionModel = TransitionModel()

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        if evidence.rule is None:
            return Bigram().restore(evidence, seed, device)
        return self.model.restore(evidence, evidence.rule)
