"""What a release gives away: the strongest adversary minus what the same adversary has without the release.

The strongest adversary and the best control are chosen on validation steps and compared on test steps. So the choice
among many does not make the difference look larger than it is, and a noisy release is not judged worse than another.

Limits are what a publisher sets beforehand in `[limits]` of the settings file; a release keeps to them or does not.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ghostpoi.audits.controls import ALONE, DISTANCE, FLOORS, LEAK_MIXED, default_adversaries, in_order, uses_leak
from ghostpoi.audits.measures.gaps import LEVEL, PRACTICAL, Interval, Steps, gaps, of_share, strongest
from ghostpoi.data.checkins import Bools, Longs
from ghostpoi.data.pseudonyms import CHANGING
from ghostpoi.settings import Section, setting

NOTHING = "gives away nothing measurable"
CANNOT_TELL = "cannot tell"
LITTLE = "gives away a little"
MUCH = "gives away much"
# How bad a word is. "Cannot tell" is a statement about the test, so it is no worse than any other.
SEVERITY = {NOTHING: 0, CANNOT_TELL: 0, LITTLE: 1, MUCH: 2}

MOST = 0.02  # "nothing measurable" excludes that more than this is given away: two more right guesses in 100
SHARE = 0.25  # of what lies between the control and clean data; giving away as much is "much"
LEAKS = ("no_leak", "with_leak")  # what adversaries hold
FEWEST_USERS = 20  # with fewer test users, drawing them again says little about other users


class Player(NamedTuple):
    """One predictor of the test steps: an adversary, a control that needs no release, or clean data."""

    name: str
    hits: Bools  # (seeds, N) whether it is right


def best(validation: Sequence[Sequence[float]]) -> int:
    """Return the place of the highest accuracy on validation steps, each given per seed; ties go to the first."""
    return int(np.argmax([np.mean(seeds) for seeds in validation]))


def judge(adversary: Player, control: Player, clean: Player, users: Longs, level: float = LEVEL) -> dict[str, Any]:
    """Say what a release gives away, as audits store it. `users`: of the test steps, (N,); `level`: of the interval.

    `headroom` is what there is to give away. If it cannot be told, `positions_needed` is about how many test steps
    would decide; None: no number would.
    """
    steps, positions, people = Steps(users, len(control.hits)), len(users), len(np.unique(users))
    gain = steps.difference(adversary.hits, control.hits, level).outward(positions)
    headroom = steps.difference(clean.hits, control.hits).outward(positions)
    enough = people >= FEWEST_USERS
    verdict = word(gain, headroom) if enough else CANNOT_TELL
    more = needed(gain, headroom, positions) if enough else positions * FEWEST_USERS / people
    power = 10 ** max(0, math.floor(math.log10(more or 1)) - 1)  # two significant digits, rounded up
    return asdict(gain) | {
        "verdict": verdict, "adversary": adversary.name, "control": control.name, "headroom": asdict(headroom),
        "test_positions": positions,
        "positions_needed": math.ceil(more / power - 1e-9) * power if verdict == CANNOT_TELL and more else None,
    }  # fmt: skip


def word(gain: Interval, headroom: Interval) -> str:
    """Return the word for what is given away, out of the headroom: what there is to give away."""
    if headroom.low <= 0:  # where clean data teaches nothing, a release cannot be seen to teach anything
        return CANNOT_TELL
    if gain.low > 0 and gain.mean >= PRACTICAL:
        return MUCH if gain.mean >= SHARE * headroom.mean else LITTLE
    return NOTHING if gain.high <= harmless(headroom) else CANNOT_TELL


def harmless(headroom: Interval) -> float:
    """Return the upper end up to which nothing is given away; it always excludes "much"."""
    return min(MOST, SHARE * headroom.mean)


def needed(gain: Interval, headroom: Interval, positions: int) -> float:
    """Return how many test steps would decide, as an interval narrows with their square root; 0 if none would."""
    if headroom.low <= 0:
        half, target = headroom.half, headroom.mean
    else:
        half, target = gain.half, max(harmless(headroom) - gain.mean, gain.mean)
    return positions * (half / target) ** 2 if target > 0 else 0.0


def worst(words: Iterable[str]) -> str:
    """Return the worst of several words; next to "cannot tell", "nothing measurable" does not hold for all."""
    return max(words, key=lambda one: (SEVERITY[one], one == CANNOT_TELL))


def conclude(audit: Mapping[str, Any]) -> dict[str, Any]:
    """Return what follows from the figures of an audit: the verdict, over which adversaries, and the worst cases."""
    adversaries = {name: _per_seed(audit["adversaries"][name]) for name in in_order(audit["adversaries"])}
    controls = {name: _per_seed(measures) for name, measures in audit["controls"].items()}
    options = bool(audit.get("kept_columns")), audit.get("pseudonyms") in CHANGING
    missing = [name for name in default_adversaries(False, *options) if name not in adversaries]
    alone = {name: controls[name] for name in ALONE}
    known = {
        "no_leak": {name: seeds for name, seeds in adversaries.items() if not uses_leak(name)}
        | {name: controls[name] for name in FLOORS},
        "with_leak": adversaries | {LEAK_MIXED: controls[LEAK_MIXED]} | alone,
    }
    total = worst(audit["gives_away"][leak]["verdict"] for leak in LEAKS)
    everybody = set(default_adversaries(True, *options)) <= set(adversaries)
    tops = {leak: strongest(known[leak]) for leak in LEAKS}  # also of what adversaries have without the release
    return {
        "verdict": CANNOT_TELL if missing and not SEVERITY[total] else total,
        "over": "part" if missing else "all" if everybody else "default", "not_run": missing,
        "strongest": tops["with_leak"],
        "worst_case": {k: {"name": name, "acc@1": float(np.mean(known[k][name]))} for k, name in tops.items()},
        "distance": _distance(audit, known), "gaps": gaps(_per_seed(audit["clean"]), adversaries, alone),
    }  # fmt: skip


def _distance(audit: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The highest shares of guesses near the truth, by what adversaries hold, and that of clean data."""
    every = audit["adversaries"] | audit["controls"]
    found: dict[str, Any] = {}
    clean = audit["clean"].get(DISTANCE, {})
    for name in (name for name in clean if name.endswith("km")):  # others are counts
        found[name] = {"clean": float(clean[name]["mean"])}
        for leak in LEAKS:
            shares = {one: float(every[one][DISTANCE][name]["mean"]) for one in known[leak] if DISTANCE in every[one]}
            top = strongest({one: [share] for one, share in shares.items()})
            found[name][leak] = {"name": top, "share": shares[top]}
    return found


def _per_seed(measures: Mapping[str, Any]) -> list[float]:
    return [float(value) for value in measures["acc@1"]["seeds"]]


WITHIN, UNSURE, BEYOND = "within your limits", "cannot tell yet", "beyond your limits"  # from best to worst
FAR_SHARE = "far_moves_within_1km"  # what an audit calls it
FAR_WITHIN_1KM = "far_within_1km"
PERSONS, LINKED = "persons", "linked"
FIGURES = {PERSONS: "unicity part_place 4", LINKED: "next_release ids"}  # where those are that have a limit
DECISION = "decision"  # the worst of all limits
NO_LIMIT = 1.0


@dataclass(frozen=True)
class LimitSettings(Section):
    """The most that a release may give away. Without limits, an audit makes no decision."""

    accuracy_no_leak: float = setting(NO_LIMIT, "acc@1 that may be given away to adversaries without a leak", 0, 1)
    accuracy_with_leak: float = setting(NO_LIMIT, "acc@1 that may be given away to adversaries with the leak", 0, 1)
    far_within_1km: float = setting(
        NO_LIMIT, "share of far moves (over 1 km) that may be guessed within 1 km by adversaries without a leak", 0, 1
    )
    persons: float = setting(
        NO_LIMIT, "share of people who may be singled out by four check-ins of known place and part of the day", 0, 1
    )
    linked: float = setting(
        NO_LIMIT, "share of user ids of a next release, with new ids, that may be assigned to the right person", 0, 1
    )

    @property
    def given(self) -> dict[str, float]:
        """The limits that are set, by what an audit measures."""
        return {name.removeprefix("accuracy_"): limit for name, limit in vars(self).items() if limit != NO_LIMIT}


def decide(limits: Mapping[str, float], audit: Mapping[str, Any]) -> dict[str, Any] | None:
    """Compare what a release gives away with each limit; None if there is no limit.

    Where regions were audited, all of them and their worst one must keep to it.
    """
    each = {}
    for name, limit in limits.items():
        tested, verdict = _tested(name, audit), UNSURE
        if any(one["low"] > limit for one in tested):
            verdict = BEYOND
        elif all(one["high"] <= limit for one in tested):
            verdict = WITHIN
        each[name] = {"limit": limit, "verdict": verdict}
    order = (WITHIN, UNSURE, BEYOND)
    return {DECISION: max((one["verdict"] for one in each.values()), key=order.index)} | each if each else None


def _tested(name: str, audit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The intervals that must keep to a limit."""
    if name == FAR_WITHIN_1KM:  # the highest share that is guessed without a leak, with its sampling error
        known = [one for name, one in audit["adversaries"].items() if not uses_leak(name)]
        known += [audit["controls"][name] for name in FLOORS]
        top = max((one[DISTANCE] for one in known), key=lambda one: float(one[FAR_SHARE]["mean"]))
        return [vars(of_share(float(top[FAR_SHARE]["mean"]), max(1, int(top["far_moves"]))))]
    if name in FIGURES:
        return [figures_at(f"{FIGURES[name]} release", audit[PERSONS]) or {"low": 0.0, "high": NO_LIMIT}]
    found = audit["gives_away"][name]
    return [found, *([found["worst_region"]] if "worst_region" in found else [])]


def figures_at(where: str, persons: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return what an audit says about people at a place; nothing if too few people are concerned."""
    return reduce(lambda found, part: found.get(part) or {}, where.split(), persons or {})


def limits_of(decided: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the limits of a decision."""
    return {name: one["limit"] for name, one in (decided or {}).items() if name != DECISION}
