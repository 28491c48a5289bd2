"""What a release gives away without a leak and with it, from the hits of an audit's adversaries and controls."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ghostpoi.audits.controls import CLEAN, FLOORS, LEAK_ONLY, LEAK_STAY, uses_leak
from ghostpoi.audits.grid import HITS, Contest
from ghostpoi.audits.measures.gaps import LEVEL
from ghostpoi.audits.request import RELEASE
from ghostpoi.audits.result import Measured
from ghostpoi.audits.verdicts import LEAKS, SEVERITY, Player, best, judge

Place = Contest | str  # where the measures of a player stand: a contest or a floor


class Chosen(NamedTuple):
    """Who is compared, all chosen on validation steps."""

    adversary: Place
    control: Place  # what adversaries with the same knowledge have without the release
    clean: Place

    @property
    def contests(self) -> list[Contest]:
        return [place for place in self if isinstance(place, Contest)]


def given_away(
    whole: Measured, regions: Mapping[int, Measured], further: Sequence[Measured] = ()
) -> dict[str, dict[str, Any]]:
    """Return what the release gives away by what adversaries hold: no leak, or one.

    Of several regions, the worst one counts. All their intervals hold together: each has the level that Bonferroni's
    correction leaves it. `further` windows of the same sessions add test steps.
    """
    found = judge_each([whole, *further])
    if len(regions) < 2:
        return found
    level = 1 - (1 - LEVEL) / len(regions)
    each = {number: judge_each([one], level) for number, one in regions.items()}
    for leak, pool in found.items():
        number, judged = max(((n, one[leak]) for n, one in each.items()), key=lambda item: _badness(item[1]))
        pool["pool_verdict"], pool["worst_region"] = pool["verdict"], {"region": number} | judged
        pool["verdict"] = max(pool["verdict"], judged["verdict"], key=SEVERITY.__getitem__)
    return found


def _badness(judged: Mapping[str, Any]) -> tuple[int, float]:
    return SEVERITY[judged["verdict"]], judged["mean"]


def judge_each(windows: Sequence[Measured], level: float = LEVEL) -> dict[str, dict[str, Any]]:
    """Judge by what adversaries hold. The first window chooses who is compared, all are tested."""
    users, found = np.concatenate([one.step_users for one in windows]), {}
    for leak, places in chosen(windows[0]).items():
        adversary, control, clean = (_player(windows, place) for place in places)
        found[leak] = judge(adversary, control, clean, users, level)
    return found


def chosen(m: Measured) -> dict[str, Chosen]:
    """Choose the strongest adversary, the best control and the best victim of clean data."""
    alone = _contests(m, CLEAN, lambda name: name in (LEAK_ONLY, LEAK_STAY))
    adversaries: dict[str, list[Place]] = {
        "no_leak": _contests(m, RELEASE, lambda name: not uses_leak(name)),
        "with_leak": _contests(m, RELEASE, lambda name: True),
    }
    controls: dict[str, list[Place]] = {"no_leak": [*FLOORS], "with_leak": [*alone, *FLOORS]}
    clean = _contests(m, CLEAN, lambda name: name == CLEAN)
    return {leak: Chosen(*(_best(m, some) for some in (adversaries[leak], controls[leak], clean))) for leak in LEAKS}


def _contests(m: Measured, release: str, asked: Callable[[str], bool]) -> list[Place]:
    """Every adversary or control with each victim it faces."""
    return [contest for contest in m.contests if contest.release == release and asked(contest.adversary)]


def _best(m: Measured, places: Sequence[Place]) -> Place:
    return places[best([_measures(m, place)["validation"] for place in places])]


def _measures(m: Measured, place: Place) -> Mapping[str, Any]:
    return m.contests[place] if isinstance(place, Contest) else m.floors[place]


def _player(windows: Sequence[Measured], place: Place) -> Player:
    name = place.adversary if isinstance(place, Contest) else place
    hits = [
        np.stack([np.unpackbits(bits, count=one.counts.test) for bits in _measures(one, place)[HITS]])
        for one in windows
    ]
    return Player(name, np.concatenate(hits, axis=1).astype(bool))
