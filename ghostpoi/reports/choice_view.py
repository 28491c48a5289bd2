"""What `choose` found, in words: the recommendation, what speaks against it, and what each limit costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ghostpoi.audits.controls import CLEAN, FLOORS, LEAK_ONLY, LEAK_STAY, MARKOV
from ghostpoi.reports.texts import share, victim_label

FEW_STEPS = 3000  # test steps; with fewer, settings are hard to tell apart
GENUINE = 0.01  # a share of rows worth a warning
Trial = Mapping[str, Any]


@dataclass(frozen=True)
class Limit:
    """A limit of the publisher on a measure of a trial."""

    name: str  # of the wish
    measure: str
    text: str
    unit: str
    scale: float = 1
    sign: int = 1  # -1: at least

    def words(self, value: float) -> str:
        return f"{self.scale * value:.3g}{self.unit}"

    def keeps(self, trial: Trial, wishes: Mapping[str, Any]) -> bool:
        return bool(self.sign * (trial[self.measure] - wishes[self.name]) <= 1e-9)


LIMITS = (
    Limit("max_mean_km", "mean_km", "mean distance moved, at most", " km"),
    Limit("min_flows", "flows", "trips that survive, at least", "%", 100, -1),
    Limit("max_popularity_js", "popularity", "change of the venues' popularity, at most", " bits"),
)


def protected(trial: Trial) -> float:
    """What is given away to the adversaries that all settings faced, so that trials compare."""
    return float(trial["given_away_of_fast"])


def controls(found: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(np.mean(found["controls"][name])) for name in (CLEAN, LEAK_ONLY, LEAK_STAY, *FLOORS, MARKOV)}


def control_name(name: str) -> str:
    return "clean data" if name == CLEAN else victim_label(name)


def without(found: Mapping[str, Any]) -> tuple[str, float]:
    """What an adversary with the leak has without any release: the better of the controls."""
    known = controls(found)
    name = max((LEAK_ONLY, LEAK_STAY, *FLOORS), key=lambda one: known[one])
    return victim_label(name), known[name]


def warnings(found: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with the file or the recommended setting."""
    said, trial = [], found["recommended"] or found["nearest"]
    if trial["left_genuine"] >= GENUINE:
        said.append(
            f"{share(trial['left_genuine'], 1)} of the rows stay genuine: no other venue is near enough to replace "
            "theirs, and nothing hides these visits. Withhold or drop them, or allow a longer reach."
        )
    if (steps := trial["test_positions"]) < FEW_STEPS:
        said.append(
            f"The file is small: {steps:,} test steps cannot tell settings apart that differ by less than "
            f"{100 * trial['given_away_error']:.1f} points of right guesses. Take the order of the settings as a hint."
        )
    return said


def arguments(found: Mapping[str, Any]) -> list[str]:
    """Say of each limit what lies beyond it, compared with the recommended or the nearest setting."""
    wishes, base = found["wishes"], found["recommended"] or found["nearest"]
    said = []
    for limit in LIMITS:
        others = [other for other in LIMITS if other is not limit]
        free = [t for t in found["tried"] if all(other.keeps(t, wishes) for other in others)]
        beyond = [t for t in free if not limit.keeps(t, wishes)]
        best = min(beyond, key=protected, default=None)
        head = f"{limit.text[:1].upper()}{limit.text[1:]} {limit.words(wishes[limit.name])}:"
        better = best is not None and (found["recommended"] is None or protected(best) < protected(base) - 1e-4)
        text = "without it, no setting that was tried protects better"
        if best is not None and better:
            text = f"with {limit.words(best[limit.measure])} instead, {best['name']} has {_use(best)}"
            text += "" if found["recommended"] is None else f", instead of {_use(base)}"
        said.append(f"{head} {text}.")
    if wishes["keep_category"] != "any":
        said.append(f"Category, {wishes['keep_category']}: settings that let it change were not tried.")
    return said


def _use(trial: Trial) -> str:
    return f"{points(protected(trial))} given away with {share(trial['flows'])} of trips"


def points(value: float) -> str:
    """A difference of shares in points of a hundred right guesses."""
    return f"{100 * value:.1f} points"
