"""A15: the habits of users and of single sessions by deconvolution."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.inference.session_habits import SessionModel


@dataclass(frozen=True)
class SessionHabits(Adversary):
    """A15 runs A7 twice, the second time as if every session had a user of its own, and combines both.

    Within a session people stay in one area, which A7 mixes up with the user's other areas. Without a rule, the release
    stays.
    """

    number = 15
    title = "session habits"
    holds = "what A7 holds"
    does = "runs A7 per user and per session, and combines both"
    uses_leak = False

    model: SessionModel = SessionModel()

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        return self.model.restore(evidence, evidence.rule) if evidence.rule else evidence.released.poi
