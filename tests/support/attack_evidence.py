"""What adversaries know, made by hand, and what they answer."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from builders import sessions_of
from hypothesis import strategies as st

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import purify
from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.data.candidates import Candidates
from ghostpoi.draw.channel import Channel, uniform
from ghostpoi.randomness import Seed

CPU = torch.device("cpu")
SEED = Seed(7)
EVERYTHING = 1 << 60  # pairs of states


def unchanged(rows: int) -> Rule:
    """The rule of a publisher who changes nothing, for adversaries that do not look at it."""
    sets = Candidates.anywhere(rows)
    return Rule(sets, uniform(sets), exact=True)


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
    return replace(evidence, rule=replace(evidence.rule, popularity_power=1.0))


def candidates_of(*sets: list[int]) -> Candidates:
    """The candidate sets of POI 1, 2, ..."""
    poi = np.zeros((len(sets) + 1, max(1, *map(len, sets))), np.int32)
    for p, members in enumerate(sets, 1):
        poi[p, : len(members)] = members
    return Candidates(poi, np.ones(len(poi)))


@st.composite
def candidate_sets(draw: st.DrawFn) -> Candidates:
    n = draw(st.integers(1, 6))
    sets = [
        draw(st.lists(st.integers(1, n).filter(lambda q, p=p: q != p), unique=True, max_size=3))  # type: ignore[misc]
        for p in range(1, n + 1)
    ] if n > 1 else [[]]  # fmt: skip
    return candidates_of(*sets)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Evidence, Channel]:
    sets = draw(candidate_sets())
    rows = len(sets.poi)
    poi = st.integers(1, rows - 1)
    released = draw(st.lists(st.lists(poi, max_size=5), max_size=6))
    users = draw(st.lists(st.integers(0, 2), min_size=len(released), max_size=len(released)))
    shown = sessions_of(*released, user=users)
    clean = np.array(draw(st.lists(poi, min_size=shown.positions, max_size=shown.positions)), np.int32)
    leaked = np.array(draw(st.lists(st.booleans(), min_size=len(shown), max_size=len(shown))), bool)
    channel = uniform(sets, draw(st.booleans()))
    weight = draw(st.lists(st.floats(0.1, 1), min_size=len(channel), max_size=len(channel)))
    channel = replace(channel, probability=np.array(weight))
    rule = Rule(sets, channel, exact=draw(st.booleans()))
    return Evidence.of(shown, clean, leaked, rows, rule), channel
