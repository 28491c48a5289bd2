"""Orders of rows. They are stable: rows that compare equal keep their order."""

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Ints, Longs

DIGIT = 16  # bits; numpy sorts numbers of this size by radix, several times as fast as larger ones


def stable_order(number: NDArray[np.integer]) -> Longs:
    """Return the order of numbers that are not negative, (N,), as `np.argsort(number, kind="stable")` does."""
    order: Longs = np.argsort((number & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(DIGIT, int(number.max(initial=0)).bit_length(), DIGIT):
        digit = (number[order] >> shift & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order


def by_user_and_time(user: Ints, time: Longs) -> Longs:
    """Return the order of rows by user, then time, (N,)."""
    if (time[1:] >= time[:-1]).all():
        return stable_order(user)
    by_time = stable_order(time - time.min())
    return by_time[stable_order(user[by_time])]
