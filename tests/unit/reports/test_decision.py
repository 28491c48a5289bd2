"""What the first screen says: within the limits or not, three numbers with their controls, and the next command."""

from dataclasses import replace
from typing import Any

import pytest
import sample_releases
import small_city

from ghostpoi.audits.verdicts import BEYOND, CANNOT_TELL, LITTLE, NOTHING, UNSURE, WITHIN
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
    ("verdict", "headline", "tone", "command"),
    [
        (WITHIN, "Within your limits", "nothing", "ghostpoi verify release --against FILE"),
        (BEYOND, "Beyond your limits", "much", "ghostpoi choose FILE"),
        (UNSURE, "Cannot tell yet", "", "ghostpoi protect LARGER_FILE -o release-larger"),
    ],
)
def test_limits_decide(release: ReleaseView, verdict: str, headline: str, tone: str, command: str) -> None:
    found = decided(release, limits=limits(verdict))
    assert (found.headline, found.tone, found.without_limits) == (headline, tone, False)
    assert found.command.startswith(command)
    assert found.reasons == [
        f"It adds -3.0 right guesses in 100 (-4.0 to -2.0) for somebody who holds it; you allow 2.0: {verdict}."
    ]


def test_without_limits_it_says_what_is_given_away_to_whom(release: ReleaseView) -> None:
    found = decided(release, (NOTHING, LITTLE))
    assert (found.headline, found.tone, found.without_limits) == ("Gives away a little", "little", True)
    assert found.reasons == [
        "To somebody who holds the release alone: nothing measurable. To somebody who also holds 5% of the real data: "
        "a little."
    ]
    assert "--config ghostpoi.toml" in found.command


def test_what_cannot_be_told_says_what_would_tell(release: ReleaseView) -> None:
    found = decided(release, (CANNOT_TELL, NOTHING))
    assert found.headline == "Cannot tell yet"
    assert found.reasons[-1].startswith("More test steps would not help")
    part = decided(release, not_run=["habits"], over="part")
    assert part.headline == "Cannot tell yet"
    assert part.command == "ghostpoi audit FILE release --report"


def test_a_safe_release_that_keeps_little_says_so(release: ReleaseView) -> None:
    utility = sample_releases.audit()["utility"] | {"flows": {"common_part": 0.1, "common_part_shuffled": 0.08}}
    found = decided(release, limits=limits(WITHIN), utility=utility)
    assert found.headline == "Within your limits, but of little use"
    assert found.command == "ghostpoi choose FILE --min-flows 0.5"
    lost = found.answers[-1]
    assert (lost.big, lost.controls[0]) == ("90%", ("at random", pytest.approx(0.92)))


def test_a_release_that_loses_what_random_places_lose_is_noise(release: ReleaseView) -> None:
    utility = sample_releases.audit()["utility"] | {"flows": {"common_part": 0.61, "common_part_shuffled": 0.6}}
    assert decided(release, utility=utility).headline == "Gives away nothing measurable, but of little use"
    better = utility | {"flows": {"common_part": 0.84, "common_part_shuffled": 0.64}}
    assert decided(release, utility=better).headline == "Gives away nothing measurable"


def test_three_numbers_stand_beside_their_controls(release: ReleaseView) -> None:
    person = {"release": {"mean": 0.31, "low": 0.3, "high": 0.32}, "control": {"mean": 0.02, "low": 0.01, "high": 0.03},
              "clean": {"mean": 0.9, "low": 0.8, "high": 1.0}}  # fmt: skip
    found = decided(release, persons={"unicity": {"part_place": {"4": person}}})
    learned, people, lost = found.answers
    assert learned.controls == (("without it", pytest.approx(0.061)), ("real data", pytest.approx(0.201)))
    assert (people.title, people.big) == ("Whether a person can be found", "31%")
    assert people.controls == (("by chance", 0.02), ("real data", 0.9))
    assert people.sentence.endswith("By chance it is 2%. In the real data it is 90%.")
    assert found.headline == "Gives away nothing measurable, but people can be found"
    assert "--for public" in found.command
    assert lost.value == pytest.approx(0.4)
    assert decided(release).answers[1].title == "Whether visits can be read back"


def test_without_an_audit_nothing_is_decided(release: ReleaseView) -> None:
    found = decision(replace(release, audit=None))
    assert (found.headline, found.answers) == ("Not audited yet", [])
