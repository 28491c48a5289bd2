"""Where models run."""

import torch

from ghostpoi.errors import InputError


def device(name: str) -> torch.device:
    """`auto` takes a CUDA card where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise InputError(f"--device {name}: there is no such device; use auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: torch finds no CUDA card here; use --device cpu or auto")
    return torch.device(name)
