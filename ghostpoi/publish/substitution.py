"""What was released: the result of a walk, of all rounds, and of the whole table."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Ints


@dataclass(frozen=True)
class Substitution:
    """The released venue of every position of the sessions, or of every row of the table."""

    poi: Ints  # (N,) POIs of the vocabulary for sessions, venues for the table
    mask_emptied: NDArray[np.bool_]  # (N,) the speed mask excluded every candidate of a set that was not empty
