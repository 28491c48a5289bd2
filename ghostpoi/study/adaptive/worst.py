"""The worst case: what the strongest adversary wins back, and what it costs to hold it off."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ghostpoi.evaluate.measures.gaps import Spread, spread
from ghostpoi.study.cells import ADAPTIVE, LEAK, Cells, Series
from ghostpoi.study.table import CONTROL
from ghostpoi.study.verdict import Verdict, against


@dataclass(frozen=True)
class Attack:
    """What a victim reaches after one adversary's work."""

    adversary: str
    accuracy: Spread

    @property
    def name(self) -> str:
        """As in A8."""
        return ADAPTIVE[self.adversary]

    @property
    def seeds(self) -> Series:
        return self.accuracy["seeds"]


def attacks(cells: Cells, method: str, leak: float = LEAK, among: Collection[str] = ADAPTIVE) -> list[Attack]:
    """All adversaries that were measured, strongest in the mean over seeds first; of equals, the one numbered first."""
    found = {a: cells.series(method, a, leak) for a in ADAPTIVE if a in among}
    made = [Attack(a, spread(values)) for a, values in found.items() if values]
    return sorted(made, key=lambda attack: -attack.accuracy["mean"])


def worst(cells: Cells, method: str, leak: float = LEAK, among: Collection[str] = ADAPTIVE) -> Attack | None:
    """The strongest adversary: the largest of the means over seeds, with that adversary's own spread."""
    return next(iter(attacks(cells, method, leak, among)), None)


def over_leak_only(cells: Cells, method: str, leak: float = LEAK) -> Verdict | None:
    """The worst case minus what the leaked sessions give on their own."""
    found = worst(cells, method, leak)
    return against(found.seeds, cells.leak_only(leak)) if found else None


def measured(cells: Cells) -> list[str]:
    """Adversaries with any cell, in the order of their numbers."""
    return [a for a in ADAPTIVE if any(cells.series(m, a, r) for m in cells.methods for r in cells.leaks or [LEAK])]


def comparable(cells: Cells) -> list[str]:
    """Methods that faced every adversary that any method faced: who was spared one may look better than it is."""
    tried = measured(cells)
    return [m for m in cells.methods if tried and all(cells.series(m, a) for a in tried)]


def untried(cells: Cells, method: str) -> list[str]:
    """The numbers of those that were not measured against this method."""
    return [number for a, number in ADAPTIVE.items() if not cells.series(method, a)]


@dataclass(frozen=True)
class Cost:
    """A figure of the release itself. `better` is the sign of what is better; 0: neither way is."""

    heading: str
    get: Callable[[Cells, str], Series | None]
    better: int
    digits: int = 3

    def beside_control(self, cells: Cells, method: str) -> Verdict | None:
        """The method minus the random control, seed by seed."""
        return None if method == CONTROL else against(self.get(cells, method), self.get(cells, CONTROL))

    def is_worse(self, cells: Cells, method: str) -> bool:
        """Whether the method is clearly worse than the control."""
        found = self.beside_control(cells, method)
        return bool(found and found.clear and found.difference["mean"] * self.better < 0)


def _figure(*path: str) -> Callable[[Cells, str], Series | None]:
    def get(cells: Cells, method: str) -> Series | None:
        found = cells.release(method, *path)
        return found["seeds"] if found else None

    return get


def _gyration_change(cells: Cells, method: str) -> Series | None:
    """How far the mean radius of gyration is from where it was."""
    before, after = (cells.release(method, "utility", "gyration", f"mean_km_{side}") for side in ("before", "after"))
    if not (before and after):
        return None
    return [abs(b - a) for a, b in zip(before["seeds"], after["seeds"], strict=True)]


COSTS = {
    "naturalness": Cost("naturalness (mean log p)", _figure("naturalness"), 1),
    "popularity": Cost("popularity (JS, bits)", _figure("utility", "popularity", "poi_js"), -1),
    "flows": Cost("common part of flows", _figure("utility", "flows", "common_part"), 1),
    "gyration": Cost("mean radius of gyration, km", _gyration_change, -1),
    "substituted": Cost("substituted", _figure("plausibility", "substitution_rate"), 0),
    "mean_km": Cost("mean km moved", _figure("plausibility", "mean_km"), -1),
    "p95_km": Cost("P95 km moved", _figure("plausibility", "p95_km"), -1),
    "speed": Cost("over speed limit", _figure("plausibility", "speed_violations_released"), -1),
    "detector": Cost("detector AUC (A12)", _figure("detector", "auc"), -1),
    "detector_positions": Cost("detector AUC, single check-ins", _figure("detector", "auc_positions"), -1),
}
