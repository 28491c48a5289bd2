"""What a user would pick instead of GHOST or crowds: each draws as its definition says, and adversaries know how."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from sample_releases import chart_ids
from scipy.stats import chi2
from small_city import SEED, called, city, prepared, protect, settings, task_of

from ghostpoi.attack.evidence import rule_of
from ghostpoi.audits.match import matched_draw
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.places import SLOTS, Places, of_sessions
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.draw.methods import METHODS, Method
from ghostpoi.draw.methods.crowd import Crowd, KAnonymous, RandomisedResponse, medoids
from ghostpoi.draw.methods.free import (
    GeoIndistinguishability,
    NearestVenues,
    Synthetic,
    moved,
    radius_km,
)
from ghostpoi.draw.noise import ByPosition
from ghostpoi.draw.publication import Task
from ghostpoi.draw.table import publish
from ghostpoi.models.prefix_cache import Prefix
from ghostpoi.models.trajectory_lm import sample_sessions
from ghostpoi.models.transformer import CausalTransformer
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
    crowds = Crowd(draw="even").candidate_sets(of_sessions(asked.sessions, asked.vocabulary), RULE)
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
    method = RandomisedResponse(size=8, epsilon=2.0)
    asked = task(method, NO_LIMIT)
    clean = asked.sessions.poi
    released = publish(asked, Seed(1), CPU).poi
    distance, limit = pooled_chi2(clean, released, asked.candidates, method)
    assert distance < limit
    size = asked.candidates.size[clean]
    keep = np.where(size > 0, np.exp(2.0) / (np.exp(2.0) + size - 1), 1.0)
    assert abs((released == clean).sum() - keep.sum()) < 3 * np.sqrt((keep * (1 - keep)).sum())
    distance, limit = pooled_chi2(clean, released, asked.candidates, RandomisedResponse(size=8, epsilon=4.0))
    assert distance > limit  # the test can tell another epsilon


def test_what_tables_and_manifests_say_about_them() -> None:
    for name, category in dict.fromkeys(
        ("k-anonymous", "randomised-response", "geo-indistinguishability"), "any"
    ).items():
        method = METHODS[name]
        assert (method.keeps_category, method.in_paper, method.published_aggregates) == (category, False, ())


def test_the_noise_is_planar_laplace() -> None:
    quantile = np.array([0.0, 0.1, 0.5, 0.9, 0.999])
    for epsilon in (0.5, 4.0):
        km = radius_km(quantile, epsilon)
        np.testing.assert_allclose(1 - (1 + epsilon * km) * np.exp(-epsilon * km), quantile, atol=1e-12)
    uniform = np.random.default_rng(0).random(40_000)
    assert abs(radius_km(uniform, 2.0).mean() - 1.0) < 4 * np.sqrt(2) / 2 / np.sqrt(40_000)  # 2 / epsilon


def test_noise_moves_a_point_as_far_as_it_says() -> None:
    lat, lon = np.array([0.0, 40.7, -60.0]), np.array([179.99, -74.0, 10.0])
    km, angle = np.array([5.0, 2.0, 30.0]), np.array([np.pi / 2, 0.0, 4.0])
    x, y, z = moved(lat, lon, km, angle).T
    to_lat, to_lon = np.degrees(np.arcsin(z)), np.degrees(np.arctan2(y, x))
    np.testing.assert_allclose(haversine_km(lat, lon, to_lat, to_lon), km, rtol=1e-9)
    assert to_lon[0] < 0  # east, across the antimeridian
    assert to_lat[1] > lat[1]  # north


def test_venues_at_one_position_are_equally_near() -> None:
    places = places_at(0, 500, 0, 0)
    nearest = NearestVenues(places.lat, places.lon)
    spot = np.repeat(nearest.tree.data[nearest.spot_of[:1]], 4, axis=0)
    assert nearest.draw(spot, np.array([0.0, 0.3, 0.4, 0.99])).tolist() == [1, 1, 3, 4]


def town(side: int = 9, metres: float = 300) -> Places:
    """Venues on a square grid; two stand at one position."""
    at = np.arange(side * side)
    places = places_at(*np.append(metres * (at % side), 0))
    return replace(places, lat=np.append(np.nan, np.append(metres * (at // side), 0) / 111_195))


def test_the_channel_of_geo_indistinguishability_is_what_it_draws() -> None:
    places, method = town(), GeoIndistinguishability(epsilon=4.0)
    rows, draws = len(places.lat), 4000
    rule = rule_of(
        method, Candidates.anywhere(rows), Vocabulary(places.lat, places.lon, places.category, places.visits)
    )
    anchor = np.repeat(np.arange(1, rows, dtype=np.int32), draws)
    released = method.release_outside(places, anchor, ByPosition(Seed(3), len(anchor)))
    found = np.bincount(anchor * rows + released, minlength=rows * rows).reshape(rows, rows) / draws
    known = np.zeros((rows, rows))
    known[rule.channel.clean, rule.channel.released] = rule.channel.probability
    inner = [p for p in range(1, rows - 1) if {(p - 1) % 9, (p - 1) // 9} <= set(range(1, 8))]  # no edge of the town
    error = 4 * np.sqrt(found[:, inner] / draws) + 0.004
    assert (np.abs(found - known)[1:, inner] < error[1:]).all()
    assert abs(known[1] - known[rows - 1]).max() == 0  # the two at one position cannot be told apart
    np.testing.assert_allclose(known[:, 1], known[:, rows - 1])
    centre = 41
    assert known[centre, inner].argmax() == inner.index(centre)


def test_geo_indistinguishability_bounds_the_odds_by_distance() -> None:
    places, epsilon = town(), 3.0
    channel = rule_of(
        GeoIndistinguishability(epsilon=epsilon), Candidates.anywhere(len(places.lat)),
        Vocabulary(places.lat, places.lon, places.category, places.visits),
    ).channel  # fmt: skip
    for q in (1, 41, 50):
        _, entry = channel.behind(np.array([q]))
        p, k = channel.clean[entry], np.log(channel.probability[entry])
        km = haversine_km(*(a[p][:, None] for a in (places.lat, places.lon)), places.lat[p], places.lon[p])
        assert (np.abs(k[:, None] - k) <= epsilon * km + 1e-9).all()


def test_without_positions_a_free_draw_tells_nothing() -> None:
    channel = rule_of(GeoIndistinguishability(), Candidates.anywhere(5)).channel
    assert (channel.clean.tolist(), channel.released.tolist()) == ([1, 2, 3, 4], [1, 2, 3, 4])


def test_every_venue_can_replace_every_other() -> None:
    sets = Candidates.anywhere(4)
    assert sets.size.tolist() == [0, 3, 3, 3]
    again = sets.renumbered(np.array([0, 3, 2, 1]), np.array([0, 3, 2, 1]))
    assert again.everywhere


def test_the_matched_control_of_a_free_draw_is_uniform_over_all_other_venues() -> None:
    clean = np.repeat(np.array([1, 2, 3], np.int32), 3000)
    released = np.where(np.arange(len(clean)) % 3 == 0, clean, 1 + clean % 3).astype(np.int32)
    rule = rule_of(GeoIndistinguishability(), Candidates.anywhere(4))
    drawn = matched_draw(rule, clean, released, Seed(1))
    assert ((drawn == clean) == (released == clean)).all()
    counts = np.bincount((clean * 4 + drawn)[drawn != clean], minlength=16)
    assert set(np.flatnonzero(counts)) == {6, 7, 9, 11, 13, 14}
    assert abs(counts[counts > 0] - 1000).max() < 120


@pytest.mark.parametrize("method", ["geo-indistinguishability", "synthetic"])
def test_a_free_draw_from_protect_to_report(method: str, tmp_path: Path) -> None:
    """All rows are drawn, the checks know that there is no rule to keep, and no chart shows candidates."""
    made = protect(city(), tmp_path / "release", "--method", method, "--seed", SEED)
    rows = made.manifest["rows"]
    assert (rows["left_genuine"]["rows"], rows["in_sessions"]["no_candidate"]) == (0, 0)
    assert rows["outside_sessions"]["substituted"] > 0
    assert made.manifest["disclosure"]["category"] == "any"
    done = called("verify", made.folder, "--against", city())
    assert (done.returncode, done.stderr) == (0, "")
    assert "the method may release any venue for any other" in done.stdout
    assert "the method has no speed rule" in done.stdout
    guess = called("protect", city(), "-o", tmp_path / "other", "--method", method, "--dry-run", "--json")
    assert (
        abs(json.loads(guess.stdout)["substitution_rate"] - made.manifest["plausibility"]["substitution_rate"]) < 0.05
    )
    ask = ("--victim", "markov", "--seeds", 1, "--no-naturalness", "--report", "--adversaries", "none,habits")
    done = called(
        "audit", city(), made.folder, *ask, "--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2"
    )
    assert done.returncode == 0, done.stderr
    assert "matched random release" in done.stdout
    charts = chart_ids((made.folder / "report.html").read_text("utf-8"))
    assert {"rows", "speed"} <= charts
    assert not charts & {"distance", "sizes"}
    inspected = called("inspect", city(), "--method", method, "--json")
    assert json.loads(inspected.stdout)["method"]["coverage"] == 1.0


@cache
def lm() -> CausalTransformer:
    return CausalTransformer(len(prepared().data.vocabulary), settings().lm, 1).requires_grad_(False)


def test_a_sampled_token_inverts_the_distribution_of_the_lm_given_the_sampled_prefix() -> None:
    uniform = np.random.default_rng(5).random(12)
    start = np.array([0, 5, 5, 12])  # a session may be empty
    found = sample_sessions(lm(), start, uniform)
    for begin, end in pairwise(start):
        tokens = torch.tensor([[0, *found[begin:end].tolist()]])
        for i in range(end - begin):
            prefix = Prefix(lm(), 1, 20)
            for token in tokens[0, : i + 1]:
                hidden = prefix.append(token[None])
            share = lm().log_probs(hidden)[0].double().exp().cumsum(0)
            assert share[found[begin + i] - 1] <= uniform[begin + i] * share[-1] + 1e-6
            assert share[found[begin + i]] >= uniform[begin + i] * share[-1] - 1e-6


def test_sampled_first_tokens_follow_the_lm() -> None:
    n = 20_000
    found = sample_sessions(lm(), np.arange(n + 1), np.random.default_rng(6).random(n))
    hidden = Prefix(lm(), 1, 1).append(torch.zeros(1, dtype=torch.int64))
    expected = n * lm().log_probs(hidden)[0].exp().double().numpy()[1:]
    counts = np.bincount(found, minlength=len(expected) + 1)[1:]
    real = expected > 5
    assert (((counts - expected) ** 2 / expected)[real]).sum() < chi2.ppf(0.999, real.sum())


def test_a_long_session_goes_on_in_a_new_window() -> None:
    short = CausalTransformer(9, replace(settings().lm, max_positions=3), 2).requires_grad_(False)
    uniform = np.random.default_rng(7).random(6)
    whole = sample_sessions(short, np.array([0, 6]), uniform)
    assert whole.tolist() == sample_sessions(short, np.array([0, 3, 6]), uniform).tolist()


def test_a_synthetic_release_depends_on_the_lm_alone() -> None:
    data, method = prepared().data, Synthetic()
    one, two = (
        method.release(replace(data.all, poi=poi), data.vocabulary, lm(), ByPosition(Seed(4), len(poi)))
        for poi in (data.all.poi, data.all.poi[::-1].copy())
    )
    assert (one == two).all()
    places = places_at(0, 100, 200)
    popular = replace(places, visits=np.array([0, 60, 2, 35]))
    anchor = np.repeat(np.array([1, 3], np.int32), 5000)
    counts = np.bincount(method.release_outside(popular, anchor, ByPosition(Seed(4), len(anchor))), minlength=4)
    np.testing.assert_allclose(counts / 10_000, [0, 0.6, 0.05, 0.35], atol=0.015)  # 2 visits count as 5
    channel = rule_of(method, Candidates.anywhere(4)).channel
    assert (channel.clean == channel.released).all()  # a released row says no more than it shows
    assert method.published_aggregates[0] == "what follows what in sessions"
