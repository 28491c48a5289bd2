"""Verdicts: a few sentences per adversary, each difference checked for noise and compared with its control."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.audits.controls import (
    FLOORS,
    LEAK_MIXED,
    LEAK_ONLY,
    LEAK_STAY,
    RANDOM,
    RANDOM_MATCHED,
    in_order,
    not_run,
    under,
)
from ghostpoi.audits.measures.gaps import accuracy_lost, differs, gaps, strongest

POSITIONS_PER_STEP = 5


def step(positions: int) -> float:
    """Return the step for shares of this many positions: 1, 2 or 5 times a power of ten."""
    least = POSITIONS_PER_STEP / max(1, positions)
    power = math.floor(math.log10(least))
    return next(size for size in (m * 10.0**power for m in (1, 2, 5, 10)) if size >= least * (1 - 1e-9))


def rounded(values: Sequence[float], positions: int) -> list[float]:
    """Round accuracies or shares to the step."""
    size = step(positions)
    return [round(round(value / size) * size, 9) for value in values]


HALF = 0.5  # a release holds if it costs this share of the clean accuracy, fails if an adversary wins this share back
MIN_POSITIONS = 100  # test positions that a verdict needs; with fewer, the sampling error of an accuracy reaches .1
ITSELF = "training on the release itself"
LEAK_TEXTS = {
    LEAK_ONLY: "training on the leaked sessions alone",
    LEAK_MIXED: "training on the release with leaked sessions swapped in",
    LEAK_STAY: "guessing by leaked steps and staying, without the release,",
}
RANDOM_DOES = {1: "protects better", 0: "protects neither clearly better nor worse", -1: "protects less"}
RANDOM_TEXTS = {RANDOM: "A random release", RANDOM_MATCHED: "A random release from this method's own sets"}


@dataclass(frozen=True, kw_only=True)
class Accuracies:
    """acc@1 of every victim, rounded, per seed in one order, all over the same test positions."""

    clean: Sequence[float]
    adversaries: Mapping[str, Sequence[float]]  # including `none`
    leak: Mapping[str, Sequence[float]]  # what the leak alone gives: leak-only and leak-mixed
    random: Mapping[str, Mapping[str, Sequence[float]]]  # random releases: by control, then by adversary
    floors: Mapping[str, Sequence[float]]  # by the names in controls.FLOORS
    positions: int
    leakless: Collection[str] = ()  # adversaries that hold no leaked session

    @property
    def best_floor(self) -> tuple[str, Sequence[float]]:
        """The name and the accuracy of the best floor."""
        return max(self.floors.items(), key=lambda item: _mean(item[1]))

    def sign(self, one: Sequence[float], two: Sequence[float]) -> int:
        return differs(one, two, self.positions, step(self.positions))


def no_verdict(acc: Accuracies) -> str | None:
    """Return why this test allows no verdict, or None if it does."""
    if acc.positions < MIN_POSITIONS:
        return f"there are {acc.positions:,} test positions, and a verdict needs {MIN_POSITIONS:,}"
    name, floor = acc.best_floor
    if acc.sign(acc.clean, floor) > 0:
        return None
    than = f"{FLOORS[name]} ({_acc(floor)})"
    return f"even a victim trained on clean data ({_acc(acc.clean)}) is not clearly better than {than}"


def verdicts(acc: Accuracies) -> dict[str, str]:
    """Return a verdict per adversary, none if there can be none. It begins with "Holds.", "Partly." or "Fails."."""
    if no_verdict(acc):
        return {}
    found = {}
    for name, victim in acc.adversaries.items():
        found[name] = f"{_verdict(name, acc)}. {_beside_floor(victim, acc)}."
        for control, by_adversary in acc.random.items():
            if (other := by_adversary.get(name)) is not None:
                found[name] += f" {RANDOM_TEXTS[control]} {RANDOM_DOES[acc.sign(victim, other)]} ({_acc(other)})."
    return found


def _verdict(name: str, acc: Accuracies) -> str:
    victim, none = acc.adversaries[name], acc.adversaries["none"]
    share = _mean(accuracy_lost(acc.clean, victim))
    verdict, lost = "Holds" if share >= HALF else "Partly", f"Accuracy drops by {share:.0%}"
    if acc.sign(acc.clean, victim) <= 0:
        compared = f"{_acc(victim)} against {_acc(acc.clean)}, {len(victim)} seed{'s' * (len(victim) > 1)}"
        return f"Fails. Accuracy is not clearly lower than on clean data ({compared})"
    if name == "none":
        return f"{verdict}. {lost}"
    if acc.sign(victim, none) < 0:
        return f"{verdict}. {lost}; {ITSELF} does better ({_acc(none)})"
    # An adversary without a leak is compared with the release itself, not with what a leak gives.
    leak_name, leak = max(acc.leak.items(), key=lambda item: _mean(item[1]))
    other, reference = (ITSELF, none) if name in acc.leakless else (LEAK_TEXTS[leak_name], leak)
    sign = acc.sign(victim, reference)
    does = {1: "does worse", 0: "does about as well", -1: "does better"}[sign]
    training = f"{other} {does} ({_acc(reference)})"
    if sign <= 0:
        return f"{verdict}. {lost}; {training}"
    if acc.sign(acc.clean, none) <= 0:
        return f"Partly. {lost}; {training}"
    back = (_mean(victim) - _mean(none)) / (_mean(acc.clean) - _mean(none))
    won = f"{'Fails' if back >= HALF else 'Partly'}. The adversary wins back {back:.0%} of the accuracy denied"
    return f"{won}, without any leak" if name in acc.leakless else f"{won}; {training}"


def _beside_floor(victim: Sequence[float], acc: Accuracies) -> str:
    """Compare a victim with the best guess that needs no knowledge of who goes where."""
    name, floor = acc.best_floor
    does = {1: "clearly better than", 0: "not clearly better than", -1: "worse than"}[acc.sign(victim, floor)]
    return f"The victim ({_acc(victim)}) is {does} the best floor, {FLOORS[name]} ({_acc(floor)})"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _acc(values: Sequence[float]) -> str:
    return f"{_mean(values):.3f}".lstrip("0")


def accuracies(audit: Mapping[str, Any]) -> Accuracies:
    """Return acc@1 of all victims of an audit, adversaries in the order of the registry."""
    adversaries, controls = audit["adversaries"], audit["controls"]
    names = in_order(adversaries)
    random = {
        control: {name: _per_seed(controls[key]) for name in names if (key := under(control, name)) in controls}
        for control in (RANDOM, RANDOM_MATCHED)
    }
    return Accuracies(
        clean=_per_seed(audit["clean"]),
        adversaries={name: _per_seed(adversaries[name]) for name in names},
        leak={name: _per_seed(controls[name]) for name in (LEAK_ONLY, LEAK_STAY, LEAK_MIXED)},
        random=random,
        floors={name: _per_seed(controls[name]) for name in FLOORS},
        positions=int(audit["test_positions"]),
        leakless=[name for name in names if name in ADVERSARIES and not ADVERSARIES[name].uses_leak],
    )


def conclude(audit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strongest adversary, the verdicts or why there are none, what was not run, and the gaps."""
    acc, pseudonyms = accuracies(audit), audit.get("pseudonyms", "keep") != "keep"
    return {
        "strongest": strongest(acc.adversaries),
        "verdicts": verdicts(acc),
        "no_verdict": no_verdict(acc),
        "not_run": not_run(acc.adversaries, bool(audit.get("kept_columns")), pseudonyms),
        "gaps": gaps(acc.clean, acc.adversaries),
    }


def _per_seed(measures: Mapping[str, Any]) -> list[float]:
    return [float(value) for value in measures["acc@1"]["seeds"]]
