"""A16: sessions made for the victim, from all that leak and release tell about steps."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov
from ghostpoi.attack.inference.distillation import Distillation


@dataclass(frozen=True)
class Distilled(Adversary):
    """A16 does not restore visits: it predicts steps, and makes sessions that teach a victim these predictions.

    A leak weighs little among restored sessions that are mostly wrong. A16 weighs leaked steps, the steps that A9
    infers, and staying, and half of the leak decides how. Without a rule or with fewer than two leaked sessions, A16 is
    A9.
    """

    number = 16
    title = "distilled steps"
    holds = "what A9 holds"
    does = "weighs leaked steps, inferred steps and staying, and makes sessions that teach the result"

    model: Distillation = Distillation()

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        if evidence.rule is None or evidence.leaked.sum() < 2:
            return HiddenMarkov(self.model.steps).restore(evidence, seed, device)
        return self.model.restore(evidence, evidence.rule, seed)
