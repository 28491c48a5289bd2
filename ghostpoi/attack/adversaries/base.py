"""The base classes of adversaries with all that an adversary's file needs, and what runs one.

An adversary restores sessions, on which a victim then trains, or predicts the next venue itself.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from ghostpoi.attack.counting import Scorer
from ghostpoi.attack.evidence import Evidence, in_vocabulary
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.randomness import Seed

if TYPE_CHECKING:
    import torch

__all__ = [
    "Adversary", "Described", "Device", "Evidence", "Ints", "Measures", "Prediction", "Predictor", "Seed", "leak_mixed",
    "predicted", "purify",
]  # fmt: skip

Device: TypeAlias = "torch.device"  # a text at run time: adversaries must import without torch
Measures = dict[str, float | list[float]]


class Described:
    """What tables, pages and help texts say about an attacker."""

    number: ClassVar[int]  # 3 means A3
    title: ClassVar[str]  # a noun: "frequency table"
    holds: ClassVar[str]  # what it knows: "leaked pairs"
    does: ClassVar[str]  # what it does, starting with a verb: "looks up each released venue"

    @property
    def label(self) -> str:
        """Its name in tables and charts: "A3 frequency table"."""
        return f"A{self.number} {self.title}"


class Adversary(Described):
    """Tries to restore the clean sessions. A subclass is a frozen dataclass; its `repr` identifies it in caches."""

    version: ClassVar[int] = 1  # raised whenever it restores the same evidence in another way
    uses_leak: ClassVar[bool] = True  # False: it sees the release alone, and so does its victim
    needs_seed: ClassVar[bool] = True  # False: without a leak, it makes the same of a release under every seed
    effort: ClassVar[float] = 0.1  # about how many Markov victims could be trained meanwhile; for progress bars
    trains: ClassVar[bool] = False  # it trains a model of its own, which costs about as much as a victim
    many_releases: ClassVar[bool] = False  # it needs several releases of the same rows (`Evidence.further`)
    needs_columns: ClassVar[bool] = False  # it needs columns that the release kept (`Evidence.kept`)
    needs_pseudonyms: ClassVar[bool] = False  # it needs user ids that change (`Evidence.pseudonym`)
    needs_outside: ClassVar[bool] = False  # it needs true statistics of the city (`Evidence.outside`)
    predicts: ClassVar[bool] = False  # it predicts the next venue itself, so that no victim trains

    def __init_subclass__(cls) -> None:
        if cls.restore is Adversary.restore and cls.restore_and_measure is Adversary.restore_and_measure:
            raise TypeError(f"{cls.__name__} must implement restore or restore_and_measure")

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        """Return the POIs that the victim will be trained on, (N,); `purify` overrules those of leaked sessions."""
        return self.restore_and_measure(evidence, seed, device)[0]

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        """Return what `restore` returns, and further measures to record. Implement one of the two."""
        return self.restore(evidence, seed, device), {}

    def users(self, evidence: Evidence) -> Ints:
        """Return who each session belongs to as far as the adversary knows, (S,); some victims learn from it."""
        return evidence.released.user


@dataclass(frozen=True)
class Prediction:
    """What a predictor makes of a release."""

    scorer: Scorer  # of clean sessions
    restored: Ints | None = None  # (N,) the likeliest clean POI of every position of the release


class Predictor(Adversary, ABC):
    """Predicts the next venue of clean sessions itself. A subclass implements `predict`."""

    predicts = True

    @abstractmethod
    def predict(self, evidence: Evidence, validation: Sessions, seed: Seed, device: Device) -> Prediction:
        """Learn from a release and the leak; `validation` are clean sessions to choose weights by."""

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        raise TypeError(f"{self.label} restores no sessions: it predicts")


def predicted(
    predictor: Predictor, evidence: Evidence, validation: Sessions, seed: Seed, device: Device
) -> Prediction:  # fmt: skip
    """Return what a predictor makes of the evidence, with the leaked POIs among those restored."""
    if not predictor.uses_leak:
        evidence = evidence.without_leak()
    found = predictor.predict(evidence, validation, seed, device)
    return found if found.restored is None else replace(found, restored=_enforce(evidence, found.restored))


def purify(adversary: Adversary, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
    """Return the POIs that the victim gets, (N,), with leaked sessions in clean form, and the adversary's measures."""
    if not adversary.uses_leak:
        evidence = evidence.without_leak()  # and the victim gets no clean session either
    proposed, measures = adversary.restore_and_measure(evidence, seed, device)
    return _enforce(evidence, proposed), measures


def leak_mixed(evidence: Evidence) -> Ints:
    """Return the control `leak-mixed`, (N,): the release with the leaked sessions swapped in and nothing restored."""
    return _enforce(evidence, evidence.released.poi)


def _enforce(evidence: Evidence, proposed: Ints) -> Ints:
    if proposed.shape != evidence.clean.shape:
        raise ValueError(f"the adversary returned shape {proposed.shape} for {evidence.clean.shape} positions")
    restored = np.where(evidence.positions, evidence.clean, proposed).astype(np.int32)
    if not in_vocabulary(restored, evidence.rows).all():
        raise ValueError("the adversary returned POIs outside 1..P")
    return restored
