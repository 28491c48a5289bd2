"""What adversaries know, made by hand, and what they answer."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from builders import sessions_of

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import purify
from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.data.candidates import Candidates
from ghostpoi.publish.public_channel import uniform
from ghostpoi.randomness import Seed

CPU = torch.device("cpu")
SEED = Seed(7)
EVERYTHING = 1 << 60  # pairs of states


def evidence_of(
    sets: Candidates, users: Sequence[int], released: Sequence[Sequence[int]], leaked: Sequence[Sequence[int]] = (),
    exact: bool = True,
) -> Evidence:  # fmt: skip
    """The first sessions leaked: their clean POIs."""
    shown = sessions_of(*released, user=users)
    clean = np.zeros(shown.positions, np.int32)
    known = [p for session in leaked for p in session]
    clean[: len(known)] = known
    which = np.arange(len(shown)) < len(leaked)
    return Evidence(shown, which, clean, len(sets.poi), Rule(sets, uniform(sets), exact))


def answer(name: str, evidence: Evidence) -> list[int]:
    return purify(ADVERSARIES[name], evidence, SEED, CPU)[0].tolist()


def jointly(first: Evidence, *others: Evidence) -> list[int]:
    """What A11 restores from several releases of the same rows."""
    return answer("multi-release", replace(first, further=tuple(other.released.poi for other in others)))


def favouring(evidence: Evidence) -> Evidence:
    """The same evidence under a rule that favours popular venues."""
    assert evidence.rule is not None
    return replace(evidence, rule=replace(evidence.rule, popularity_power=1.0))
