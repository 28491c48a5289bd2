"""Keys of rows: by which a series knows a row again, and from which the row's draw follows.

All are keyed with the secret of the series, so that they tell nothing to anybody else.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins, Floats
from ghostpoi.randomness import Seed

Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class RowKeys:
    """The keys of the rows of a table."""

    row: Keys  # (N,) of user, time and venue; the second of two equal rows has another key than the first
    moment: Keys  # (N,) of user and time
    uniform: Floats  # (N,) the random number that decides the draw of a row


def row_keys(table: Checkins, seed: Seed) -> RowKeys:
    """Compute the keys of all rows."""
    secret = seed.derive("series rows").to_bytes(16, "big")
    user, venue = table.user_ids[table.user], table.venue_ids[table.venue]
    seen: dict[bytes, int] = {}
    digests, moments = bytearray(), bytearray()
    for who, when, where in zip(user.tolist(), table.time.tolist(), venue.tolist(), strict=True):
        moment = f"{len(who)}:{who}\x1f{when}".encode()
        row = moment + f"\x1f{where}".encode()
        before = seen[row] = seen.get(row, -1) + 1
        digests += hashlib.blake2b(row + f"\x1f{before}".encode(), digest_size=16, key=secret, person=b"row").digest()
        moments += hashlib.blake2b(moment, digest_size=8, key=secret, person=b"moment").digest()
    both = np.frombuffer(bytes(digests), "<u8").reshape(-1, 2)
    # 53 bits, as numpy draws them: below 1 in any case.
    return RowKeys(both[:, 0].copy(), np.frombuffer(bytes(moments), "<u8").copy(), (both[:, 1] >> 11) / (1 << 53))
