"""Randomness without global state: every stage derives its own generator from the seed and its own name.

So adding a stage never changes another one's draws, and draws made per position do not depend on batches or workers.
"""

import hashlib
import secrets
from dataclasses import dataclass, field

import numpy as np

SEED_BITS = 128


@dataclass(frozen=True)
class Seed:
    """The secret that a release rests on. It does not show itself when printed."""

    value: int = field(repr=False)

    @staticmethod
    def fresh() -> "Seed":
        """128 bits from the operating system."""
        return Seed(secrets.randbits(SEED_BITS))

    def derive(self, *stage: object) -> int:
        """128 bits for one stage, e.g. derive("round", 3)."""
        text = "\x1f".join([str(self.value), *map(str, stage)])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")

    def generator(self, *stage: object) -> np.random.Generator:
        """A generator for one stage, the same on every machine."""
        return np.random.Generator(np.random.Philox(key=self.derive(*stage)))

    def torch_seed(self, *stage: object) -> int:
        """A seed for torch's generators, which take 63 bits."""
        return self.derive(*stage) >> 65
