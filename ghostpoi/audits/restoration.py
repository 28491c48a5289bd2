"""What adversaries make of releases: the first half of the evaluation grid, cached by content."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Adversary, leak_mixed, purify
from ghostpoi.attack.evidence import EVIDENCE_VERSION, Evidence, KeptColumn, Rule, leak
from ghostpoi.audits.cache import Cache, Record, key_of
from ghostpoi.audits.controls import CLEAN
from ghostpoi.audits.measures.accuracy import recovery
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.randomness import Seed

RESTORATION_VERSION = 1  # raised whenever the same input gives other restorations or shares
FURTHER = 1000  # added to a seed for each further release of the same sessions; no cell uses seeds that large


@dataclass(frozen=True)
class Contest:
    """A victim trained on what an adversary makes of a release."""

    release: str  # `clean` or a name that Grid.releases knows
    adversary: str  # a name of ADVERSARIES, with the number of releases it holds if it holds several, or a control
    leak: float | None  # share of the training sessions that leaked
    victim: str

    @property
    def cell(self) -> dict[str, Any]:
        """The cell of this contest, without seeds and measures."""
        names = {"kind": "accuracy", "method": self.release, "adversary": self.adversary}
        return names | {"leak": self.leak, "victim": self.victim}

    @property
    def label(self) -> str:
        return self.adversary if self.release == CLEAN else f"{self.adversary} on {self.release}"


@dataclass(frozen=True)
class Release:
    """What the grid needs to know about a release."""

    poi: Callable[[int], Ints]  # the released POIs under a seed, (N,)
    rule: Rule
    pseudonym: Longs | None = None  # (S,) of the training sessions; None: the release keeps the user ids

    @cached_property
    def key(self) -> str:
        """The identity of everything but the POIs."""
        return key_of(self.rule, self.pseudonym)


@dataclass(frozen=True, kw_only=True)
class Restorer:
    """Restores releases of the training sessions."""

    train: Sessions
    vocabulary: Vocabulary
    releases: Callable[[str], Release]
    device: torch.device
    cache: Cache
    kept: tuple[KeptColumn, ...] = ()  # columns that every release shows as the clean file has them

    @property
    def rows(self) -> int:
        return len(self.vocabulary)  # P+1

    def restoration(self, contest: Contest, number: int) -> Record:
        """Return what an adversary makes of a release under a seed, and its recovered shares."""
        release = self.releases(contest.release)
        adversary, _ = find_adversary(contest.adversary)
        released = [release.poi(seed) for seed in release_seeds(contest, number)]
        device = self.device.type if adversary and adversary.trains else None
        key = key_of(
            (EVIDENCE_VERSION, RESTORATION_VERSION, adversary.version if adversary else 0), contest.adversary,
            adversary, contest.leak, number, self.rows, device, self._train_key, released, release.key,
            *(self.kept if adversary and adversary.needs_columns else ()),
        )  # fmt: skip
        return self.cache.get("restorations", key, lambda: self._restore(contest, released, Seed(number)))

    def evidence(self, contest: Contest, released: Sequence[Ints], seed: Seed) -> Evidence:
        """Return what the adversary of a contest knows."""
        first, *further = released
        release, leaked = self.releases(contest.release), leak(self.train, contest.leak or 0.0, seed)
        return Evidence.of(
            with_poi(self.train, first), self.train.poi, leaked, self.rows, release.rule, tuple(further), self.kept,
            release.pseudonym,
        )  # fmt: skip

    @cached_property
    def _train_key(self) -> str:
        return sessions_key(self.train)

    def _restore(self, contest: Contest, released: Sequence[Ints], seed: Seed) -> Record:
        evidence = self.evidence(contest, released, seed)
        adversary, _ = find_adversary(contest.adversary)
        begin = time.perf_counter()
        if adversary is not None:
            poi, measures = purify(adversary, evidence, seed, self.device)
        else:
            poi, measures = leak_mixed(evidence), {}
        seconds = time.perf_counter() - begin
        shares = recovery(self.train.poi, released[0], poi, evidence.positions)
        return Record({**shares, **measures, "adversary_seconds": seconds}, poi)


def find_adversary(name: str) -> tuple[Adversary | None, int]:
    """Return the adversary of a contest, None for a control, and the number of releases it holds.

    `multi-release-4` is A11 with four releases of the same sessions.
    """
    several, _, count = name.rpartition("-")
    if several in ADVERSARIES and ADVERSARIES[several].many_releases:
        return ADVERSARIES[several], int(count)
    return ADVERSARIES.get(name), 1


def release_seeds(contest: Contest, number: int) -> list[int]:
    """Return the seeds of the releases that the adversary of a contest holds under a seed."""
    return [number + FURTHER * k for k in range(find_adversary(contest.adversary)[1])]


def with_poi(sessions: Sessions, poi: Ints) -> Sessions:
    """Return the same sessions with other POIs."""
    return replace(sessions, poi=poi.astype(np.int32))


def sessions_key(sessions: Sessions) -> str:
    """Return a hash of all that models and adversaries read of sessions."""
    return key_of(sessions.user, sessions.start, sessions.poi, sessions.time)
