"""Slow reference implementations, which benchmarks and tests compare with: brute-force scores and padded training."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.optim import Optimizer

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.devices import seeded
from ghostpoi.models.training_windows import Windows
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import Training


@torch.no_grad()
def brute_force_scores(
    sessions: Sessions, released: Ints, candidates: Candidates,
    surrogate: CausalTransformer, trajectory_lm: CausalTransformer, chunk: int = 512,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:  # fmt: skip
    """Score every candidate on its prefix of `released` with a whole forward pass: adv and mani (N, K), padding -inf.

    The candidates of all sessions at one position are batched, `chunk` at a time. There is no speed mask.
    """
    shape = (sessions.positions, candidates.poi.shape[1])
    adv, mani = np.full(shape, -np.inf, np.float32), np.full(shape, -np.inf, np.float32)
    most = surrogate.settings.max_positions
    for i in range(int(sessions.length.max(initial=0))):
        index = sessions.start[:-1][sessions.length > i] + i
        last = sessions.start[1:][sessions.length > i] - 1
        other = np.where(index < last, index + 1, index - 1)
        target = np.where((i > 0) | (index < last), sessions.poi[np.minimum(other, sessions.positions - 1)], 0)
        before = released[index[:, None] - np.arange(i % most, 0, -1)]  # (B, i)
        row, k = np.nonzero(candidates.poi[sessions.poi[index]])
        option = candidates.poi[sessions.poi[index[row]], k]
        for at in range(0, len(row), chunk):
            r = row[at : at + chunk]
            seen = np.concatenate([before[r], option[at : at + chunk, None]], axis=1)
            log_probs = _last_log_probs(surrogate, seen)
            value = -log_probs.gather(1, torch.from_numpy(target[r, None].astype(np.int64)).to(log_probs.device))
            adv[index[r], k[at : at + chunk]] = np.where(target[r] > 0, value.squeeze(1).cpu().numpy(), 0)
        for at in range(0, len(index), chunk):
            start = np.zeros((len(index[at : at + chunk]), 1), before.dtype)
            log_probs = _last_log_probs(trajectory_lm, np.concatenate([start, before[at : at + chunk]], axis=1))
            here = (row >= at) & (row < at + chunk)
            mani[index[row[here]], k[here]] = log_probs.cpu().numpy()[row[here] - at, option[here]]
    return adv, mani


def _last_log_probs(model: CausalTransformer, seen: Ints) -> Tensor:
    """Return the distribution after each of M sequences of equal length, (M, T) -> (M, P+1)."""
    tokens = torch.from_numpy(seen.astype(np.int64)).to(model.device)
    hidden = model.hidden(tokens.view(-1), np.full(len(seen), seen.shape[1]))
    return model.log_probs(hidden.view(len(seen), seen.shape[1], -1)[:, -1])


def padded_epoch(
    model: CausalTransformer, optimizer: Optimizer, windows: Windows, settings: Training,
    seed: Seed, stage: tuple[object, ...], number: int,
) -> float:  # fmt: skip
    """Train like `fit.epoch`, with all windows padded to the longest and all logits at once."""
    longest = int(windows.length.max())
    real = np.arange(longest) < windows.length[:, None]  # (W, T)
    token, target = np.zeros(real.shape, np.int64), np.zeros(real.shape, np.int64)
    token[real], target[real] = windows.token, windows.target
    order = seed.generator(*stage, "order", number).permutation(len(real))
    model.train()
    total = 0.0
    with seeded(model.device, seed.torch_seed(*stage, "dropout", number)):
        for at in range(0, len(order), settings.batch_sessions):
            some = order[at : at + settings.batch_sessions]
            optimizer.zero_grad()
            tokens = torch.from_numpy(token[some]).to(model.device)
            hidden = model.hidden(tokens.view(-1), np.full(len(some), longest))
            logits = F.linear(hidden, model.output[1:])  # (B*T, P)
            goal = torch.from_numpy(target[some]).to(model.device).view(-1) - 1
            loss = F.cross_entropy(logits, goal, ignore_index=-1)
            loss.backward()  # type: ignore[no-untyped-call]
            if settings.clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            total += float(loss.detach()) * int(real[some].sum())
    model.eval()
    return total / max(1, len(windows.token))
