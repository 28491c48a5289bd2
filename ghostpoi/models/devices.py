"""Where and how models run: device, precision of matrix products, random generators."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from ghostpoi.errors import InputError
from ghostpoi.settings import Precision


def device(name: str) -> torch.device:
    """Return the device called `auto`, `cpu` or `cuda`; `auto` prefers a CUDA card."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise InputError(f"--device {name}: there is no such device; use auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: torch finds no CUDA card here; use --device cpu or auto")
    return torch.device(name)


def precise(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Run matrix products in this precision."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()


def product_dtype(device: torch.device) -> torch.dtype:
    """Return the type in which matrix products run here."""
    return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch's global generators, and restore their state afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
