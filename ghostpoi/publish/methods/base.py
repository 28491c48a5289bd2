"""What a method is: it looks at one position of a batch of sessions and proposes; publisher.py enforces."""

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ghostpoi import settings
from ghostpoi.data import candidates
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints
from ghostpoi.publish.scoring import Position

KEEP = -1  # a proposal to release the clean POI itself


class Method(Protocol):
    """A way to choose substitutes. Settings are fields; `repr` is the identity."""

    needs_surrogate: ClassVar[bool]
    may_keep: ClassVar[bool]  # whether it may propose KEEP where there are candidates

    @property
    def needs_trajectory_lm(self) -> bool: ...

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        """The column (B,) of position.candidates to release, or KEEP; `uniform` (B,) is all its randomness."""


@runtime_checkable
class HasSets(Protocol):
    """A method with candidate sets of its own."""

    def sets(
        self, lat: Floats, lon: Floats, category: Ints, known: NDArray[np.bool_] | None = None
    ) -> Candidates: ...  # fmt: skip


def sets_of(
    method: object, lat: Floats, lon: Floats, category: Ints, rule: settings.Candidates,
    known: NDArray[np.bool_] | None = None,
) -> Candidates:  # fmt: skip
    """What a method chooses from; arguments are (P+1,) with row 0 as padding.

    `known` tells which venues models know, where that is not all of them; only sets of a method's own depend on it.
    """
    if isinstance(method, HasSets):
        return method.sets(lat, lon, category, known)
    return candidates.find(lat, lon, category, rule)


def sample(log_weight: Tensor, uniform: Tensor) -> Tensor:
    """One column of each row, drawn with probability proportional to exp(log_weight); -inf is never drawn.

    One uniform number decides a draw, so that a draw depends on its position alone, not on batches or threads.
    """
    weight = torch.softmax(log_weight.double(), 1).nan_to_num(0.0)  # (B, K)
    cumulative = weight.cumsum(1)
    column = (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(1)
    # Rounding may leave the last sum a hair under the draw: then the last column with weight takes it.
    last = (weight > 0).long().mul(torch.arange(weight.shape[1], device=weight.device)).amax(1)
    return torch.minimum(column, last)
