"""Protection and survival gaps, from the accuracies of victims.

Gaps are computed per seed, then averaged: the victims of one seed share data and release, so their noise cancels.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

POOLED = ("none", "bridge", "frequency")  # A1 to A3, which the paper's mean and worst gap pool


class Spread(TypedDict):
    """One measure over seeds."""

    mean: float
    std: float  # of a sample (n - 1); 0 for a single seed
    seeds: list[float]  # the value of every seed


class Gaps(TypedDict):
    """All gaps of one release. None: an adversary that the gap needs did not run."""

    prot: Spread | None  # clean - none
    surv: dict[str, Spread]  # adversary - none, for every adversary except none
    mean: Spread | None  # clean - mean over A1 to A3
    worst: Spread | None  # clean - max over A1 to A3
    worst_all: Spread | None  # clean - max over all that ran


def spread(values: Sequence[float]) -> Spread:
    """Return mean and standard deviation over seeds."""
    if not values:
        raise ValueError("a measure needs at least one seed")
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "std": std, "seeds": [float(v) for v in values]}


def gaps(clean: Sequence[float], adversaries: Mapping[str, Sequence[float]]) -> Gaps:
    """Return the gaps from the accuracy per seed of the clean victim and of every adversary's victim.

    All sequences follow the same order of seeds. A positive gap means that the release denies something; a positive
    survival gap means that the adversary wins something back.
    """
    if any(len(values) != len(clean) for values in adversaries.values()):
        raise ValueError("every adversary needs the same seeds as the clean victim")
    ceiling = np.asarray(clean, float)
    acc = {name: np.asarray(values, float) for name, values in adversaries.items()}
    none = acc.get("none")
    pooled = [acc[name] for name in POOLED if name in acc]
    complete = len(pooled) == len(POOLED)
    return {
        "prot": None if none is None else spread((ceiling - none).tolist()),
        "surv": {} if none is None else {a: spread((acc[a] - none).tolist()) for a in acc if a != "none"},
        "mean": spread((ceiling - np.mean(pooled, axis=0)).tolist()) if complete else None,
        "worst": spread((ceiling - np.max(pooled, axis=0)).tolist()) if complete else None,
        "worst_all": spread((ceiling - np.max(list(acc.values()), axis=0)).tolist()) if acc else None,
    }


def strongest(adversaries: Mapping[str, Sequence[float]]) -> str:
    """Return the adversary with the highest mean over seeds; ties go to the first."""
    return max(adversaries, key=lambda name: float(np.mean(adversaries[name])))
