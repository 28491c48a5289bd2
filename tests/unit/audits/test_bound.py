"""The bound: by hand, by enumeration, and on data simulated from its prior, which no adversary exceeds."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from attack_evidence import candidates_of
from builders import flat_sessions
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack.adversaries.posterior import InformedPosterior
from ghostpoi.attack.evidence import Evidence, Outside, Rule
from ghostpoi.audits.measures.bound import CrowdVisits, bound, crowds_of, guesses, vulnerability
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.places import SLOTS, slot_of
from ghostpoi.draw.channel import channel_of

SETS = candidates_of([1, 2, 3], [1, 2, 3], [1, 2, 3], [4, 5], [4, 5], [])


def respond(sets: Candidates, odds: float) -> Candidates:
    """The sets of randomised response: each venue weighs `odds` as its own candidate."""
    own = sets.poi == np.arange(len(sets.poi))[:, None]
    return replace(sets, weight=np.where(sets.poi > 0, np.where(own, odds, 1.0), 0.0))


def visits(sets: Candidates, venue: list[int], user: list[int] | None = None) -> CrowdVisits:
    who = np.zeros(len(venue), np.int64) if user is None else np.array(user)
    return CrowdVisits(sets, who, np.array(venue, np.int64), np.zeros(len(venue), np.int64))


def test_crowds_are_venues_with_one_set() -> None:
    crowd = crowds_of(SETS)
    assert crowd[1] == crowd[2] == crowd[3] != crowd[4] == crowd[5]
    assert (crowd == crowd[6]).sum() == 1


def test_vulnerability_and_guesses_by_hand() -> None:
    prior = {"published": Outside(np.array([0, 5.0, 3, 2, 1, 3, 1]))}
    found = bound(visits(SETS, [1, 1, 2, 4, 6], [0, 1, 1, 1, 1]), prior)
    assert found == pytest.approx({
        "published_vulnerability": (3 * 0.5 + 0.75 + 1) / 5,
        "published_guesses": (3 * (0.5 + 2 * 0.3 + 3 * 0.2) + 1.25 + 1) / 5,
        "habits_vulnerability": (1 + 1 + 1 + 1) / 5,  # user 1 was once at 1 and once at 2
        "habits_guesses": (1 + 2 * 1.5 + 1 + 1) / 5,
    })  # fmt: skip
    assert bound(visits(SETS, []), prior)["published_vulnerability"] == 0


def test_hours_and_nothing_known() -> None:
    hours = np.ones((SLOTS, 7))
    hours[3, 2] = 9
    at = replace(visits(SETS, [1, 2]), slot=np.array([0, 3]))
    found = bound(at, {"even": Outside(), "hours": Outside(hours=hours)})
    assert found["even_vulnerability"] == pytest.approx(1 / 3)
    assert found["even_guesses"] == pytest.approx(2)
    assert found["hours_vulnerability"] == pytest.approx((1 / 3 + 9 / 11) / 2)


def test_a_medoid_says_as_much_as_a_crowd() -> None:
    medoid = Candidates(np.array([0, 2, 2, 2, 4, 4, 0], np.int32)[:, None], np.ones(7))
    prior = {"published": Outside(np.array([0, 5.0, 3, 2, 1, 3, 1]))}
    one, other = (bound(visits(sets, [1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 1, 0]), prior) for sets in (SETS, medoid))
    assert one == pytest.approx(other)


def test_randomised_response_from_nothing_to_everything() -> None:
    prior = {"p": Outside(np.array([0, 5.0, 3, 2, 1, 3, 1]))}
    none, some, all_ = (bound(visits(respond(SETS, odds), [1, 2]), prior) for odds in (1, 4, 1e9))
    assert none == pytest.approx(bound(visits(SETS, [1, 2]), prior))
    # Behind each released venue: .5 x 4, .3 x 4, .2 x 4 for itself, or .5 for venue 1.
    assert some["p_vulnerability"] == pytest.approx((2 + 1.2 + 0.8) / 6)
    assert all_["p_vulnerability"] == pytest.approx(1)
    assert all_["p_guesses"] == pytest.approx(1)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 1000))
def test_no_order_of_guesses_is_better(members: int, observations: int, seed: int) -> None:
    noise = np.random.default_rng(seed)
    chance, emitted = noise.dirichlet(np.ones(members), 1), noise.dirichlet(np.ones(observations), members)
    right = least = 0.0
    for o in range(observations):
        joint = chance[0] * emitted[:, o]
        right += max(joint)
        least += min(sum(k * joint[m] for k, m in enumerate(order, 1)) for order in permutations(range(members)))
    assert vulnerability(chance, emitted) == pytest.approx([right])
    assert guesses(chance, emitted) == pytest.approx([least])


MEMBERS, CROWDS, USERS, LENGTH = 8, 4, 40, 100
P = MEMBERS * CROWDS
FIRST = np.arange(P) - np.arange(P) % MEMBERS + 1  # the first member of the crowd of venue 1, 2, ...
CROWDED = candidates_of(*[list(range(p, p + MEMBERS)) for p in FIRST.tolist()])


def world(seed: int, strength: float, with_hours: bool) -> tuple[Outside, CrowdVisits]:
    """A prior, and visits drawn from it; habits vary around it, little if `strength` is large."""
    g = np.random.default_rng(seed)
    popular, hours = np.append(0, g.gamma(1, 20, P) + 1), np.ones((SLOTS, P + 1))
    if with_hours:
        hours = np.exp(g.normal(0, 1, (SLOTS, P + 1)))
    user, slot = np.repeat(np.arange(USERS), LENGTH), g.integers(0, SLOTS, USERS * LENGTH)
    base = popular[1:].reshape(CROWDS, MEMBERS)
    base = base / base.sum(axis=1, keepdims=True)
    habits = np.array([[g.dirichlet(strength * crowd) for crowd in base] for _ in range(USERS)])
    crowd = g.integers(0, CROWDS, USERS * LENGTH)
    members = crowd[:, None] * MEMBERS + np.arange(MEMBERS) + 1
    weight = habits[user, crowd] * hours[slot[:, None], members]
    end = np.cumsum(weight, axis=1)
    place = (g.random(len(user))[:, None] * end[:, -1:] >= end).sum(axis=1)
    venue = members[np.arange(len(user)), place]
    return Outside(popular, hours if with_hours else None), CrowdVisits(CROWDED, user, venue, slot)


def a21(prior: Outside, seen: CrowdVisits, leak: float, strength: float, seed: int) -> float:
    """The share of the visits that did not leak whose venue A21 names, if it knows the prior."""
    g = np.random.default_rng(seed)
    time = seen.slot * 4 * 3600
    assert (slot_of(time) == seen.slot).all()
    shown = CROWDED.poi[seen.venue, g.integers(0, MEMBERS, len(seen.venue))]
    released = flat_sessions(shown, [5] * (len(shown) // 5), seen.user[::5], time)
    flags, rule = g.random(len(released)) < leak, Rule(CROWDED, channel_of(CROWDED), True)
    evidence = Evidence.of(released, seen.venue.astype(np.int32), flags, P + 1, rule, outside=prior)
    knows = InformedPosterior(habit=strength, step=0.0)  # the totals of a sample are not those of its prior
    return float((knows.soft(evidence).poi[:, 0] == seen.venue)[~evidence.positions].mean())


def memoryless(prior: Outside, seen: CrowdVisits) -> float:
    assert prior.popularity is not None
    assert prior.hours is not None
    options = CROWDED.poi[seen.venue]
    score = prior.popularity[options] * prior.hours[seen.slot[:, None], options]
    return float((options[np.arange(len(options)), score.argmax(axis=1)] == seen.venue).mean())


MARGIN = 3.0 * float(np.sqrt(0.25 / (USERS * LENGTH)))  # standard errors of a share of all visits


@pytest.mark.parametrize("seed", range(3))
def test_without_habits_nobody_exceeds_the_memoryless_bound_and_a21_comes_close(seed: int) -> None:
    prior, seen = world(seed, 1e6, with_hours=True)
    limit = bound(seen, {"true": prior})["true_vulnerability"]
    assert 0.3 < limit < 0.8
    assert memoryless(prior, seen) == pytest.approx(limit, abs=MARGIN)
    assert limit - MARGIN < a21(prior, seen, 0, 1e6, seed) < limit + MARGIN


@pytest.mark.parametrize("seed", range(3))
def test_nobody_exceeds_the_bound_of_those_who_know_habits_and_a_leak_brings_a21_close(seed: int) -> None:
    prior, seen = world(seed, 2.0, with_hours=False)
    limit = bound(seen, {"true": prior})
    none, some = (a21(prior, seen, leak, 2.0, seed) for leak in (0, 0.6))
    assert none < limit["habits_vulnerability"] + MARGIN
    assert limit["habits_vulnerability"] - 0.05 < some < limit["habits_vulnerability"] + MARGIN
    assert some > limit["true_vulnerability"] + 0.1  # habits are worth knowing here
