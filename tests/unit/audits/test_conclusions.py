"""What follows from the figures of an audit: the verdict, over which adversaries, the worst cases and distances."""

from typing import Any

import pytest

from ghostpoi.audits.controls import default_adversaries
from ghostpoi.audits.verdicts import CANNOT_TELL, LITTLE, MUCH, NOTHING, conclude

DEFAULT, ALL = default_adversaries(), default_adversaries(everybody=True)


def measured(mean: float, near: float | None = None) -> dict[str, Any]:
    """An accuracy over two seeds and, if given, the share of guesses within 1 km, with a count that is no share."""
    accuracy = {"acc@1": {"seeds": [mean - 0.01, mean + 0.01]}}
    return accuracy if near is None else accuracy | {"distance": {"1km": {"mean": near}, "steps": 7}}


def audit(
    ran: tuple[str, ...] = DEFAULT, no_leak: str = NOTHING, with_leak: str = NOTHING, **more: Any
) -> dict[str, Any]:
    floors = {"popularity": measured(0.03, 0.1), "stay": measured(0.07, 0.3), "random": measured(0.9, 0.9)}
    leaked = {"leak-only": measured(0.12, 0.2), "leak-stay": measured(0.1), "leak-mixed": measured(0.11)}
    return {
        "clean": measured(0.2, 0.6), "adversaries": {name: measured(0.05) for name in ran}, "controls": floors | leaked,
        "gives_away": {"no_leak": {"verdict": no_leak}, "with_leak": {"verdict": with_leak}},
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("ran", "over", "missing"),
    [
        (DEFAULT, "default", ()),
        (DEFAULT[::-1], "default", ()),
        (ALL, "all", ()),
        ((*ALL, "of a plug-in"), "all", ()),
        (ALL[:-1], "default", ()),
        (DEFAULT[1:], "part", DEFAULT[:1]),
        (("none",), "part", DEFAULT[1:]),
    ],
)
def test_an_audit_says_how_many_adversaries_ran(ran: tuple[str, ...], over: str, missing: tuple[str, ...]) -> None:
    found = conclude(audit(ran))
    assert (found["over"], found["not_run"]) == (over, list(missing))
    assert found["verdict"] == (CANNOT_TELL if missing else NOTHING)


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"kept_columns": ["mood"]}, ["kept-columns"]),
        ({"kept_columns": []}, []),
        ({"pseudonyms": "week"}, ["relink", "relink-distilled"]),
        ({"pseudonyms": "keep"}, []),
    ],
)
def test_kept_columns_and_pseudonyms_ask_for_more_adversaries(more: dict[str, Any], missing: list[str]) -> None:
    assert conclude(audit(DEFAULT, **more))["not_run"] == missing
    assert conclude(audit(ALL, **more))["not_run"] == missing
    assert conclude(audit((*ALL, *missing), **more))["over"] == "all"


@pytest.mark.parametrize(
    ("words", "whole", "part"),
    [
        ((NOTHING, NOTHING), NOTHING, CANNOT_TELL),
        ((NOTHING, CANNOT_TELL), CANNOT_TELL, CANNOT_TELL),
        ((LITTLE, CANNOT_TELL), LITTLE, LITTLE),
        ((NOTHING, MUCH), MUCH, MUCH),
    ],
)
def test_the_worse_word_counts_and_too_few_adversaries_cannot_tell(
    words: tuple[str, str], whole: str, part: str
) -> None:
    assert [conclude(audit(ran, *words))["verdict"] for ran in (DEFAULT, DEFAULT[1:])] == [whole, part]


def test_the_strongest_may_be_what_needs_no_release() -> None:
    """Floors count without the leak, leaked sessions with it; random releases are no adversary."""
    found = conclude(audit())
    assert found["strongest"] == "leak-only"
    assert found["worst_case"] == {
        "no_leak": {"name": "stay", "acc@1": pytest.approx(0.07)},
        "with_leak": {"name": "leak-only", "acc@1": pytest.approx(0.12)},
    }
    mixed = audit()
    mixed["controls"]["leak-mixed"] = measured(0.5)
    mixed["adversaries"]["frequency"] = measured(0.4)  # needs the leak
    mixed["adversaries"]["habits"] = measured(0.3)
    found = conclude(mixed)
    assert (found["strongest"], found["worst_case"]["no_leak"]["name"]) == ("leak-mixed", "habits")


def test_gaps_are_those_of_the_seeds() -> None:
    found = conclude(audit())["gaps"]
    assert found["prot"]["seeds"] == pytest.approx([0.15, 0.15])
    assert found["worst_all"]["mean"] == pytest.approx(0.2 - 0.12)  # leaked sessions alone do better


def test_distances_are_the_highest_of_those_who_guess_places() -> None:
    given = audit()
    given["adversaries"]["habits"] = measured(0.0, 0.25)
    given["adversaries"]["frequency"] = measured(0.0, 0.5)
    expected = {
        "clean": 0.6,
        "no_leak": {"name": "stay", "share": 0.3},
        "with_leak": {"name": "frequency", "share": 0.5},
    }
    assert conclude(given)["distance"] == {"1km": expected}
    given["adversaries"]["habits"] = measured(0.0, 0.35)
    assert conclude(given)["distance"]["1km"]["no_leak"] == {"name": "habits", "share": 0.35}
    assert conclude(given | {"clean": measured(0.2)})["distance"] == {}
