"""Training data of a model: windows of sessions, with an input and a target at every position."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.sessions import Sessions, spans


@dataclass(frozen=True)
class Windows:
    """Windows end to end, each an input sequence with a target at every position."""

    token: Longs  # (N,) inputs
    target: Longs  # (N,)
    length: Longs  # (W,), at most max_positions each

    @property
    def start(self) -> Longs:
        return np.cumsum(self.length) - self.length  # (W,)

    @property
    def behind(self) -> Longs:
        """The target before each one, 0 at the start of a window, (N,)."""
        token = np.concatenate([[0], self.target[:-1]])[: len(self.target)]
        token[self.start] = 0
        return token

    def take(self, which: Longs) -> "Windows":
        """Return the windows with these numbers, in this order."""
        length = self.length[which]
        index = spans(self.start[which], length)
        return Windows(self.token[index], self.target[index], length)

    def batches(self, order: Longs, size: int) -> "Iterator[Windows]":
        """Yield the windows in this order, `size` at a time."""
        for at in range(0, len(order), size):
            yield self.take(order[at : at + size])


def next_poi(sessions: Sessions, max_positions: int) -> Windows:
    """Pair input p_0 .. p_{L-2} with target p_1 .. p_{L-1}.

    Long inputs are cut into windows. The last target of a window is the first input of the next, so no pair is lost.
    """
    places, poi = next_place(sessions, max_positions), sessions.poi.astype(np.int64)
    return Windows(poi[places.token], poi[places.target], places.length)


def next_place(sessions: Sessions, max_positions: int) -> Windows:
    """Pair as `next_poi` does, with the place of each visit among all visits instead of its venue."""
    at = sessions.steps()
    return _cut(at, at + 1, np.maximum(sessions.length - 1, 0), max_positions)


def from_start(sessions: Sessions, max_positions: int) -> Windows:
    """Pair input 0, p_0 .. p_{L-2} with target p_0 .. p_{L-1} in each window: every POI is predicted."""
    windows = aligned(sessions.poi, sessions, max_positions)
    return replace(windows, token=windows.behind)


def aligned(token: Ints, sessions: Sessions, max_positions: int) -> Windows:
    """Pair input `token` (N,) with the POI of `sessions` at the same position: the task of a denoiser."""
    return _cut(token, sessions.poi, sessions.length, max_positions)


def _cut(token: Ints | Longs, target: Ints | Longs, length: Longs, max_positions: int) -> Windows:
    windows = -(-length // max_positions)
    cut = np.full(int(windows.sum()), max_positions, np.int64)
    last = np.cumsum(windows)[windows > 0] - 1
    cut[last] = (length - (windows - 1) * max_positions)[windows > 0]
    return Windows(token.astype(np.int64), target.astype(np.int64), cut)
