"""Where releases meet adversaries and victims. Audit and study both ask here: what can be learned from this release?"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ghostpoi.attack.adversaries import ADVERSARIES, Evidence, Measures, leak_mixed, purify
from ghostpoi.attack.rule import Rule
from ghostpoi.attack.victims import WRONG, Job, Result
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.evaluate.measures.accuracy import figures, scores
from ghostpoi.evaluate.measures.recovery import recovery
from ghostpoi.randomness import Seed

LEAK_ONLY, LEAK_MIXED, CLEAN = "leak-only", "leak-mixed", "clean"


@dataclass(frozen=True)
class Restoration:
    """What an adversary made of a release, and what is known about it before any victim is trained."""

    poi: Ints  # (N,)
    figures: dict[str, Any]


def with_poi(sessions: Sessions, poi: Ints) -> Sessions:
    """The same sessions with other POIs."""
    return replace(sessions, poi=poi.astype(np.int32))


def restore(
    clean: Sessions, released: Ints, leaked: NDArray[np.bool_], rows: int, adversary: str, seed: Seed,
    device: torch.device, rule: Rule | None = None, further: Sequence[Ints] = (),
) -> Restoration:  # fmt: skip
    """Run one adversary (or the control leak-mixed) against a release made by a public rule.

    `further` are more releases of the same sessions, for an adversary made for several; its measures are of the first.
    """
    evidence = Evidence.of(with_poi(clean, released), clean.poi, leaked, rows, rule, tuple(further))
    extra: Measures = {}
    begin = time.perf_counter()
    if adversary == LEAK_MIXED:
        poi = leak_mixed(evidence)
    else:
        poi, extra = purify(ADVERSARIES[adversary], evidence, seed, device)
    seconds = time.perf_counter() - begin
    shares = recovery(clean.poi, released, poi, evidence.positions)
    return Restoration(poi, {**shares, **extra, "adversary_seconds": seconds})


def leak_only(clean: Sessions, leaked: NDArray[np.bool_], seed: Seed) -> Job:
    """The control that no defence can push an adversary below: a victim on the leaked clean sessions alone."""
    return Job(LEAK_ONLY, clean.take(leaked), seed)


def accuracies(result: Result, test: Sessions) -> dict[str, Any]:
    """A victim's figures over all positions and over the last of each session."""
    rank = np.where(result.ranks == WRONG, np.inf, result.ranks.astype(np.float64))
    found = scores(rank, test)
    return {
        "all": figures(found.all),
        "last": figures(found.last),
        "validation": result.validation,
        "epochs": result.epochs,
        "victim_seconds": result.seconds,
    }


def over_seeds(per_seed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Dicts of one shape, one per seed, as one dict of lists."""
    first = per_seed[0]
    return {
        key: over_seeds([d[key] for d in per_seed]) if isinstance(value, Mapping) else [d[key] for d in per_seed]
        for key, value in first.items()
    }
