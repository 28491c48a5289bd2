"""An audit as a manifest keeps it, in a shape that the page can trust."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.errors import InputError
from ghostpoi.evaluate.controls import CONTROLS as NAMES
from ghostpoi.evaluate.differences import differs

WORDS = ("fails", "partly", "holds")  # from worst to best
RANDOM, LEAK_ONLY, POPULARITY = "random", "leak-only", "popularity"
MEASURES = ("acc@1", "acc@5", "mrr")


@dataclass(frozen=True)
class Spread:
    """One figure over seeds."""

    mean: float
    std: float
    seeds: tuple[float, ...]

    @staticmethod
    def of(values: Sequence[float]) -> "Spread":
        array = np.asarray(values, float)
        return Spread(float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else 0.0, tuple(array.tolist()))

    @staticmethod
    def read(value: dict[str, Any]) -> "Spread":
        spread = Spread.of([float(v) for v in value["seeds"]])
        if not np.isfinite(spread.mean):
            raise ValueError("a figure is not a number")
        return spread

    def text(self, digits: int = 3, percent: bool = False) -> str:
        """With the spread where there is one."""
        scale, unit = (100, "%") if percent else (1, "")
        figure = f"{self.mean * scale:.{digits}f}"
        return figure + (f" ± {self.std * scale:.{digits}f}" if len(self.seeds) > 1 else "") + unit


@dataclass(frozen=True)
class Victim:
    """What a victim reached; `restored` where an adversary worked on what it was trained on."""

    name: str
    acc1: Spread
    acc5: Spread
    mrr: Spread
    restored: Spread | None

    @staticmethod
    def read(name: str, figures: dict[str, Any]) -> "Victim":
        acc1, acc5, mrr = (Spread.read(figures[m]) for m in MEASURES)
        restored = figures.get("restored")
        return Victim(name, acc1, acc5, mrr, Spread.read(restored) if restored else None)

    def gone(self, clean: Spread) -> Spread:
        """The share of the clean accuracy that it lacks, per seed."""
        pairs = zip(clean.seeds, self.acc1.seeds, strict=True)
        return Spread.of([(c - v) / c if c else 0.0 for c, v in pairs])


@dataclass(frozen=True)
class Audit:
    """All victims of one audit; adversaries and controls in the order in which they ran."""

    clean: Victim
    adversaries: dict[str, Victim]
    controls: dict[str, Victim]
    verdicts: dict[str, str]
    strongest: str
    leak: float
    protocol: str
    positions: int
    plausibility: dict[str, float]
    utility: dict[str, dict[str, float]]
    naturalness: float | None
    version: str

    @staticmethod
    def read(manifest: dict[str, Any], folder: Path) -> "Audit | None":
        """The audit that a manifest holds, if any."""
        found = manifest.get("audit")
        if not found:
            return None
        try:
            return Audit._read(found)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(
                f"the audit in {folder / 'manifest.json'} is damaged or of another version; run ghostpoi audit again"
            ) from None

    @staticmethod
    def _read(a: dict[str, Any]) -> "Audit":
        clean = Victim.read("clean", a["clean"])
        adversaries, controls = (
            {str(name): Victim.read(name, figures) for name, figures in a[group].items()}
            for group in ("adversaries", "controls")
        )
        seeds = {len(v.acc1.seeds) for v in (clean, *adversaries.values(), *controls.values())}
        if a["strongest"] not in adversaries or len(seeds) != 1:
            raise ValueError("the audit contradicts itself")
        return Audit(
            clean, adversaries, controls, {name: str(a["verdicts"][name]) for name in adversaries}, a["strongest"],
            float(a["leak"]), str(a["protocol"]), int(a["test_positions"]), numbers(a["plausibility"]),
            {str(group): numbers(figures) for group, figures in a["utility"].items()},
            float(a["naturalness"]["released"]) if a.get("naturalness") else None, str(a.get("version", "unknown")),
        )  # fmt: skip

    @property
    def seeds(self) -> int:
        return len(self.clean.acc1.seeds)

    def word(self, adversary: str) -> str:
        """fails, partly or holds."""
        first = self.verdicts[adversary].partition(".")[0].strip().lower()
        return first if first in WORDS else "partly"

    def random(self, adversary: str) -> Victim | None:
        """The control: a random draw, against the same adversary."""
        return self.controls.get(RANDOM if adversary == "none" else f"{RANDOM}+{adversary}")

    def beside_random(self, adversary: str) -> int | None:
        """1 where more is learned than from a random draw, -1 where less, 0 inside the noise; None: not measured."""
        control = self.random(adversary)
        if control is None:
            return None
        return differs(self.adversaries[adversary].acc1.seeds, control.acc1.seeds, self.positions)

    def denied(self, victims: Sequence[Victim]) -> Spread:
        """What the best of these victims lacks to the clean one, per seed."""
        best = np.max([v.acc1.seeds for v in victims], axis=0)
        return Spread.of((np.asarray(self.clean.acc1.seeds) - best).tolist())


def numbers(figures: dict[str, Any]) -> dict[str, float]:
    """Finite numbers by name."""
    return {str(k): float(v) for k, v in figures.items() if isinstance(v, int | float) and np.isfinite(v)}


def title(name: str) -> str:
    """What a victim's training data is called in a table."""
    adversary = name.removeprefix(f"{RANDOM}+")  # names of adversaries may hold a plus of their own
    return NAMES.get(name, name) if adversary == name else f"{NAMES[RANDOM]}, {adversary}"
