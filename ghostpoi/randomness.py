"""Randomness without global state: every stage derives its own generator from the seed and the stage's name.

Adding a stage therefore changes no other stage's draws, and draws per position do not depend on batches or workers.
"""

import hashlib
import secrets
from dataclasses import dataclass, field

import numpy as np

SEED_BITS = 128


@dataclass(frozen=True)
class Seed:
    """The secret seed of a release. Its `repr` hides the value."""

    value: int = field(repr=False)

    @staticmethod
    def fresh() -> "Seed":
        """Draw 128 bits from the operating system."""
        return Seed(secrets.randbits(SEED_BITS))

    def derive(self, *stage: object) -> int:
        """Derive 128 bits for one stage, e.g. derive("round", 3)."""
        text = "\x1f".join([str(self.value), *map(str, stage)])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")

    def generator(self, *stage: object) -> np.random.Generator:
        """Make a generator for one stage. Its draws are the same on every machine."""
        return np.random.Generator(np.random.Philox(key=self.derive(*stage)))

    def torch_seed(self, *stage: object) -> int:
        """Derive a seed for torch's generators, which take 63 bits."""
        return self.derive(*stage) >> 65
