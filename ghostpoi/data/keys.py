"""A short identity of values, for caches that are named by content."""

import hashlib
from dataclasses import fields, is_dataclass

import numpy as np


def key_of(*parts: object) -> str:
    """Return a short hash of settings, arrays, plain values and dataclasses of these."""
    digest = hashlib.sha256()

    def feed(value: object) -> None:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
        elif is_dataclass(value) and not isinstance(value, type):
            feed([type(value).__qualname__, *(getattr(value, f.name) for f in fields(value))])
        elif isinstance(value, list | tuple):
            digest.update(f"[{len(value)}]".encode())
            for part in value:
                feed(part)
        else:
            digest.update(f"{value!r}\x1f".encode())

    feed(parts)
    return digest.hexdigest()[:32]
