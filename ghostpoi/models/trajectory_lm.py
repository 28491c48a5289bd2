"""The trajectory LM T_psi: pre-trained on clean sessions, frozen, cached on disk, and sampled; and naturalness.

The seed of T_psi is derived from the data and the settings, so releases with different seeds share one cached file.
Files of tensors made from clean data are readable only by their owner, complete or absent, and checked when read.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.files import make_private_folder, replacing
from ghostpoi.models.fit import hidden_states, train
from ghostpoi.models.prefix_cache import Prefix
from ghostpoi.models.training_windows import Windows, from_start
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import TrajectoryLM


class Damaged(Exception):
    """The file differs from what was written."""


def write_tensors(path: Path, tensors: dict[str, Tensor], note: dict[str, object]) -> None:
    """Store tensors and a note of plain values, with a checksum."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(note, sort_keys=True)
    with replacing(path, mode=0o600) as out:
        out.write(save(tensors, {"note": text, "digest": _digest(tensors, text)}))


def read_tensors(path: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Return the stored tensors and note. Raise FileNotFoundError if there is no file, Damaged if it has changed."""
    if not path.exists():
        raise FileNotFoundError(path)
    try:
        with safe_open(str(path), "pt") as f:
            metadata = f.metadata() or {}
            tensors = {name: f.get_tensor(name) for name in f.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as e:
        raise Damaged(str(e)) from None
    if metadata.get("digest") != _digest(tensors, metadata.get("note", "")):
        raise Damaged("its checksum is wrong")
    return {name: t.to(device) for name, t in tensors.items()}, json.loads(metadata["note"])


def _digest(tensors: dict[str, Tensor], note: str) -> str:
    digest = hashlib.sha256(note.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}\n".encode())
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


TRAJECTORY_LM_VERSION = 1  # raised whenever the same input gives other weights or likelihoods


def pretrain(
    sessions: Sessions, rows: int, settings: TrajectoryLM, seed: Seed,
    device: torch.device | str = "cpu", progress: Callable[[float], None] = lambda loss: None,
) -> CausalTransformer:  # fmt: skip
    """Train T_psi on clean sessions and freeze it. It predicts every position, the first from the start token."""
    model = CausalTransformer(rows, settings.model, seed.torch_seed("trajectory_lm", "weights")).to(device)
    windows = from_start(sessions, settings.model.max_positions)
    train(model, windows, settings.training, seed, ("trajectory_lm",), progress)
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
    say: Callable[[str], None] = lambda text: None, progress: Callable[[float], None] = lambda loss: None,
) -> CausalTransformer:  # fmt: skip
    """Load T_psi of these sessions from its file in `folder`. If the file is missing or bad, train and store it."""
    key, version = cache_key(sessions, rows, settings), str(TRAJECTORY_LM_VERSION)
    path = folder / f"{key}.safetensors"
    try:
        weights, note = read_tensors(path, torch.device(device))
        if note.get("key") != key:
            raise Damaged("it belongs to other data or settings")
        if note.get("version") != version:
            raise Damaged("another version of the code made it")
        model = CausalTransformer(rows, settings.model, 0).to(device)
        model.load_state_dict(weights)
        return model.eval().requires_grad_(False)
    except FileNotFoundError:
        pass
    except (Damaged, RuntimeError) as e:
        reason = " ".join(str(e).split())
        say(f"the cached trajectory LM {path} cannot be used ({reason}); training it again")
    model = pretrain(sessions, rows, settings, Seed(int(key[:32], 16)), device, progress)
    try:
        make_private_folder(folder)  # the weights remember clean trajectories
        write_tensors(path, model.state_dict(), {"key": key, "version": version})
    except OSError as e:
        say(f"cannot store the trajectory LM in {folder} ({e.strerror or e}); the next run trains it again")
    return model


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
