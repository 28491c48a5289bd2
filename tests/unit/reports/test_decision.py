"""What the first screen says: within the limits or not, three numbers with their controls, and the next command."""

from dataclasses import replace
from typing import Any

import pytest
import sample_releases
import small_city

from ghostpoi.audits.verdicts import BEYOND, CANNOT_TELL, LITTLE, MUCH, NOTHING, UNSURE, WITHIN
from ghostpoi.reports.audit_view import AuditView
from ghostpoi.reports.decision import Decision, decision
from ghostpoi.reports.release_view import ReleaseView, open_release


@pytest.fixture(scope="module")
def release() -> ReleaseView:
    return open_release(small_city.release("random").folder)


def decided(release: ReleaseView, words: tuple[str, str] = (NOTHING, NOTHING), **more: Any) -> Decision:
    found = sample_releases.audit(fails=False, **more)
    for leak, word in zip(("no_leak", "with_leak"), words, strict=True):
        found["gives_away"][leak]["verdict"] = word
    return decision(replace(release, audit=AuditView.of(found)))


def limits(verdict: str) -> dict[str, Any]:
    return {"decision": verdict, "no_leak": {"limit": 0.02, "verdict": verdict}}


@pytest.mark.parametrize(
    ("verdict", "headline", "tone", "action", "command", "badge"),
    [
        (WITHIN, "Within your limits", "nothing", "You can publish it.", "ghostpoi verify release --against FILE",
         ("within limit", "nothing")),
        (BEYOND, "Beyond your limits", "much", "Do not publish it: it gives away too much about where people go next.",
         "ghostpoi choose FILE", ("over limit", "much")),
        (UNSURE, "Cannot tell yet", "", "Do not publish it yet: the file is too small to measure what it gives away.",
         "ghostpoi protect LARGER_FILE -o release-larger", ("cannot tell", "little")),
    ],
)  # fmt: skip
def test_limits_decide(
    release: ReleaseView, verdict: str, headline: str, tone: str, action: str, command: str, badge: tuple[str, str]
) -> None:
    found = decided(release, limits=limits(verdict))
    assert (found.headline, found.tone, found.action, found.without_limits) == (headline, tone, action, False)
    assert found.command.startswith(command)
    learned = found.answers[0]
    assert (learned.verdict, learned.tone) == badge
    assert learned.big == ("≤ 0%" if verdict == UNSURE else "0%")  # never a negative number
    assert learned.controls == (("you allow", 0.02), ("real data", pytest.approx(0.16)))
    assert learned.sentence == (
        "The release does not help anybody to guess next visits. You allow 2%. With the real data it is 16%."
    )


def test_it_names_each_limit_that_is_exceeded(release: ReleaseView) -> None:
    both = limits(BEYOND) | {"linked": {"limit": 0.5, "verdict": BEYOND}}
    found = decided(release, limits=both | {"no_leak": {"limit": 0.02, "verdict": WITHIN}})
    assert found.action == "Do not publish it: people can be linked from release to release."
    found = decided(release, limits=both | {"far_within_1km": {"limit": 0.1, "verdict": BEYOND}})
    assert found.action == (
        "Do not publish it: it gives away too much about where people go next, and people can be linked from release "
        "to release."
    )


def test_without_limits_it_says_what_is_given_away_to_whom(release: ReleaseView) -> None:
    found = decided(release, (NOTHING, LITTLE))
    assert (found.headline, found.tone, found.without_limits) == ("Gives away a little", "little", True)
    assert found.action == "You have set no limits, so you must judge whether that is too much."
    assert "help somebody who holds 5% of the real data" in found.answers[0].sentence
    assert found.answers[0].verdict == ""
    assert "--config ghostpoi.toml" in found.command


def test_what_cannot_be_told_says_what_would_tell(release: ReleaseView) -> None:
    found = decided(release, (CANNOT_TELL, NOTHING))
    assert (found.headline, found.answers[0].big[:2]) == ("Cannot tell yet", "≤ ")
    audit = sample_releases.audit(fails=False)
    audit["gives_away"]["no_leak"] |= {"verdict": CANNOT_TELL, "mean": -0.01, "high": 0.04}
    learned = decision(replace(release, audit=AuditView.of(audit))).answers[0]
    assert (learned.big, learned.sentence[:23]) == ("≤ 4%", "more of the next visits")
    assert found.next.startswith("More test steps would not help")
    part = decided(release, not_run=["habits"], over="part")
    assert (part.headline, part.action) == ("Cannot tell yet", "Do not publish it yet: not every attack was run.")
    assert part.command == "ghostpoi audit FILE release --report"


def test_a_safe_release_that_keeps_little_says_so(release: ReleaseView) -> None:
    utility = sample_releases.audit()["utility"] | {"flows": {"common_part": 0.1, "common_part_shuffled": 0.08}}
    found = decided(release, limits=limits(WITHIN), utility=utility)
    assert (found.headline, found.tone) == ("Within your limits", "little")
    assert found.action == "You may publish it, but it is of little use: most of it is noise."
    assert found.command == "ghostpoi choose FILE --min-flows 0.4"
    lost = found.answers[-1]
    assert (lost.big, lost.controls[0], lost.verdict) == ("90%", ("random places", pytest.approx(0.92)), "mostly noise")
    worse = decided(release, limits=limits(BEYOND), utility=utility)
    assert (worse.headline, worse.command) == ("Beyond your limits", "ghostpoi choose FILE")


def test_a_release_that_loses_what_random_places_lose_is_noise(release: ReleaseView) -> None:
    utility = sample_releases.audit()["utility"] | {"flows": {"common_part": 0.61, "common_part_shuffled": 0.6}}
    noise = decided(release, utility=utility)
    assert (noise.headline, noise.tone) == ("Gives away nothing measurable", "little")
    assert noise.action == "It is of little use: most of it is noise."  # without limits, nobody said "may publish"
    for common_part, shuffled, text in (
        (0.84, 0.64, "it would be 36%."),
        (0.86, 0.85, "15%: the city is too small to tell."),
    ):
        better = utility | {"flows": {"common_part": common_part, "common_part_shuffled": shuffled}}
        found = decided(release, utility=better)
        assert (found.tone, found.answers[-1].verdict) == ("nothing", "")
        assert found.answers[-1].sentence.endswith(text)


def test_three_numbers_stand_beside_their_controls(release: ReleaseView) -> None:
    person = {"release": {"mean": 0.31, "low": 0.3, "high": 0.32}, "control": {"mean": 0.02, "low": 0.01, "high": 0.03},
              "clean": {"mean": 0.9, "low": 0.8, "high": 1.0}}  # fmt: skip
    persons = {"unicity": {"part_place": {"4": person}}}
    found = decided(release, persons=persons)
    learned, people, lost = found.answers
    assert learned.controls == (("real data", pytest.approx(0.14)),)
    assert (people.title, people.big) == ("Whether a person can be found", "31%")
    assert people.controls == (("by chance", 0.02), ("real data", 0.9))
    assert people.sentence.endswith("By chance it is 2%. In the real data it is 90%.")
    assert (found.headline, found.tone) == ("People can be found", "much")
    safe = "Do not publish it yet. About next visits, it gives away nothing measurable"
    assert found.action == f"{safe}."
    assert "ghostpoi audit FILE release-2" in found.command.splitlines()[1]
    assert "--for public" in found.command
    noise = decided(release, persons=persons, utility={"flows": {"common_part": 0.1, "common_part_shuffled": 0.08}})
    assert noise.action == f"{safe}, and most of it is noise."
    within = decided(release, persons=persons, limits=limits(WITHIN))
    assert (within.headline, within.tone) == ("Within your limits", "little")
    assert within.action == "Do not publish it yet: you set no limit on people, and they can be found in it."
    much = decided(release, (MUCH, MUCH), persons=persons)
    assert much.action.endswith("too much about where people go next, and people can be found in it.")
    assert (lost.title, lost.value) == ("What it costs", pytest.approx(0.4))
    assert decided(release).answers[1].title == "Whether visits can be read back"
    over = decided(release, persons=persons, limits={"decision": BEYOND, "persons": {"limit": 0.2, "verdict": BEYOND}})
    assert over.action == "Do not publish it: people can be found in it."
    assert over.answers[1].controls == (("you allow", 0.2), ("real data", 0.9))
    assert "You allow 20%." in over.answers[1].sentence


def test_without_an_audit_nothing_is_decided(release: ReleaseView) -> None:
    found = decision(replace(release, audit=None))
    assert (found.headline, found.answers) == ("Not audited yet", [])
    assert found.action.startswith("Do not publish it yet")
