"""Tensors on disk that were made of clean data: readable by their owner alone, whole or absent, checked when read."""

import hashlib
import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ghostpoi.files import replacing


class Damaged(Exception):
    """The file is not what was written: to be noticed, said and made again."""


def make_folder(folder: Path) -> None:
    """A folder that only its owner may enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(folder, 0o700)


def write(path: Path, tensors: dict[str, Tensor], note: dict[str, object]) -> None:
    """Store tensors and a note of plain values under a checksum."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(note, sort_keys=True)
    with replacing(path, mode=0o600) as out:
        out.write(save(tensors, {"note": text, "digest": _digest(tensors, text)}))


def read(path: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, object]]:
    """What was stored; FileNotFoundError where nothing was, Damaged where it is not the same any more."""
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
