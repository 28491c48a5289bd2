"""What an adversary holds, what it must hand over, and the caller that enforces it."""

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from ghostpoi.attack.rule import Rule
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.errors import InputError
from ghostpoi.randomness import Seed

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Evidence:
    """All that an adversary knows: the release, the clean values of the whole sessions that leaked, the public rule.

    Clean values of other sessions are not merely unused, they are not here: making one with any is refused.
    """

    released: Sessions  # the released training sessions
    leaked: Bools  # (S,) the sessions whose clean values the adversary holds
    clean: Ints  # (N,) clean POIs at leaked positions, 0 elsewhere
    rows: int  # P+1
    rule: Rule | None = None  # how the publisher substitutes, as far as everybody knows it

    def __post_init__(self) -> None:
        if self.leaked.shape != (len(self.released),) or self.clean.shape != self.released.poi.shape:
            raise ValueError("leaked needs one value per session, clean one per position of the release")
        if not _real(self.released.poi, self.rows).all():
            raise ValueError("a released POI lies outside 1..P")
        if (_real(self.clean, self.rows) != self.positions).any() or self.clean[~self.positions].any():
            raise ValueError("clean must lie in 1..P where a session leaked and be 0 elsewhere")

    @staticmethod
    def of(released: Sessions, clean: Ints, leaked: Bools, rows: int, rule: Rule | None = None) -> "Evidence":
        """From the clean POI of every position, of which only the leaked ones are kept."""
        known = np.where(_positions(released, leaked), clean, 0).astype(np.int32)
        return Evidence(released, leaked, known, rows, rule)

    @property
    def positions(self) -> Bools:
        """The positions of leaked sessions."""
        return _positions(self.released, self.leaked)  # (N,)

    def pairs(self) -> tuple[Ints, Ints]:
        """The leaked pairs: released and clean POIs."""
        at = self.positions
        return self.released.poi[at], self.clean[at]

    def without_leak(self) -> "Evidence":
        """The release alone."""
        return replace(self, leaked=np.zeros_like(self.leaked), clean=np.zeros_like(self.clean))


class Adversary(Protocol):
    """Sits between release and victim, and wants to win back what a victim could learn from the clean sessions."""

    uses_leak: ClassVar[bool]  # False: gets the release alone, and its victim too

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The POIs that the victim will be trained on, (N,). What it says of leaked sessions is overruled."""


def purify(adversary: Adversary, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
    """The POIs that the victim gets, (N,): the adversary proposes, this checks and puts in the leaked sessions.

    An adversary that uses no leak is not shown any, and its victim gets the release as it is.
    """
    if not adversary.uses_leak:
        evidence = evidence.without_leak()
    return enforce(evidence, adversary.restore(evidence, seed, device))


def enforce(evidence: Evidence, proposed: Ints) -> Ints:
    """Leaked sessions clean, everything else as proposed, in 1..P, (N,)."""
    if proposed.shape != evidence.clean.shape:
        raise ValueError(f"the adversary returned shape {proposed.shape} for {evidence.clean.shape} positions")
    restored = np.where(evidence.positions, evidence.clean, proposed).astype(np.int32)
    if not _real(restored, evidence.rows).all():
        raise ValueError("the adversary returned POIs outside 1..P")
    return restored


def leak_mixed(evidence: Evidence) -> Ints:
    """A control: the release with the leaked sessions swapped in and no purifier, (N,)."""
    return enforce(evidence, evidence.released.poi)


def leak(sessions: Sessions, ratio: float, seed: Seed) -> Bools:
    """Which whole sessions leak: a share `ratio`, to the nearest session but at least one unless it is 0, (S,).

    One order of the sessions serves every ratio, so that a larger leak under the same seed contains the smaller.
    """
    if not 0 <= ratio <= 1:
        raise InputError(f"the leak ratio must be from 0 to 1, not {ratio:g}; the paper's is 0.05")
    order = seed.generator("leak").permutation(len(sessions))
    count = max(int(ratio * len(sessions) + 0.5), 1) if ratio else 0
    leaked = np.zeros(len(sessions), bool)
    leaked[order[:count]] = True
    return leaked


def _positions(sessions: Sessions, which: Bools) -> Bools:
    return np.repeat(which, sessions.length)


def _real(poi: Ints, rows: int) -> Bools:
    return (poi >= 1) & (poi < rows)
