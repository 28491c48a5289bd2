"""What victims learn from: steps to the next POI, with all that is known before it is made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.windows import Windows, next_poi


@dataclass(frozen=True)
class Steps(Windows):
    """Pairs with who makes the step, and when the input was visited. The time of the target is nobody's to know."""

    user: Longs  # (N,)
    time: Longs  # (N,) UTC seconds


def steps(sessions: Sessions, max_positions: int) -> Steps:
    """As `fit.next_poi`."""
    pairs = next_poi(sessions, max_positions)
    is_input = np.ones(sessions.positions, bool)
    is_input[sessions.start[1:][sessions.length > 0] - 1] = False
    user = np.repeat(sessions.user, np.maximum(sessions.length - 1, 0))
    return Steps(
        pairs.token, pairs.target, pairs.length, user.astype(np.int64), sessions.time[is_input].astype(np.int64)
    )


class Seen(NamedTuple):
    """What victims read at each position, (M, N) each."""

    token: Tensor
    user: Tensor
    time: Tensor

    @staticmethod
    def of(steps: Sequence[Steps], device: torch.device) -> "Seen":
        """Victim m reads steps[m]."""
        return Seen(*(together(steps, name, device) for name in Seen._fields))

    def at(self, index: Tensor) -> "Seen":
        """These positions."""
        return Seen(*(side.index_select(1, index) for side in self))

    def of_victims(self, victims: Tensor) -> "Seen":
        """What these victims read."""
        return Seen(*(side[victims] for side in self))

    def for_all(self, victims: int) -> "Seen":
        """What one reads, for all of them."""
        return Seen(*(side.expand(victims, -1) for side in self))


def together(steps: Sequence[Steps], side: str, device: torch.device) -> Tensor:
    """One side of all victims' steps, (M, N)."""
    return torch.from_numpy(np.stack([getattr(s, side) for s in steps])).to(device)
