"""Who is compared, over which steps, and which region counts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ghostpoi.audits.controls import default_adversaries, uses_leak
from ghostpoi.audits.grid import HITS, Contest
from ghostpoi.audits.request import RELEASE
from ghostpoi.audits.result import Measured, StepCounts, chosen, given_away
from ghostpoi.audits.verdicts import CANNOT_TELL, LITTLE, MUCH, NOTHING

STEPS = 8000


def test_the_exact_posterior_runs_with_and_without_the_leak() -> None:
    ran = default_adversaries()
    assert [uses_leak(name) for name in ran if name.startswith("posterior")] == [True, False]
    everybody = [name for name in default_adversaries(everybody=True) if name.startswith("posterior")]
    assert sorted(name for name in everybody if uses_leak(name)) == [
        "posterior",
        "posterior-informed",
        "posterior-learned",
    ]
    assert [f"{name}-no-leak" for name in everybody if uses_leak(name)] == [n for n in everybody if not uses_leak(n)]


def player(share: float, validation: float, seed: int = 0, steps: int = STEPS) -> dict[str, Any]:
    """What an audit measures of a predictor: at more or fewer steps, but the same, as others of the seed."""
    hits = np.random.default_rng(seed).random(steps) < share
    return {HITS: [np.packbits(hits)] * 2, "validation": [validation, validation]}


def measured(release: dict[str, dict[str, Any]], steps: int = STEPS) -> Measured:
    """Controls, clean data, and these contests on the release, by adversary and victim."""
    floors = {"popularity": player(0.02, 0.02, 0, steps), "stay": player(0.07, 0.07, 0, steps)}
    contests = {
        Contest("clean", "clean", 0.05, "counting"): player(0.24, 0.24, 0, steps),
        Contest("clean", "clean", 0.05, "markov"): player(0.18, 0.18, 0, steps),
        Contest("clean", "leak-only", 0.05, "counting"): player(0.12, 0.12, 0, steps),
        Contest("clean", "leak-stay", 0.05, "markov"): player(0.13, 0.11, 0, steps),  # luckier on test steps
        Contest("random", "none", 0.05, "counting"): player(0.5, 0.5, 0, steps),  # another release
    } | {
        Contest(RELEASE, *words.split("/")[:1], 0.05, words.split("/")[1]): found for words, found in release.items()
    }  # fmt: skip
    counts = StepCounts(*[steps] * len(StepCounts._fields))
    unused: Any = None
    return Measured(contests, floors, counts, np.arange(steps) % 400, unused, unused, unused, 0)


def test_everybody_is_chosen_on_validation_steps_among_those_with_the_same_knowledge() -> None:
    found = chosen(
        measured(
            {
                "none/markov": player(0.05, 0.05), "habits/counting": player(0.06, 0.08),
                "habits/markov": player(0.2, 0.07), "frequency/counting": player(0.14, 0.14),
            }
        )
    )  # fmt: skip
    alone = [
        (one.adversary.adversary, one.adversary.victim) for one in found.values() if isinstance(one.adversary, Contest)
    ]
    assert alone == [("habits", "counting"), ("frequency", "counting")]  # frequency needs a leak
    assert found["no_leak"].control == "stay"
    assert found["with_leak"].control == Contest("clean", "leak-only", 0.05, "counting")
    assert {one.clean for one in found.values()} == {Contest("clean", "clean", 0.05, "counting")}
    assert len(found["no_leak"].contests) == 2  # the floor is no contest


def test_words_and_signs_by_what_adversaries_hold() -> None:
    found = given_away(measured({"none/counting": player(0.05, 0.05), "frequency/counting": player(0.14, 0.14)}), {})
    assert (found["no_leak"]["verdict"], found["with_leak"]["verdict"]) == (NOTHING, LITTLE)
    assert found["no_leak"]["high"] < 0 < found["with_leak"]["low"]
    assert found["with_leak"]["control"] == "leak-only"


def test_further_windows_add_steps_of_those_who_were_chosen() -> None:
    whole, earlier = (
        measured({"none/counting": player(0.07, 0.1, 1, 300), "habits/counting": player(0.02, later, 0, 300)}, 300)
        for later in (0.02, 0.5)  # the choice of the first window stays
    )
    one, three = given_away(whole, {}), given_away(whole, {}, [earlier, earlier])
    assert (one["no_leak"]["test_positions"], three["no_leak"]["test_positions"]) == (300, 900)
    assert one["no_leak"]["verdict"] == CANNOT_TELL
    assert three["no_leak"]["adversary"] == "none"
    assert three["no_leak"]["mean"] == pytest.approx(one["no_leak"]["mean"], abs=0.02)


def test_the_worst_region_counts_and_the_pool_is_stated() -> None:
    quiet = measured({"none/counting": player(0.05, 0.05)})
    loud = measured({"none/counting": player(0.2, 0.2)})
    pool = replace(quiet, step_users=quiet.step_users)
    found = given_away(pool, {3: quiet, 8: loud, 9: quiet})["no_leak"]
    assert (found["verdict"], found["pool_verdict"]) == (MUCH, NOTHING)
    assert (found["worst_region"]["region"], found["worst_region"]["verdict"]) == (8, MUCH)
    even = given_away(pool, {3: quiet, 9: quiet})["no_leak"]
    assert (even["verdict"], even["pool_verdict"]) == (NOTHING, NOTHING)


def test_intervals_of_many_regions_are_wider() -> None:
    """By Bonferroni's correction, so that the worst of many is not one by chance."""
    one = measured({"none/counting": player(0.08, 0.08, 5)})
    two, many = (given_away(one, dict.fromkeys(range(n), one))["no_leak"]["worst_region"] for n in (2, 12))
    assert many["low"] < two["low"]
    assert two["high"] < many["high"]
