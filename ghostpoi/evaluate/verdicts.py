"""Verdicts: one or two sentences per adversary, each difference checked for noise and compared with its control."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ghostpoi.evaluate.controls import CONTROLS
from ghostpoi.evaluate.measures.accuracy_gaps import accuracy_lost, differs

HALF = 0.5  # a release holds if it costs this share of the clean accuracy, fails if an adversary wins this share back


@dataclass(frozen=True, kw_only=True)
class Accuracies:
    """acc@1 of every victim, per seed in one order, all over the same test positions."""

    clean: Sequence[float]
    adversaries: Mapping[str, Sequence[float]]  # including `none`
    leak: Mapping[str, Sequence[float]]  # what the leak alone gives: leak-only and leak-mixed
    random: Mapping[str, Sequence[float]]  # the random release, by adversary
    popularity: float
    positions: int
    leakless: Collection[str] = ()  # adversaries that hold no leaked session

    def sign(self, one: Sequence[float], two: Sequence[float]) -> int:
        return differs(one, two, self.positions)


def verdicts(acc: Accuracies) -> dict[str, str]:
    """Return a verdict per adversary. It begins with "Holds.", "Partly." or "Fails."."""
    found = {name: f"{_verdict(name, acc)}." for name in acc.adversaries}
    for name in found.keys() & acc.random.keys():
        protects = {1: "better", 0: "as well", -1: "less"}[acc.sign(acc.adversaries[name], acc.random[name])]
        found[name] += f" A random release protects {protects} ({_acc(acc.random[name])})."
    return found


def _verdict(name: str, acc: Accuracies) -> str:
    victim, none = acc.adversaries[name], acc.adversaries["none"]
    share = _mean(accuracy_lost(acc.clean, victim))
    verdict, lost = "Holds" if share >= HALF else "Partly", f"Accuracy drops by {share:.0%}"
    if acc.sign(acc.clean, victim) <= 0:
        compared = f"{_acc(victim)} against {_acc(acc.clean)}, {len(victim)} seed{'s' * (len(victim) > 1)}"
        return f"Fails. Accuracy is not clearly lower than on clean data ({compared})"
    if name == "none":
        learned = acc.sign(victim, [acc.popularity] * len(victim)) > 0
        return f"{verdict}. {lost}" + ("" if learned else ", to no more than popularity alone gives")
    if acc.sign(victim, none) < 0:
        return f"Holds. The victim learns less than from the release itself ({_acc(victim)} against {_acc(none)})"
    # An adversary without a leak is compared with the release itself, not with what a leak gives.
    leak_name, leak = max(acc.leak.items(), key=lambda item: _mean(item[1]))
    data, reference = ("release itself", none) if name in acc.leakless else (CONTROLS[leak_name], leak)
    sign = acc.sign(victim, reference)
    does = {1: "worse", 0: "as well", -1: "better"}[sign]
    training = f"training on the {data} does {does} ({_acc(reference)})"
    if sign <= 0:
        return f"{verdict}. {lost}; {training}"
    if acc.sign(acc.clean, none) <= 0:
        return f"Partly. {lost}; {training}"
    back = (_mean(victim) - _mean(none)) / (_mean(acc.clean) - _mean(none))
    won = f"{'Fails' if back >= HALF else 'Partly'}. The adversary wins back {back:.0%} of the accuracy denied"
    return f"{won}, without any leak" if name in acc.leakless else f"{won}; {training}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _acc(values: Sequence[float]) -> str:
    return f"{_mean(values):.3f}".lstrip("0")
