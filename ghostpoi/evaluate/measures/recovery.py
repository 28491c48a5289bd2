"""How much of the truth an adversary put back, before any victim is trained on it."""

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Ints


def recovery(clean: Ints, released: Ints, restored: Ints, leaked: NDArray[np.bool_]) -> dict[str, float]:
    """Shares of positions (N,) outside `leaked` (N,) that hold the clean POI after the adversary's work.

    `restored` counts all of them, those that the publisher never changed included, so compare it with A1's figure;
    `of_substituted` counts those that were changed; `spoiled` is the share of unchanged ones that the adversary broke.
    """
    right, changed = restored == clean, released != clean
    return {
        "restored": _share(right[~leaked]),
        "of_substituted": _share(right[~leaked & changed]),
        "spoiled": _share(~right[~leaked & ~changed]),
    }


def _share(yes: NDArray[np.bool_]) -> float:
    return float(yes.mean()) if len(yes) else 0.0
