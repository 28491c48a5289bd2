"""Limits that a publisher sets: within, beyond or undecided, and the worst of them."""

from dataclasses import fields
from typing import Any

import pytest

from ghostpoi.audits.verdicts import BEYOND, UNSURE, WITHIN, LimitSettings, decide, limits_of
from ghostpoi.errors import InputError


def audit(low: float, high: float, far: float = 0.2, steps: int = 5000) -> dict[str, Any]:
    given = {"mean": (low + high) / 2, "low": low, "high": high}
    near = {"distance": {"far_moves_within_1km": {"mean": far}, "far_moves": steps}}
    nothing = {"distance": {"far_moves_within_1km": {"mean": 0.0}, "far_moves": steps}}
    leaked = {"distance": {"far_moves_within_1km": {"mean": 0.9}, "far_moves": steps}}
    return {
        "gives_away": {"no_leak": given, "with_leak": given},
        "adversaries": {"none": near, "frequency": leaked},
        "controls": {"popularity": nothing, "stay": nothing},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "verdict"), [(0.05, WITHIN), (0.04, WITHIN), (0.03, UNSURE), (0.02, UNSURE), (0.01, BEYOND)]
)
def test_a_limit_is_compared_with_the_interval(limit: float, verdict: str) -> None:
    found = decide({"no_leak": limit}, audit(0.02, 0.04))
    assert found == {"decision": verdict, "no_leak": {"limit": limit, "verdict": verdict}}


@pytest.mark.parametrize(("limit", "verdict"), [(0.25, WITHIN), (0.205, UNSURE), (0.195, UNSURE), (0.15, BEYOND)])
def test_far_moves_are_those_of_adversaries_without_a_leak(limit: float, verdict: str) -> None:
    found = decide({"far_within_1km": limit}, audit(0, 0))
    assert found is not None
    assert found["far_within_1km"]["verdict"] == verdict


@pytest.mark.parametrize(("limit", "verdict"), [(0.35, BEYOND), (0.4, UNSURE), (0.5, UNSURE), (0.6, WITHIN)])
@pytest.mark.parametrize("name", ["persons", "linked"])
def test_people_are_compared_at_the_figure_that_the_limit_names(name: str, limit: float, verdict: str) -> None:
    given, other = {"low": 0.4, "high": 0.6}, {"low": 0.0, "high": 0.1}
    persons = {
        "unicity": {"part_place": {"4": {"release": given, "clean": other}, "2": {"release": other}}},
        "next_release": {"ids": {"release": given, "clean": other}, "places": {"release": other}},
    }
    found = decide({name: limit}, {"persons": persons})
    assert found is not None
    assert found[name] == {"limit": limit, "verdict": verdict}


@pytest.mark.parametrize("persons", [None, {}, {"unicity": None, "next_release": {"ids": {"release": None}}}])
def test_with_too_few_people_a_limit_is_undecided(persons: dict[str, Any] | None) -> None:
    for name in ("persons", "linked"):
        found = [decide({name: limit}, {"persons": persons}) for limit in (0.0, 0.999, 1.0)]
        assert [one and one["decision"] for one in found] == [UNSURE, UNSURE, WITHIN]


@pytest.mark.parametrize("name", [field.name for field in fields(LimitSettings)])
def test_a_limit_is_a_share(name: str) -> None:
    assert LimitSettings(**{name: 0.5}).given == {name.removeprefix("accuracy_"): 0.5}
    assert LimitSettings(**{name: 1.0}).given == {}  # no limit
    for value in (-0.01, 1.01):
        with pytest.raises(InputError, match=name):
            LimitSettings(**{name: value})


def test_the_worst_limit_and_the_worst_region_decide() -> None:
    found = audit(0.0, 0.01)
    found["gives_away"]["with_leak"] = found["gives_away"]["with_leak"] | {"worst_region": {"low": 0.2, "high": 0.4}}
    limits = {"no_leak": 0.02, "with_leak": 0.05}
    decided = decide(limits, found)
    assert decided is not None
    assert (decided["decision"], decided["no_leak"]["verdict"], decided["with_leak"]["verdict"]) == (
        BEYOND,
        WITHIN,
        BEYOND,
    )
    assert limits_of(decided) == limits


def test_without_limits_there_is_no_decision() -> None:
    assert decide(LimitSettings().given, audit(0.5, 0.6)) is None
    assert limits_of(None) == {}
    assert LimitSettings(accuracy_no_leak=0.0).given == {"no_leak": 0.0}
