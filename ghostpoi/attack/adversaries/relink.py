"""A17: pseudonyms linked to known users."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Measures, Seed
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov
from ghostpoi.attack.inference.relinking import Relinker


@dataclass(frozen=True)
class Relink(Adversary):
    """A17 finds out whose sessions stand under fresh pseudonyms, then runs A9 with the users found.

    A session is linked to a user with leaked sessions if it shows the same venues or crowds at the same hours. Without
    a rule or a leak, A17 is A9.
    """

    number = 17
    title = "relinking"
    holds = "what A9 holds"
    does = "assigns sessions under fresh pseudonyms to users with leaked sessions, then runs A9"
    needs_pseudonyms = True

    relinker: Relinker = Relinker()
    then: Adversary = HiddenMarkov()

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        """Add the share of sessions that were linked, of those whose pseudonym did not leak."""
        user = self.users(evidence)
        hidden = evidence.released.user == evidence.pseudonym
        linked = float((user != evidence.released.user)[hidden].mean()) if np.any(hidden) else 0.0
        return self.then.restore(evidence.with_users(user), seed, device), {"linked": linked}

    def users(self, evidence: Evidence) -> Ints:
        return self.relinker.users(evidence, evidence.rule) if evidence.rule else evidence.released.user
