"""A2: the denoising bridge."""

from dataclasses import dataclass

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Measures, Seed
from ghostpoi.settings import ModelSettings, Training


@dataclass(frozen=True)
class Bridge(Adversary):
    """A2 learns to undo the release from whole prefixes instead of single venues.

    Its denoiser reads its own answer again; only the first pass inverts a fixed map. Without a leak, the release stays.
    """

    number = 2
    title = "denoising bridge"
    holds = "leaked pairs"
    does = "trains a causal denoiser on the leaked pairs and applies it three times"
    trains = True

    model: ModelSettings = ModelSettings(tied=True)  # tied, so that a POI that never leaked can still be copied
    training: Training = Training(epochs=40, batch_sessions=32)  # for a leak of a few hundred sessions
    passes: int = 3

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        """Add how close the denoiser is to the identity: the share of positions left as released after each pass."""
        from ghostpoi.attack.inference import causal_denoiser

        answers = causal_denoiser.answers(evidence, self.model, self.training, self.passes, seed, device)
        return answers[-1], {"denoiser_identity": causal_denoiser.unchanged(evidence, answers)}
