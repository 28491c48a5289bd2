"""What a release gives away: the strongest adversary minus what the same adversary has without the release.

The strongest adversary and the best control are chosen on validation steps and compared on test steps. So the choice
among many does not make the difference look larger than it is, and a noisy release is not judged worse than another.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ghostpoi.audits.controls import (
    ALONE,
    DISTANCE,
    FLOORS,
    LEAK_MIXED,
    default_adversaries,
    in_order,
    not_run,
    uses_leak,
)
from ghostpoi.audits.measures.gaps import PRACTICAL, gaps, strongest
from ghostpoi.audits.measures.paired import LEVEL, Interval, Steps
from ghostpoi.data.checkins import Bools, Longs
from ghostpoi.data.pseudonyms import CHANGING

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


@dataclass(frozen=True, eq=False)
class Player:
    """One predictor of the test steps: an adversary, a control that needs no release, or clean data."""

    name: str
    hits: Bools  # (seeds, N) whether it is right


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a release gives away to adversaries with the same knowledge."""

    verdict: str
    gain: Interval  # the strongest adversary minus the control
    headroom: Interval  # clean data minus the control: what there is to give away
    adversary: str
    control: str
    positions: int
    needed: int | None  # if it cannot be told: about how many test steps would tell; None: no number would

    @property
    def measures(self) -> dict[str, Any]:
        """What an audit stores."""
        return asdict(self.gain) | {
            "verdict": self.verdict, "adversary": self.adversary, "control": self.control,
            "headroom": asdict(self.headroom), "test_positions": self.positions, "positions_needed": self.needed,
        }  # fmt: skip


def best(validation: Sequence[Sequence[float]]) -> int:
    """Return the place of the highest accuracy on validation steps, each given per seed; ties go to the first."""
    return int(np.argmax([np.mean(seeds) for seeds in validation]))


def judge(adversary: Player, control: Player, clean: Player, users: Longs, level: float = LEVEL) -> Judged:
    """Say what a release gives away. `users`: of the test steps, (N,); `level`: of the interval."""
    steps, positions, people = Steps(users, len(control.hits)), len(users), len(np.unique(users))
    gain = steps.difference(adversary.hits, control.hits, level).outward(positions)
    headroom = steps.difference(clean.hits, control.hits).outward(positions)
    enough = people >= FEWEST_USERS
    verdict = word(gain, headroom) if enough else CANNOT_TELL
    more = needed(gain, headroom, positions) if enough else positions * FEWEST_USERS / people
    return Judged(
        verdict=verdict, gain=gain, headroom=headroom, adversary=adversary.name, control=control.name,
        positions=positions, needed=_two_digits(more) if verdict == CANNOT_TELL and more else None,
    )  # fmt: skip


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
    """Return how many test steps would tell, as an interval narrows with their square root; 0 if none would."""
    if headroom.low <= 0:
        half, target = headroom.half, headroom.mean
    else:
        half, target = gain.half, max(harmless(headroom) - gain.mean, gain.mean)
    return positions * (half / target) ** 2 if target > 0 else 0.0


def _two_digits(value: float) -> int:
    """Round up to two significant digits."""
    power = 10 ** max(0, int(np.floor(np.log10(value))) - 1)
    return int(np.ceil(value / power - 1e-9)) * int(power)


def worst(words: Iterable[str]) -> str:
    """Return the worst of several words; next to "cannot tell", "nothing measurable" does not hold for all."""
    return max(words, key=lambda one: (SEVERITY[one], one == CANNOT_TELL))


def conclude(audit: Mapping[str, Any]) -> dict[str, Any]:
    """Return what follows from the figures of an audit: the verdict, over which adversaries, and the worst cases."""
    adversaries = {name: _per_seed(audit["adversaries"][name]) for name in in_order(audit["adversaries"])}
    controls = {name: _per_seed(measures) for name, measures in audit["controls"].items()}
    options = bool(audit.get("kept_columns")), audit.get("pseudonyms") in CHANGING
    missing = not_run(adversaries, *options)
    alone = {name: controls[name] for name in ALONE}
    known = {
        "no_leak": {name: seeds for name, seeds in adversaries.items() if not uses_leak(name)}
        | {name: controls[name] for name in FLOORS},
        "with_leak": adversaries | {LEAK_MIXED: controls[LEAK_MIXED]} | alone,
    }
    total = worst(audit["gives_away"][leak]["verdict"] for leak in LEAKS)
    everybody = set(default_adversaries(True, *options)) <= set(adversaries)
    return {
        "verdict": CANNOT_TELL if missing and not SEVERITY[total] else total,
        "over": "part" if missing else "all" if everybody else "default",
        "not_run": missing,
        "strongest": strongest(known["with_leak"]),
        "worst_case": {leak: _worst_case(known[leak]) for leak in LEAKS},
        "distance": _distance(audit, known),
        "gaps": gaps(_per_seed(audit["clean"]), adversaries, alone),
    }


def _worst_case(known: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The highest accuracy on test steps among adversaries and what they have without the release."""
    name = strongest(known)
    return {"name": name, "acc@1": float(np.mean(known[name]))}


def _distance(audit: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The highest shares of guesses near the truth, by what adversaries hold, and that of clean data."""
    every = audit["adversaries"] | audit["controls"]
    found: dict[str, Any] = {}
    for name, clean in audit["clean"].get(DISTANCE, {}).items():
        if not name.endswith("km"):  # a count
            continue
        found[name] = {"clean": float(clean["mean"])}
        for leak in LEAKS:
            shares = {one: float(every[one][DISTANCE][name]["mean"]) for one in known[leak] if DISTANCE in every[one]}
            top = max(shares, key=lambda one: shares[one])
            found[name][leak] = {"name": top, "share": shares[top]}
    return found


def _per_seed(measures: Mapping[str, Any]) -> list[float]:
    return [float(value) for value in measures["acc@1"]["seeds"]]
