"""Limits that a publisher sets beforehand, in `[limits]` of the settings file, and whether a release keeps to them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ghostpoi.audits.controls import DISTANCE, FLOORS, uses_leak
from ghostpoi.audits.measures.gaps import SAMPLING_ERRORS
from ghostpoi.audits.measures.paired import RULE_OF_THREE
from ghostpoi.settings import Section, setting

WITHIN, UNSURE, BEYOND = "within your limits", "cannot tell yet", "beyond your limits"  # from best to worst
FAR_SHARE = "far_moves_within_1km"  # what an audit calls it
FAR_WITHIN_1KM = "far_within_1km"
PERSONS = "persons"
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
        NO_LIMIT,
        "share of people who may be singled out by four check-ins of known place and part of the day",
        0,
        1,
    )

    @property
    def given(self) -> dict[str, float]:
        """The limits that are set, by what an audit measures."""
        every = {
            "no_leak": self.accuracy_no_leak, "with_leak": self.accuracy_with_leak, FAR_WITHIN_1KM: self.far_within_1km,
            PERSONS: self.persons,
        }  # fmt: skip
        return {name: limit for name, limit in every.items() if limit != NO_LIMIT}


def decide(limits: Mapping[str, float], audit: Mapping[str, Any]) -> dict[str, Any] | None:
    """Compare what a release gives away with each limit; None if there is no limit.

    Where regions were audited, all of them and their worst one must keep to it.
    """
    each = {name: {"limit": limit} | _within(limit, _tested(name, audit)) for name, limit in limits.items()}
    if not each:
        return None
    order = (WITHIN, UNSURE, BEYOND)
    return {DECISION: max((one["verdict"] for one in each.values()), key=order.index)} | each


def _tested(name: str, audit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The intervals that must keep to a limit."""
    if name == FAR_WITHIN_1KM:
        return [_far(audit)]
    if name == PERSONS:
        found = ((audit[PERSONS] or {}).get("unicity", {}).get("part_place", {}).get("4") or {}).get("release")
        return [found or {"low": 0.0, "high": NO_LIMIT}]  # of too few people, nothing is measured
    found = audit["gives_away"][name]
    return [found, *([found["worst_region"]] if "worst_region" in found else [])]


def _far(audit: Mapping[str, Any]) -> dict[str, float]:
    """The highest share of far moves that is guessed within 1 km without a leak, with its sampling error."""
    known = [one for name, one in audit["adversaries"].items() if not uses_leak(name)]
    known += [audit["controls"][name] for name in FLOORS]
    near = [one[DISTANCE] for one in known]
    top = max(near, key=lambda one: float(one[FAR_SHARE]["mean"]))
    share, steps = float(top[FAR_SHARE]["mean"]), max(1, int(top["far_moves"]))
    half = SAMPLING_ERRORS * math.sqrt(share * (1 - share) / steps) + RULE_OF_THREE / steps
    return {"mean": share, "low": share - half, "high": share + half}


def limits_of(decided: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the limits of a decision."""
    return {name: one["limit"] for name, one in (decided or {}).items() if name != DECISION}


def _within(limit: float, tested: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if any(one["low"] > limit for one in tested):
        return {"verdict": BEYOND}
    return {"verdict": WITHIN if all(one["high"] <= limit for one in tested) else UNSURE}
