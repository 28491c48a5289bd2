"""A2, A10, A27 and A28: bridges from released back to clean sessions, learned on the leaked pairs.

Their models are in `bridge_models`, which imports torch.
"""

from dataclasses import dataclass, field

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Measures, Seed
from ghostpoi.settings import ModelSettings, Training, TrajectoryLM


@dataclass(frozen=True)
class Bridge(Adversary):
    """A2 learns to undo the release from whole prefixes instead of single venues.

    Its denoiser reads its own answer again; only the first pass inverts a fixed map. Without a leak, the release stays.
    """

    number = 2
    title = "denoising bridge"
    holds = "leaked pairs"
    does = "trains a causal denoiser on the leaked pairs and applies it three times"
    effort = 500.0
    trains = True

    model: ModelSettings = ModelSettings(tied=True)  # tied, so that a POI that never leaked can still be copied
    training: Training = Training(epochs=40, batch_sessions=32)  # for a leak of a few hundred sessions
    passes: int = 3

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        """Add how close the denoiser is to the identity: the share of positions left as released after each pass."""
        from ghostpoi.attack.adversaries import bridge_models

        answers, at = bridge_models.answers(evidence, self, seed, device), ~evidence.positions
        same = [float((a == evidence.released.poi)[at].mean()) if at.any() else 1.0 for a in answers]
        return answers[-1], {"denoiser_identity": same}


@dataclass(frozen=True)
class AugmentedBridge(Bridge):
    """A27 extends A2 by more pairs: substitutes that the rule allows and a trajectory LM finds natural."""

    number = 27
    title = "bridge, augmented"
    holds = "leaked pairs and the public rule"
    does = "does what A2 does, with further releases of the leaked sessions that a trajectory LM finds natural"

    lm: TrajectoryLM = field(default_factory=TrajectoryLM)
    copies: int = 4  # further releases of each leaked session


@dataclass(frozen=True)
class NaturalBridge(Bridge):
    """A28 extends A2 by a second loss: what the denoiser restores must be natural behind the clean prefix."""

    number = 28
    title = "bridge, natural"
    does = "does what A2 does, and learns to restore what a trajectory LM finds natural"

    lm: TrajectoryLM = field(default_factory=TrajectoryLM)
    natural: float = 0.1  # weight of the naturalness, relative to the cross-entropy


@dataclass(frozen=True)
class PairedBridge(Adversary):
    """A10 learns the way back in small steps, inside A(released); samples vote. Without a leak, the release stays."""

    number = 10
    title = "paired bridge"
    holds = "leaked pairs and the public rule"
    does = "learns a categorical bridge from released to clean sessions on the leaked pairs"
    effort = 500.0
    trains = True

    model: ModelSettings = ModelSettings(dropout=0.1)
    training: Training = Training(epochs=50, batch_sessions=64)  # more would memorise a leak of a few hundred sessions
    max_updates: int = 500  # a leak too large for that is read in larger batches
    steps: int = 32  # N, the length of the chain
    jump: float = 0.03  # b, the probability of a jump per step
    cross_entropy: float = 0.5  # lambda, the weight of the cross-entropy relative to the divergence of posteriors
    average: float = 0.99  # of the weights, per update
    samples: int = 8  # ways back that vote

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        from ghostpoi.attack.adversaries import bridge_models

        return bridge_models.paired_answer(evidence, self, seed, device)
