"""Files of tensors made from clean data: readable only by their owner, complete or absent, checked when read."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ghostpoi.files import replacing


class Damaged(Exception):
    """The file differs from what was written."""


def write(path: Path, tensors: dict[str, Tensor], note: dict[str, object]) -> None:
    """Store tensors and a note of plain values, with a checksum."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(note, sort_keys=True)
    with replacing(path, mode=0o600) as out:
        out.write(save(tensors, {"note": text, "digest": _digest(tensors, text)}))


def read(path: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, object]]:
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
