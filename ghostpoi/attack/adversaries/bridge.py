"""A2: the denoising-bridge purifier."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.data.checkins import Ints
from ghostpoi.models import fit
from ghostpoi.models.devices import precise
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.models.windows import Windows, aligned
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

MODEL = ModelSettings(tied=True)  # tied: a POI that never leaked can still be passed on as it is
TRAINING = Training(epochs=40, batch_sessions=32)  # for a leak of a few hundred sessions


@dataclass(frozen=True)
class Bridge:
    """A2 holds leaked (clean, released) pairs and learns to undo the release from a whole prefix, not POI by POI.

    A causal Transformer learns clean from released on the leaked sessions alone. On every other session it names the
    likeliest clean POIs, then reads its own answer again, `passes` times in all. The first pass alone inverts a fixed
    map; each further one applies the same inverse again and so helps only where the denoiser leaves clean POIs as they
    are. Without a leak there is nothing to learn from, and the release stays.
    """

    model: ModelSettings = MODEL
    training: Training = TRAINING
    passes: int = 3
    uses_leak: ClassVar[bool] = True

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The denoiser's last answer."""
        return self.answers(evidence, seed, device)[-1]

    def answers(self, evidence: Evidence, seed: Seed, device: torch.device) -> tuple[Ints, ...]:
        """The POIs after 0, 1 .. `passes` passes, each (N,); leaked sessions stay as released."""
        if not evidence.leaked.any() or evidence.leaked.all():
            return (evidence.released.poi,) * (self.passes + 1)
        model = self.denoiser(evidence, seed, device)
        rest, at = evidence.released.take(~evidence.leaked), ~evidence.positions
        answers, read = [evidence.released.poi], rest.poi
        for _ in range(self.passes):
            read = _argmax(model, aligned(read, rest, self.model.max_positions), self.training)
            now = evidence.released.poi.copy()
            now[at] = read
            answers.append(now)
        return tuple(answers)

    def denoiser(self, evidence: Evidence, seed: Seed, device: torch.device) -> CausalTransformer:
        """Trained on the leaked pairs: cross-entropy of the clean POI at every position."""
        model = CausalTransformer(evidence.rows, self.model, seed.torch_seed("bridge", "weights")).to(device)
        released, clean = evidence.pairs()
        sessions = replace(evidence.released.take(evidence.leaked), poi=clean)
        pairs = aligned(released, sessions, self.model.max_positions)
        fit.train(model, pairs, None, self.training, seed, ("bridge",))
        return model


def kept(evidence: Evidence, answers: tuple[Ints, ...]) -> tuple[float, ...]:
    """How near the denoiser is to the identity: the share of positions not leaked that it leaves as released, per pass.

    Element n belongs to n passes, so the first is 1.
    """
    at = ~evidence.positions
    return tuple(float((a[at] == evidence.released.poi[at]).mean()) if at.any() else 1.0 for a in answers)


@torch.no_grad()
def _argmax(model: CausalTransformer, pairs: Windows, training: Training) -> Ints:
    """The likeliest POI at every position, (N,)."""
    logits_at_once = fit.RANK_LOGITS if model.device.type == "cpu" else fit.RANK_LOGITS_CUDA
    found: list[torch.Tensor] = []
    with precise(training.precision, model.device):
        columns = model.output[1:].t().contiguous()  # (d, P): row 0 is never an answer
        for hidden, _ in fit.hidden_states(model, pairs):
            for part in torch.split(hidden, max(1, logits_at_once // model.rows)):
                found.append(torch.mm(part, columns).argmax(1) + 1)
    return torch.cat(found).cpu().numpy().astype(np.int32) if found else np.zeros(0, np.int32)
