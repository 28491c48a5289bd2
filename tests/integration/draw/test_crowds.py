"""Crowds and the method `crowd`: a release reveals the crowd and nothing more."""

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_city import SEED, city, prepared, protect, settings, task_of

from ghostpoi.attack.evidence import rule_of
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.places import of_sessions
from ghostpoi.draw import crowds
from ghostpoi.draw import table as rows_outside_sessions
from ghostpoi.draw.crowds import Dividing
from ghostpoi.draw.methods.crowd import Crowd
from ghostpoi.draw.methods.ghost import Random
from ghostpoi.draw.table import publish
from ghostpoi.draw.walks import Substitution
from ghostpoi.draw.whole_table import donor_rows, prepare
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings

CPU = torch.device("cpu")


def found(lat: list[float], lon: list[float], category: list[int], size: int, reach_km: float) -> Candidates:
    pad = [np.nan]
    return crowds.find(
        np.array(pad + lat), np.array(pad + lon), np.array([-1, *category], np.int32), Dividing(size, reach_km)
    )


def test_a_line_is_cut_into_crowds_of_equal_size() -> None:
    sets = found([0.0] * 7, [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06], [0] * 7, 2, 1000.0)
    assert [sets.poi[p][sets.poi[p] > 0].tolist() for p in range(1, 8)] == [
        [1, 2], [1, 2], [3, 4], [3, 4], [5, 6, 7], [5, 6, 7], [5, 6, 7]
    ]  # fmt: skip


def test_venues_that_no_steps_join_are_apart_and_a_lone_venue_has_no_candidates() -> None:
    sets = found([0.0, 0.0, 0.0], [0.0, 0.01, 5.0], [0, 0, 0], 3, 50.0)
    assert sets.poi.tolist() == [[0, 0], [1, 2], [1, 2], [0, 0]]
    assert sets.radius_km.tolist() == [0, 50, 50, 0]
    assert found([0.0, 0.0, 0.0], [0.0, 0.01, 5.0], [0, 0, 0], 3, 1000.0).size.tolist() == [0, 3, 3, 3]
    assert found([0.0], [0.0], [0], 3, 50.0).poi.tolist() == [[0], [0]]


def test_a_crowd_may_be_wider_than_one_step() -> None:
    """Five venues on a line, a step of 1.11 km apart."""
    line = [0.0, 0.01, 0.02, 0.03, 0.04]
    assert found([0.0] * 5, line, [0] * 5, 5, 1.2).size.tolist() == [0, 5, 5, 5, 5, 5]
    assert found([0.0] * 5, line, [0] * 5, 5, 1.1).size.tolist() == [0] * 6


def test_a_heavy_venue_gets_light_ones_around_it() -> None:
    """Four corners of a rectangle: without weights, the short sides are crowds, and so the heavy venues of one side."""
    lat, lon = np.array([np.nan, 0.0, 0.0, 0.010, 0.010]), np.array([np.nan, 0.0, 0.012, 0.0, 0.012])
    category = np.array([-1, 0, 0, 0, 0], np.int32)
    assert crowds.find(lat, lon, category, Dividing(2, 40.0)).poi[1].tolist() == [1, 3]
    heavy = np.array([0.0, 9.0, 1.0, 9.0, 1.0])
    assert crowds.find(lat, lon, category, Dividing(2, 40.0), weight=heavy).poi[1].tolist() == [1, 2]


def test_a_crowd_lies_across_the_antimeridian() -> None:
    sets = found([0.0] * 4, [179.99, -179.99, 10.0, 10.01], [0] * 4, 2, 20.0)
    assert sets.poi[1].tolist() == sets.poi[2].tolist() == [2, 1]
    assert sets.poi[3].tolist() == [3, 4]


@given(
    st.lists(st.tuples(st.floats(40, 41), st.floats(-74, -73), st.integers(0, 2)), min_size=1, max_size=60),
    st.integers(2, 6),
    st.sampled_from([2.0, 20.0, 1000.0]),
)
def test_crowds_part_the_venues(spots: list[tuple[float, float, int]], size: int, reach_km: float) -> None:
    lat, lon, category = (list(column) for column in zip(*spots, strict=True))
    sets = found(lat, lon, category, size, reach_km)
    for p in range(1, len(spots) + 1):
        crowd = sets.poi[p][sets.poi[p] > 0]
        if not len(crowd):
            continue
        assert p in crowd
        assert len(set(crowd.tolist())) == len(crowd)
        assert len(crowd) < 2 * size
        assert all((sets.poi[q] == sets.poi[p]).all() for q in crowd)  # the same for all, in the same order
        assert {category[q - 1] for q in crowd} == {category[p - 1]}
    if reach_km == 1000.0:
        members = np.bincount(category, minlength=3)[np.array(category)]
        assert (sets.size[1:][members >= size] >= size).all()


def test_a_rare_venue_without_enough_others_hides_in_the_crowd_of_the_nearest_known_one() -> None:
    lat, lon = np.array([np.nan, *[0.0] * 6]), np.array([np.nan, 0.0, 0.01, 0.05, 0.06, 0.02, 9.0])
    category, known = (
        np.array([-1, 0, 0, 0, 0, 0, 0], np.int32),
        np.array([False, True, True, True, True, False, False]),
    )
    sets = crowds.find(lat, lon, category, Dividing(2, 30.0), known)
    assert sets.poi.tolist() == [[0, 0], [1, 2], [1, 2], [3, 4], [3, 4], [1, 2], [0, 0]]
    near = crowds.find(lat, lon, category, Dividing(2, 1.2), known)
    assert near.poi[5].tolist() == [1, 2]
    far = crowds.find(lat, lon, category, Dividing(2, 1.0), known)
    assert not far.poi[5].any()  # the nearest known venue is 1.11 km away


def test_rare_venues_that_are_too_few_borrow_the_crowd_of_a_known_one_or_the_known_one_itself() -> None:
    """Two rare venues near a crowd, where three are wanted; and one near a known venue that is alone."""
    lon = np.array([np.nan, 0.0, 0.01, 0.02, 0.03, 0.04, 9.0, 9.01])
    known = np.array([False, True, True, True, False, False, True, False])
    category, lat = np.append(-1, np.zeros(7)).astype(np.int32), np.append(np.nan, np.zeros(7))
    sets = crowds.find(lat, lon, category, Dividing(3, 5.0), known)
    assert sets.poi[4].tolist() == sets.poi[5].tolist() == [1, 2, 3]
    assert sets.poi[6].tolist() == [0, 0, 0]
    assert sets.poi[7].tolist() == [6, 0, 0]
    assert crowds.find(lat, lon, category, Dividing(2, 5.0), known).poi[4].tolist()[:2] == [4, 5]  # enough of their own


@cache
def lm() -> CausalTransformer:
    return CausalTransformer(len(prepared().data.vocabulary), settings().lm, 1).requires_grad_(False)


def own_sets(method: Crowd) -> Candidates:
    data = prepared().data
    return method.candidate_sets(of_sessions(data.all, data.vocabulary), CandidateSettings())


def swapped(poi: Ints, sets: Candidates, seed: int) -> Ints:
    """Move every visit to some venue of its crowd."""
    size = sets.size[poi]
    column = (Seed(seed).generator("swap").random(len(poi)) * np.maximum(size, 1)).astype(np.int64)
    return np.where(size > 0, sets.poi[poi, column], poi).astype(np.int32)


@pytest.mark.parametrize("beta", [0.0, 0.7])
@pytest.mark.parametrize("empty", ["strict", "ignore"])
def test_whoever_went_elsewhere_in_the_crowd_is_released_alike(beta: float, empty: str) -> None:
    method = Crowd(size=4, category="exact", draw="even", beta=beta)
    sets, sessions = own_sets(method), prepared().data.all
    chosen = replace(settings("ghost", f"speed.empty={empty}", "speed.limit_kmh=2"), method=method)
    task = replace(task_of(chosen, lm()), candidates=sets)
    other = swapped(sessions.poi, sets, 1)
    assert (other != sessions.poi).mean() > 0.3
    one = publish(task, Seed(9), CPU)
    two = publish(replace(task, sessions=replace(sessions, poi=other)), Seed(9), CPU)
    assert one.poi.tobytes() == two.poi.tobytes()
    assert one.mask_emptied.tobytes() == two.mask_emptied.tobytes()
    assert one.mask_emptied.any()  # the mask emptied some sets, and the same ones in both


def test_the_released_file_is_the_same_wherever_in_the_crowd_people_were(tmp_path: Path) -> None:
    """The whole command: visits move inside their crowds, and no byte of the release changes."""
    small = ("method.size=2", "method.category=exact", "method.draw=even")  # so that categories are cut
    ready = prepare(prepared().table, settings("crowd", *small))
    table = ready.table
    every = ready.venue_sets.poi
    crowds_of = Counter(table.venues.category[first] for first in np.unique(every[:, 0]) if first)
    assert max(crowds_of.values()) > 2
    member = (every == np.arange(len(every))[:, None]).any(axis=1)  # a venue that borrows a crowd is outside sessions
    crowd = np.where(member, every[:, 0], 0)[table.venue]  # a crowd is identified by its first venue
    lines = city().read_bytes().splitlines(keepends=True)
    fields = [line.split(b"\t") for line in lines]
    moved = 0
    for name in np.unique(crowd[crowd > 0]):
        rows = np.flatnonzero(crowd == name)
        for row, other in zip(rows, Seed(4).generator("trade", int(name)).permutation(rows), strict=True):
            fields[row] = [lines[row].split(b"\t")[0], *lines[other].split(b"\t")[1:6], *lines[row].split(b"\t")[6:]]
            moved += table.venue[row] != table.venue[other]
    assert moved > 200
    traded = tmp_path / "traded.txt"
    traded.write_bytes(b"".join(b"\t".join(line) for line in fields))
    flags = [word for text in small for word in ("--set", text)]
    one, two = (protect(file, tmp_path / file.stem, *flags, "--seed", SEED) for file in (city(), traded))
    assert one.manifest["method"] == "crowd"
    assert one.data.read_bytes() == two.data.read_bytes()


def test_rows_outside_sessions_keep_the_same_secret() -> None:
    chosen = settings("crowd", "method.size=4")
    ready = prepare(prepared().table, chosen)
    table, nothing = ready.table, np.zeros(len(ready.table), np.int32)
    moved = replace(table, venue=swapped(table.venue, ready.venue_sets, 2))
    vars(moved)["venues"] = table.venues  # positions of venues do not change
    assert (moved.venue != table.venue).mean() > 0.3
    one, two = (
        rows_outside_sessions.draw(whole, nothing, whole.noise(Seed(3)), chosen.speed, keep_clean=False).poi
        for whole in (ready, replace(ready, table=moved))
    )
    assert one.tobytes() == two.tobytes()


def test_a_venue_has_one_crowd_in_and_outside_sessions() -> None:
    ready = prepare(prepared().table, settings("crowd", "method.size=4"))
    venue, sets = ready.data.vocabulary.venue, ready.session_sets
    for p in range(1, len(venue)):
        inside = venue[sets.poi[p][sets.poi[p] > 0]]
        everywhere = ready.venue_sets.poi[venue[p]]
        assert inside.tolist() == everywhere[everywhere > 0].tolist()


def test_a_venue_drawn_for_itself_shows_the_spelling_of_any_of_its_rows() -> None:
    ready = prepare(prepared().table, settings("crowd", "method.size=4"))
    table = ready.table
    itself = Substitution(table.venue.copy(), np.zeros(len(table), bool))
    donor = donor_rows(ready, itself, Crowd(), Seed(1))
    assert (table.venue[donor] == table.venue).all()
    often = np.bincount(table.venue)[table.venue] > 5
    assert (donor != np.arange(len(table)))[often & ready.has_candidates].mean() > 0.5
    assert (donor == np.arange(len(table)))[~ready.has_candidates].all()
    assert (donor_rows(ready, itself, Random(), Seed(1)) == np.arange(len(table))).all()


def test_the_channel_is_the_same_for_all_of_a_crowd() -> None:
    method = Crowd(size=4, category="exact", draw="even")
    sets = own_sets(method)
    rule = rule_of(method, sets)
    assert rule.exact
    channel = rule.channel
    size = np.maximum(sets.size[channel.clean], 1)
    np.testing.assert_allclose(channel.probability, 1 / size)
    assert (np.bincount(channel.clean, channel.probability)[1:] > 1 - 1e-9).all()


def test_the_rule_says_whether_released_counts_tell_what_is_popular() -> None:
    sets = own_sets(Crowd(size=4))
    assert rule_of(Crowd(draw="even"), sets).popularity_power == 0
    assert rule_of(Crowd(draw="popular"), sets).popularity_power > 0
    assert rule_of(Crowd(draw="even", beta=0.5), sets).popularity_power > 0
    assert rule_of(Random(), sets).popularity_power == 0
