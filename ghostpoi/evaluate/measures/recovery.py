"""The recovered share: how many clean POIs an adversary restores, before any victim is trained."""

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Ints


def recovery(clean: Ints, released: Ints, restored: Ints, leaked: NDArray[np.bool_]) -> dict[str, float]:
    """Return shares of the positions (N,) that did not leak.

    `restored`: positions that hold the clean POI, including those that the publisher never changed; compare it with
    A1's. `of_substituted`: substituted positions that hold it. `spoiled`: unchanged positions that no longer hold it.
    """
    right, changed = restored == clean, released != clean
    return {
        "restored": _share(right[~leaked]),
        "of_substituted": _share(right[~leaked & changed]),
        "spoiled": _share(~right[~leaked & ~changed]),
    }


def _share(yes: NDArray[np.bool_]) -> float:
    return float(yes.mean()) if len(yes) else 0.0
