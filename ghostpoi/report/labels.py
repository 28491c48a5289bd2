"""Names and numbers for readers. Plug-ins name themselves; a name that is not registered stays as it is."""

from typing import NamedTuple

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.evaluate.controls import CONTROLS, RANDOM
from ghostpoi.evaluate.measures.gaps import Spread
from ghostpoi.publish.methods import METHODS

VERDICTS = {"fails": "Fails", "partly": "Partly holds", "holds": "Holds"}  # from worst to best
BESIDE_RANDOM = {  # by the sign of how much more the strongest adversary learns than from a random release
    -1: "A random release protects less.",
    0: "A random release protects as well.",
    1: "A random release protects better.",
}
OUTCOMES = {  # of a row, as the manifest counts them
    "substituted": "substituted",
    "no_candidate": "kept: no candidate nearby",
    "kept_by_speed": "kept: no candidate reachable in time",
    "kept_by_method": "kept by the method",
}
LIMITS = (
    ("The rule is public.", "Anyone can read in the code of ghostpoi which venues may stand behind a released one. An "
     "adversary who pools a user's visits may undo much of what independent draws hide."),
    ("Leaked sessions help adversaries.", "Clean sessions train a model directly, and leaked pairs of clean and "
     "released visits help to undo the release. No release can push an adversary below what the leak alone gives."),
    ("This is not anonymisation.", "Users, times and categories do not change. Unusual hours, rare categories and the "
     "number of check-ins identify a user as well as before."),
    ("Kept rows are genuine.", "A row without a candidate keeps its clean venue unless it is withheld, and the rule "
     "reveals which rows these are."),
    ("Release each row once.", "A second release of the same rows, drawn anew, may give an adversary more evidence, "
     "never less."),
    ("Only what was tested was measured.", "An audit covers the adversaries and the victim model that it names, on the "
     "last part of each user's sessions. Others may do better."),
)  # fmt: skip


class UtilityMeasure(NamedTuple):
    """One measure of an audit's `utility` that says nothing about the clean data alone."""

    group: str
    key: str
    label: str
    scale: str
    unchanged: int  # the value where release and clean data agree


_JS, _COMMON, _CHANGE = "Jensen-Shannon divergence in bits", "common part of the flows", "mean relative change per user"
UTILITY = (
    UtilityMeasure("popularity", "poi_js", "Popularity of venues", _JS, 0),
    UtilityMeasure("popularity", "category_js", "Popularity of categories", _JS, 0),
    UtilityMeasure("flows", "common_part", "Flows between 1\u00a0km squares", _COMMON, 1),
    UtilityMeasure("flows", "common_part_between", "Flows that leave their square", _COMMON, 1),
    UtilityMeasure("hours", "category_hour_js", "Categories by hour", _JS, 0),
    UtilityMeasure("hours", "cell_hour_js", "1\u00a0km squares by hour", _JS, 0),
    UtilityMeasure("gyration", "relative_change", "Radius of gyration", _CHANGE, 0),
    UtilityMeasure("visits", "unique_pois_relative_change", "Venues per user", _CHANGE, 0),
)


def method_label(name: str) -> str:
    """The name of a method."""
    return METHODS[name].label if name in METHODS else name


def victim_label(name: str) -> str:
    """The name of a victim's training data: an adversary, a control, or the random release under an adversary."""
    if name in ADVERSARIES:
        return ADVERSARIES[name].label
    adversary = name.removeprefix(f"{RANDOM}+")
    return CONTROLS.get(name, name) if adversary == name else f"{CONTROLS[RANDOM]}, {victim_label(adversary)}"


def adversary_text(name: str) -> str:
    """What an adversary knows and does; nothing for one that is not registered."""
    if name not in ADVERSARIES:
        return ""
    holds, does = ADVERSARIES[name].holds, ADVERSARIES[name].does
    return f"Knows: {holds}. {does[:1].upper()}{does[1:]}."


def share(value: float, digits: int = 0) -> str:
    """A share in percent, never rounded to all or nothing."""
    percent = 100 * value
    if percent < 0:
        return f"-{share(-value, digits)}"
    if 0 < percent < 0.05:
        return "<0.1%"
    if 99.95 <= percent < 100:
        return ">99.9%"
    near_end = 0 < percent < 0.5 or 99.5 < percent < 100
    return f"{percent:.{max(digits, int(near_end))}f}%"


def with_spread(value: Spread, digits: int = 3, percent: bool = False) -> str:
    """A mean with its standard deviation where there are several seeds."""
    scale, unit = (100, "%") if percent else (1, "")
    mean = f"{value['mean'] * scale:.{digits}f}"
    return mean + (f"\u00a0±\u00a0{value['std'] * scale:.{digits}f}" if len(value["seeds"]) > 1 else "") + unit


def seeds_text(count: int) -> str:
    """How sure the measures are."""
    return "one seed, so the spread is unknown" if count == 1 else f"mean ± standard deviation over {count} seeds"
