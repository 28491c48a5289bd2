"""What an audit says in words. No difference inside its noise is called one, and none without its control beside it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ghostpoi.data.checkins import Floats

HALF = 0.5  # of the clean accuracy gone, or of the loss won back: from here on a release holds, or fails
DEVIATIONS = 2.0  # a difference counts when it exceeds this many of its standard deviations


@dataclass(frozen=True)
class Accuracies:
    """acc@1 of every victim, seed by seed in one order, each over the same test positions."""

    clean: Sequence[float]
    adversaries: Mapping[str, Sequence[float]]  # `none` among them
    leak: Mapping[str, Sequence[float]]  # what the leak alone gives: leak-only and leak-mixed
    random: Mapping[str, Sequence[float]]  # the random release under an adversary of that name
    popularity: float
    positions: int
    leakless: Collection[str] = ()  # adversaries that hold no leaked session


def differs(one: Sequence[float], two: Sequence[float], positions: int) -> int:
    """1 where `one` is clearly more accurate than `two`, -1 where it is clearly less, 0 inside the noise.

    Noise is the spread of the difference over seeds or, if larger, what a test sample of this size leaves open; with
    one seed the latter is all that is known.
    """
    a, b = np.asarray(one, float), np.asarray(two, float)
    spread = float((a - b).std(ddof=1)) if len(a) > 1 else 0.0
    p, q = a.mean(), b.mean()
    sample = float(np.sqrt((p * (1 - p) + q * (1 - q)) / max(1, positions)))
    difference = float(p - q)
    return int(np.sign(difference)) if abs(difference) > DEVIATIONS * max(spread, sample) else 0


def verdicts(acc: Accuracies) -> dict[str, str]:
    """One sentence per adversary; it begins with fails, partly or holds."""
    return {name: _verdict(name, acc) + _beside_random(name, acc) for name in acc.adversaries}


def share_gone(clean: Sequence[float], victim: Sequence[float]) -> list[float]:
    """The share of the clean accuracy that a victim lacks, per seed."""
    return [(c - v) / c if c else 0.0 for c, v in zip(clean, victim, strict=True)]


def _verdict(name: str, acc: Accuracies) -> str:
    victim, none, n = acc.adversaries[name], acc.adversaries["none"], acc.positions
    gone = _mean(share_gone(acc.clean, victim))
    if differs(acc.clean, victim, n) <= 0:
        return f"fails: as good as clean data, {_figure(victim)} against {_figure(acc.clean)}"
    if name == "none":
        word = "holds" if gone >= HALF else "partly"
        floor = differs(victim, [acc.popularity] * len(victim), n)
        left = "" if floor > 0 else ", nothing beyond popularity is learned"
        return f"{word}: {gone:.0%} of the clean accuracy is gone{left}"
    if differs(victim, none, n) < 0:
        return f"holds: worse than the release as it is, {_figure(victim)} against {_figure(none)}"
    if name in acc.leakless:
        return _without_leak(victim, none, acc)
    leak_name, leak = max(acc.leak.items(), key=lambda item: _mean(item[1]))
    if differs(victim, leak, n) <= 0:
        less = "less than" if differs(victim, leak, n) < 0 else "no more than"
        word = "holds" if gone >= HALF else "partly"
        return f"{word}: {gone:.0%} is gone; {less} the leak alone gives ({leak_name} {_figure(leak)})"
    beyond = f"more than the leak alone gives ({leak_name} {_figure(leak)})"
    if differs(acc.clean, none, n) <= 0:
        return f"partly: {gone:.0%} is gone; {beyond}"
    return _won_back(victim, none, acc) + f", {beyond}"


def _without_leak(victim: Sequence[float], none: Sequence[float], acc: Accuracies) -> str:
    """An adversary without a leak is measured by the release as it is, not by what a leak gives."""
    gone = _mean(share_gone(acc.clean, victim))
    if differs(victim, none, acc.positions) <= 0:
        word = "holds" if gone >= HALF else "partly"
        return f"{word}: {gone:.0%} is gone; no more than the release as it is gives ({_figure(none)})"
    if differs(acc.clean, none, acc.positions) <= 0:
        return f"partly: {gone:.0%} is gone; more than the release as it is gives ({_figure(none)}), without any leak"
    return _won_back(victim, none, acc) + ", without any leak"


def _won_back(victim: Sequence[float], none: Sequence[float], acc: Accuracies) -> str:
    back = (_mean(victim) - _mean(none)) / (_mean(acc.clean) - _mean(none))
    word = "fails" if back >= HALF else "partly"
    return f"{word}: wins back {back:.0%} of what the release denies"


def _beside_random(name: str, acc: Accuracies) -> str:
    if name not in acc.random:
        return ""
    random = acc.random[name]
    sign = differs(acc.adversaries[name], random, acc.positions)
    word = {1: "more is learned than from", 0: "no better than", -1: "better than"}[sign]
    return f"; {word} a random draw ({_figure(random)})"


def _mean(values: Sequence[float] | Floats) -> float:
    return float(np.mean(values))


def _figure(values: Sequence[float]) -> str:
    return f"{_mean(values):.3f}".lstrip("0")
