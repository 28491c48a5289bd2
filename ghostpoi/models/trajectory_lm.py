"""The trajectory LM T_psi: pre-trained on the clean training split, frozen, kept on disk; and naturalness.

T_psi is no secret of one release: its seed comes from the data and the settings, so all seeds share one file.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ghostpoi.data.sessions import Sessions
from ghostpoi.models import tensor_file as vault
from ghostpoi.models.fit import Progress, from_start, hidden_states, precise, train
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import Precision, TrajectoryLM


def pretrain(
    sessions: Sessions,
    rows: int,
    settings: TrajectoryLM,
    seed: Seed,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> CausalTransformer:
    """Train T_psi on clean sessions, every position predicted, the first from the start token; frozen."""
    model = CausalTransformer(rows, settings.model, seed.torch_seed("trajectory_lm", "weights")).to(device)
    pairs = from_start(sessions, settings.model.max_positions)
    train(model, pairs, None, settings.training, seed, ("trajectory_lm",), progress)
    return model.requires_grad_(False)


def log_likelihood(
    model: CausalTransformer, sessions: Sessions, precision: Precision = "float32"
) -> NDArray[np.float32]:
    """log T_psi(p_i | p_0 .. p_{i-1}) of every position, (N,)."""
    with precise(precision, model.device), torch.no_grad():
        readout = model.readout()
        pairs = from_start(sessions, model.settings.max_positions)
        parts = [readout.log_prob_of(hidden, target) for hidden, target in hidden_states(model, pairs)]
    return torch.cat(parts).cpu().numpy() if parts else np.zeros(0, np.float32)


def naturalness(model: CausalTransformer, sessions: Sessions) -> float:
    """Mean log-likelihood over all positions, the first included."""
    return float(log_likelihood(model, sessions).mean(dtype=np.float64))


def cache_key(sessions: Sessions, rows: int, settings: TrajectoryLM) -> str:
    """SHA-256 of all that T_psi depends on."""
    digest = hashlib.sha256(f"{rows}\x1f{settings!r}\x1f{len(sessions)}\x1f{sessions.positions}\x1f".encode())
    digest.update(np.ascontiguousarray(sessions.start, "<i8").tobytes())
    digest.update(np.ascontiguousarray(sessions.poi, "<i8").tobytes())
    return digest.hexdigest()


def load_or_train(
    folder: Path,
    sessions: Sessions,
    rows: int,
    settings: TrajectoryLM,
    device: torch.device | str = "cpu",
    say: Callable[[str], None] = lambda text: None,
    progress: Progress | None = None,
) -> CausalTransformer:
    """T_psi of these sessions from its file in `folder`, else trained and kept there; a bad file is remade."""
    key = cache_key(sessions, rows, settings)
    path = folder / f"{key}.safetensors"
    try:
        weights, note = vault.read(path, torch.device(device))
        if note.get("key") != key:
            raise vault.Damaged("it belongs to other data or settings")
        model = CausalTransformer(rows, settings.model, 0).to(device)
        model.load_state_dict(weights)
        return model.eval().requires_grad_(False)
    except FileNotFoundError:
        pass
    except (vault.Damaged, RuntimeError) as e:
        reason = " ".join(str(e).split())
        say(f"the cached trajectory LM {path} cannot be used ({reason}); training it again")
    model = pretrain(sessions, rows, settings, Seed(int(key[:32], 16)), device, progress)
    try:
        vault.make_folder(folder)
        vault.write(path, model.state_dict(), {"key": key})  # the weights remember clean trajectories
    except OSError as e:
        say(f"cannot keep the trajectory LM under {folder} ({e.strerror or e}); the next run trains it again")
    return model
