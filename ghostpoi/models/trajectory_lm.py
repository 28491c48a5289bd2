"""The trajectory LM T_psi, pre-trained on clean sessions, frozen and cached on disk; and naturalness.

The seed of T_psi is derived from the data and the settings, so releases with different seeds share one cached file.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ghostpoi.data.sessions import Sessions
from ghostpoi.files import make_private_folder
from ghostpoi.models import tensor_file
from ghostpoi.models.fit import EpochProgress, hidden_states, train
from ghostpoi.models.training_windows import Windows, from_start
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import TrajectoryLM

TRAJECTORY_LM_VERSION = 1  # raised whenever the same input gives other weights or likelihoods


def pretrain(
    sessions: Sessions, rows: int, settings: TrajectoryLM, seed: Seed,
    device: torch.device | str = "cpu", progress: EpochProgress | None = None,
) -> CausalTransformer:  # fmt: skip
    """Train T_psi on clean sessions and freeze it. It predicts every position, the first from the start token."""
    model = CausalTransformer(rows, settings.model, seed.torch_seed("trajectory_lm", "weights")).to(device)
    windows = from_start(sessions, settings.model.max_positions)
    train(model, windows, None, settings.training, seed, ("trajectory_lm",), progress)
    return model.requires_grad_(False)


def log_likelihood(model: CausalTransformer, sessions: Sessions) -> NDArray[np.float32]:
    """Return log T_psi(p_i | p_0 .. p_{i-1}) of every position, (N,)."""
    return of_targets(model, from_start(sessions, model.settings.max_positions))


@torch.no_grad()
def of_targets(model: CausalTransformer, windows: Windows) -> NDArray[np.float32]:
    """Return the log-likelihood of every target of these windows, (N,)."""
    readout = model.readout()
    parts = [readout.log_prob_of(hidden, target) for hidden, target in hidden_states(model, windows)]
    return torch.cat(parts).cpu().numpy() if parts else np.zeros(0, np.float32)


def naturalness(model: CausalTransformer, sessions: Sessions) -> float:
    """Return the mean log-likelihood over all positions, including the first."""
    return float(log_likelihood(model, sessions).mean(dtype=np.float64))


def cache_key(sessions: Sessions, rows: int, settings: TrajectoryLM) -> str:
    """Return a SHA-256 of the data and the settings that T_psi depends on. Its seed is derived from it."""
    digest = hashlib.sha256(f"{rows}\x1f{settings!r}\x1f{len(sessions)}\x1f{sessions.positions}\x1f".encode())
    digest.update(np.ascontiguousarray(sessions.start, "<i8").tobytes())
    digest.update(np.ascontiguousarray(sessions.poi, "<i8").tobytes())
    return digest.hexdigest()


def weights_key(model: CausalTransformer) -> str:
    """Return a hash of a model's weights: what depends on a model is cached by it."""
    digest = hashlib.sha256()
    for weight in model.state_dict().values():
        digest.update(np.ascontiguousarray(weight.cpu().numpy()).tobytes())
    return digest.hexdigest()[:32]


def load_or_train(
    folder: Path, sessions: Sessions, rows: int, settings: TrajectoryLM, device: torch.device | str = "cpu",
    say: Callable[[str], None] = lambda text: None, progress: EpochProgress | None = None,
) -> CausalTransformer:  # fmt: skip
    """Load T_psi of these sessions from its file in `folder`. If the file is missing or bad, train and store it."""
    key, version = cache_key(sessions, rows, settings), str(TRAJECTORY_LM_VERSION)
    path = folder / f"{key}.safetensors"
    try:
        weights, note = tensor_file.read(path, torch.device(device))
        if note.get("key") != key:
            raise tensor_file.Damaged("it belongs to other data or settings")
        if note.get("version") != version:
            raise tensor_file.Damaged("another version of the code made it")
        model = CausalTransformer(rows, settings.model, 0).to(device)
        model.load_state_dict(weights)
        return model.eval().requires_grad_(False)
    except FileNotFoundError:
        pass
    except (tensor_file.Damaged, RuntimeError) as e:
        reason = " ".join(str(e).split())
        say(f"the cached trajectory LM {path} cannot be used ({reason}); training it again")
    model = pretrain(sessions, rows, settings, Seed(int(key[:32], 16)), device, progress)
    try:
        make_private_folder(folder)  # the weights remember clean trajectories
        tensor_file.write(path, model.state_dict(), {"key": key, "version": version})
    except OSError as e:
        say(f"cannot store the trajectory LM in {folder} ({e.strerror or e}); the next run trains it again")
    return model
