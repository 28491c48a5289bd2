"""A causal Transformer that learns clean from released POIs on the leaked sessions: the model of A2."""

from dataclasses import replace

import numpy as np
import torch

from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.checkins import Ints
from ghostpoi.models import fit
from ghostpoi.models.devices import precise
from ghostpoi.models.training_windows import Windows, aligned
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training


def answers(
    evidence: Evidence, settings: ModelSettings, training: Training, passes: int, seed: Seed, device: torch.device
) -> list[Ints]:
    """Return the POIs after 0, 1 .. `passes` passes, each (N,); leaked sessions stay as released."""
    if not evidence.leaked.any() or evidence.leaked.all():
        return [evidence.released.poi] * (passes + 1)
    model = CausalTransformer(evidence.rows, settings, seed.torch_seed("bridge", "weights")).to(device)
    released, clean = evidence.pairs()
    leaked = replace(evidence.released.take(evidence.leaked), poi=clean)
    fit.train(model, aligned(released, leaked, settings.max_positions), None, training, seed, ("bridge",))
    rest = evidence.released.take(~evidence.leaked)
    found, read = [evidence.released.poi], rest.poi
    for _ in range(passes):
        read = _argmax(model, aligned(read, rest, settings.max_positions), training)
        found.append(evidence.released.poi.copy())
        found[-1][~evidence.positions] = read
    return found


def unchanged(evidence: Evidence, answers: list[Ints]) -> list[float]:
    """Return the share of positions that did not leak and are as released, for each of the answers."""
    at = ~evidence.positions
    return [float((a[at] == evidence.released.poi[at]).mean()) if at.any() else 1.0 for a in answers]


@torch.no_grad()
def _argmax(model: CausalTransformer, pairs: Windows, training: Training) -> Ints:
    """Return the likeliest POI at every position, (N,)."""
    logits_at_once = fit.RANK_LOGITS if model.device.type == "cpu" else fit.RANK_LOGITS_CUDA
    found: list[torch.Tensor] = []
    with precise(training.precision, model.device):
        columns = model.output[1:].t().contiguous()  # (d, P): row 0 is never an answer
        for hidden, _ in fit.hidden_states(model, pairs):
            for part in torch.split(hidden, max(1, logits_at_once // model.rows)):
                found.append(torch.mm(part, columns).argmax(1) + 1)
    return torch.cat(found).cpu().numpy().astype(np.int32) if found else np.zeros(0, np.int32)
