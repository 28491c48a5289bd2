"""The uniform numbers that decide draws, by stage: one for each position, or keyed by the content of each row.

Studies draw by position, so that their stored results stay valid. A release draws by content: the number of a row
depends on the seed, the stage, the user and the time. The order of rows, the format of the file and how an id or a time
is written do not matter. The number is a word of Philox4x64-10 (Salmon et al., 2011), the generator of
`numpy.random.Philox`, evaluated at a counter that the row determines: two words for the user, one for the time, and one
for the venue where its set of candidates is its own. Venues that share a set share the word 0. Two such rows of one
user and time therefore get the same number, so whether their venues differ does not show.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins, Floats, Ints, Longs
from ghostpoi.randomness import Seed

Words = NDArray[np.uint64]


class Noise(ABC):
    """Uniform numbers in [0, 1), (N,) for each stage."""

    @abstractmethod
    def several(self, count: int, *stage: object) -> Floats:
        """Return independent numbers (count, N) of a stage."""

    def uniform(self, *stage: object) -> Floats:
        """Return the numbers (N,) of a stage."""
        return self.several(1, *stage)[0]


@dataclass(frozen=True)
class ByPosition(Noise):
    """The numbers of N positions, from one generator per stage."""

    seed: Seed
    positions: int

    def several(self, count: int, *stage: object) -> Floats:
        return self.seed.generator(*stage).random((count, self.positions))


BLOCK = 4  # numbers that one counter gives


@dataclass(frozen=True)
class ByContent(Noise):
    """The numbers of N rows, keyed by user and time."""

    seed: Seed
    users: Words  # (U, 2)
    user: Ints  # (N,)
    time: Longs  # (N,) UTC seconds
    place: Words  # (N,) of the venue; 0: its set is shared

    @staticmethod
    def of(table: Checkins, seed: Seed, place: Words | None = None) -> "ByContent":
        """Return the numbers of the rows of a table."""
        users = hashed([plain(str(name)) for name in table.user_ids], seed, "users")
        place = np.zeros(len(table), np.uint64) if place is None else place
        return ByContent(seed, users, table.user, table.time, place)

    def take(self, rows: Longs) -> "ByContent":
        """Return the numbers of these rows."""
        return replace(self, user=self.user[rows], time=self.time[rows], place=self.place[rows])

    def several(self, count: int, *stage: object) -> Floats:
        if count > BLOCK:
            raise ValueError(f"a counter gives {BLOCK} numbers, not {count}")
        # 53 bits, as numpy draws them: below 1 in any case.
        return (self.words(count, *stage) >> np.uint64(11)) / (1 << 53)

    def words(self, count: int, *stage: object) -> Words:
        """Return words (count, N) of 64 random bits."""
        own, key = np.empty((count, len(self.user)), np.uint64), self.seed.derive("content", *stage)
        for at in range(0, len(self.user), CHUNK):
            part = slice(at, at + CHUNK)
            who = self.users[self.user[part]]
            counter = (who[:, 0], who[:, 1], self.time[part].view(np.uint64), self.place[part])
            own[:, part] = np.stack(philox(counter, key)[:count])
        return own


CHUNK = 1 << 14  # counters at once: they stay in the cache


def hashed(texts: list[str], seed: Seed, what: str) -> Words:
    """Return a keyed hash (N, 2) of each text."""
    secret = seed.derive("hashed", what).to_bytes(16, "big")
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=16, key=secret).digest() for text in texts)
    return np.frombuffer(digests, "<u8").reshape(-1, 2).astype(np.uint64)


NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?")


def plain(user: str) -> str:
    """Return what a user id means, however it is written: 7 for 007, +7 and 7.0."""
    if found := NUMBER.fullmatch(text := user.strip()):
        return found[2] if found[1] != "-" else f"-{found[2]}"
    return text


MULTIPLY = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
BUMP = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
ROUNDS, LOW, HALF, WORD = 10, np.uint64(0xFFFFFFFF), np.uint64(32), (1 << 64) - 1

Block = tuple[Words, Words, Words, Words]


def philox(counter: Block, key: int) -> Block:
    """Return the block of Philox4x64-10 at each counter, four words (N,); `key` has 128 bits."""
    a, b, c, d = counter
    keys = [key & WORD, key >> 64]
    for number in range(ROUNDS):
        one, two = (np.uint64((k + number * bump) & WORD) for k, bump in zip(keys, BUMP, strict=True))
        (high_a, low_a), (high_c, low_c) = (_product(x, by) for x, by in zip((a, c), MULTIPLY, strict=True))
        a, b, c, d = high_c ^ b ^ one, low_c, high_a ^ d ^ two, low_a
    return a, b, c, d


def _product(word: Words, by: int) -> tuple[Words, Words]:
    """Return the high and the low 64 bits of a product."""
    high, low = np.uint64(by >> 32), np.uint64(by & 0xFFFFFFFF)
    own_high, own_low = word >> HALF, word & LOW
    cross = own_low * high
    middle = (own_low * low >> HALF) + (cross & LOW) + own_high * low
    return own_high * high + (cross >> HALF) + (middle >> HALF), word * np.uint64(by)
