"""What a user would pick instead of GHOST or crowds: each draws as its definition says, and adversaries know how."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from scipy.stats import chi2
from small_city import prepared, settings, task_of

from ghostpoi.attack.evidence import rule_of
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.places import SLOTS, Places, of_sessions
from ghostpoi.publish.methods import METHODS, Method
from ghostpoi.publish.methods.crowd import Crowd
from ghostpoi.publish.methods.k_anonymous import KAnonymous, medoids
from ghostpoi.publish.methods.randomised_response import RandomisedResponse
from ghostpoi.publish.rounds import Task, publish
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings

CPU = torch.device("cpu")
RULE = CandidateSettings()
NO_LIMIT = "speed.limit_kmh=1e9"


def places_at(*metres: float) -> Places:
    """Venues of one category on the equator, this far east of the meridian."""
    lon = np.append(np.nan, np.array(metres) / 111_195)
    visits = np.append(0, np.full(len(metres), 9))
    category = np.append(-1, np.zeros(len(metres))).astype(np.int32)
    return Places(0 * lon, lon, category, visits, np.ones((1, SLOTS), np.int64), np.zeros(1, np.int32))


@cache
def task(method: Method, *more: str) -> Task:
    data = prepared().data
    sets = method.candidate_sets(of_sessions(data.all, data.vocabulary), RULE)
    return replace(task_of(replace(settings("ghost", *more), method=method)), candidates=sets)


def pooled_chi2(clean: Ints, released: Ints, rule: Candidates, method: Method) -> tuple[float, float]:
    """How far the counts of pairs are from the channel, and the limit that chance exceeds once in 1,000."""
    channel = rule_of(method, rule).channel
    entry = channel.find(clean, released)
    assert (entry >= 0).all()
    expected = np.bincount(clean, minlength=len(rule.poi))[channel.clean] * channel.probability
    real = (expected > 5) & (channel.probability < 1)
    found = np.bincount(entry, minlength=len(channel))
    distance = float(((found - expected)[real] ** 2 / expected[real]).sum())
    return distance, float(chi2.ppf(0.999, real.sum()))


def test_the_centre_of_a_crowd_is_its_medoid() -> None:
    places = places_at(0, 100, 250, 300, 900)
    crowds = np.array([[0] * 5, *[[1, 2, 3, 4, 5]] * 5], np.int32)
    assert medoids(crowds, places.lat, places.lon).tolist() == [0, *[3] * 5]  # sums: 1550, 1250, 1100, 1150, 2950
    sets = KAnonymous(size=3, reach_km=1).candidate_sets(places_at(0, 100, 200, 5000, 9000), RULE)
    assert sets.poi[:, 0].tolist() == [0, 2, 2, 2, 0, 0]  # the last two are alone


def test_k_anonymous_releases_nothing_but_centres_whatever_the_speed_limit() -> None:
    for more in (NO_LIMIT, "speed.limit_kmh=1"):
        asked = task(KAnonymous(), more)
        clean, sets = asked.sessions.poi, asked.candidates
        released = publish(asked, Seed(1), CPU).poi
        has = sets.size[clean] > 0
        assert has.mean() > 0.9
        assert (released[has] == sets.poi[clean[has], 0]).all()
        assert (released[~has] == clean[~has]).all()
    crowds = Crowd(size=16, reach_km=5.0, category="any").candidate_sets(
        of_sessions(asked.sessions, asked.vocabulary), RULE
    )
    assert (crowds.poi[np.arange(len(crowds.poi))[:, None], :] == sets.poi[:, :, None]).any(axis=2)[1:].all()


def test_randomised_response_keeps_with_the_probability_of_its_epsilon() -> None:
    sets = RandomisedResponse(size=4, reach_km=5, epsilon=1.5).candidate_sets(places_at(0, 100, 200, 300), RULE)
    channel = rule_of(RandomisedResponse(epsilon=1.5), sets).channel
    keep = np.exp(1.5) / (np.exp(1.5) + 3)
    expected = np.where(channel.clean == channel.released, keep, (1 - keep) / 3)
    np.testing.assert_allclose(channel.probability, expected)
    # The channel depends on the sets alone: an audit knows them without their weights.
    bare = rule_of(RandomisedResponse(epsilon=1.5), Candidates(sets.poi, sets.radius_km)).channel
    np.testing.assert_allclose(bare.probability, channel.probability)
    even = rule_of(RandomisedResponse(epsilon=0.0), sets).channel
    np.testing.assert_allclose(even.probability, 0.25)


def test_randomised_response_draws_by_its_channel() -> None:
    method = RandomisedResponse(epsilon=2.0)
    asked = task(method, NO_LIMIT)
    clean = asked.sessions.poi
    released = publish(asked, Seed(1), CPU).poi
    distance, limit = pooled_chi2(clean, released, asked.candidates, method)
    assert distance < limit
    size = asked.candidates.size[clean]
    keep = np.where(size > 0, np.exp(2.0) / (np.exp(2.0) + size - 1), 1.0)
    assert abs((released == clean).sum() - keep.sum()) < 3 * np.sqrt((keep * (1 - keep)).sum())
    distance, limit = pooled_chi2(clean, released, asked.candidates, RandomisedResponse(epsilon=3.0))
    assert distance > limit  # the test can tell another epsilon


def test_what_tables_and_manifests_say_about_them() -> None:
    for name, category in (("k-anonymous", "any"), ("randomised-response", "any")):
        method = METHODS[name]
        assert (method.keeps_category, method.in_paper, method.published_aggregates) == (category, False, ())
