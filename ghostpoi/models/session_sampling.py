"""Sample whole sessions from a trajectory LM, token by token."""

import numpy as np
import torch
from torch import Tensor

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.models.prefix_cache import Prefix
from ghostpoi.models.transformer import CausalTransformer

SESSIONS = 512  # that are sampled side by side


@torch.no_grad()
def sample_sessions(model: CausalTransformer, start: Longs, uniform: Floats) -> Ints:
    """Return POIs (N,) for sessions that begin at `start` (S+1,), each with P = T_psi(POI | POIs before it).

    `uniform` (N,) is all the randomness. Like in training, a session longer than the model's window goes on in a new
    window.
    """
    model.eval()
    length = np.diff(start)
    order = np.argsort(-length, kind="stable")
    released, numbers = np.zeros(len(uniform), np.int32), torch.from_numpy(uniform).to(model.device)
    for at in range(0, len(order), SESSIONS):
        batch = order[at : at + SESSIONS]
        prefix = Prefix(model, len(batch), int(length[batch[0]]))
        token = torch.zeros(len(batch), dtype=torch.int64, device=model.device)
        for i in range(int(length[batch[0]])):
            running = int((length[batch] > i).sum())
            token = token[:running]
            if i % model.settings.max_positions == 0:
                prefix.length, token = 0, torch.zeros_like(token)  # the start token
            index = start[batch[:running]] + i
            token = _drawn(model.log_probs(prefix.append(token)), numbers[torch.from_numpy(index).to(model.device)])
            released[index] = token.cpu().numpy()
    return released


def _drawn(log_prob: Tensor, uniform: Tensor) -> Tensor:
    """Draw a column (B,) by its probability; column 0, which has none, is never drawn."""
    cumulative = log_prob.double().exp().cumsum(1)  # (B, P+1)
    found = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True).squeeze(1)
    return found.clamp(1, log_prob.shape[1] - 1)
