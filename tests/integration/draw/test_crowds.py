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
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.places import of_sessions
from ghostpoi.draw import crowds
from ghostpoi.draw import table as rows_outside_sessions
from ghostpoi.draw.crowds import LONELY
from ghostpoi.draw.methods.baselines import Random
from ghostpoi.draw.methods.crowd import Crowd
from ghostpoi.draw.table import publish
from ghostpoi.draw.walks import Substitution
from ghostpoi.draw.whole_table import donor_rows, prepare
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings

CPU = torch.device("cpu")


def found(lat: list[float], lon: list[float], category: list[int], size: int, reach_km: float) -> Candidates:
    pad = [np.nan]
    return crowds.find(np.array(pad + lat), np.array(pad + lon), np.array([-1, *category], np.int32), size, reach_km)


def test_a_line_is_halved_until_a_half_would_be_too_small() -> None:
    sets = found([0.0] * 7, [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06], [0] * 7, 2, 1000.0)
    assert [sets.poi[p][sets.poi[p] > 0].tolist() for p in range(1, 8)] == [
        [1, 2, 3], [1, 2, 3], [1, 2, 3], [4, 5], [4, 5], [6, 7], [6, 7]
    ]  # fmt: skip


def test_the_reach_cuts_at_the_widest_gap_and_leaves_a_lone_venue_without_candidates() -> None:
    sets = found([0.0, 0.0, 0.0], [0.0, 0.01, 5.0], [0, 0, 0], 3, 50.0)
    assert sets.poi.tolist() == [[0, 0], [1, 2], [1, 2], [0, 0]]
    assert found([0.0, 0.0, 0.0], [0.0, 0.01, 5.0], [0, 0, 0], 3, 1000.0).size.tolist() == [0, 3, 3, 3]


def test_a_lonely_venue_joins_its_neighbour_or_takes_it_along() -> None:
    """Five venues on a line, the last of which the reach cuts off; then one more beside it."""
    lon = [0.0, 0.01, 0.02, 0.03, 0.08]  # a hundredth of a degree is 1.11 km
    sets = found([0.0] * 5, lon, [0] * 5, 4, 5.0)
    assert {tuple(row[row > 0].tolist()) for row in sets.poi[1:]} == {(1, 2, 3), (4, 5)}
    assert found([0.0] * 5, [*lon[:4], 0.09], [0] * 5, 4, 5.0).size.tolist() == [0, 4, 4, 4, 4, 0]
    pair = found([0.0] * 3, [0.0, 0.01, 0.05], [0] * 3, 3, 5.0)  # two venues are too few to be parted
    assert pair.size.tolist() == [0, 3, 3, 3]


def test_a_crowd_lies_across_the_antimeridian() -> None:
    sets = found([0.0] * 4, [179.99, -179.99, 10.0, 10.01], [0] * 4, 2, 20.0)
    assert sets.poi[1].tolist() == sets.poi[2].tolist() == [2, 1]
    assert sets.poi[3].tolist() == [3, 4]


def test_who_comes_to_a_lonely_venue_leaves_nobody_alone() -> None:
    """The twin of a venue is alone; if that came to it, the two others would be 25 km apart."""
    sets = found([40.25, 40.25, 40.25, 40.375], [-73.5, -73.25, -73.5, -73.5], [0] * 4, 2, 20.0)
    assert sets.size.tolist() == [0, 4, 4, 4, 4]


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
        assert len(crowd) < 3 * size
        assert all((sets.poi[q] == sets.poi[p]).all() for q in crowd)  # the same for all, in the same order
        assert {category[q - 1] for q in crowd} == {category[p - 1]}
        a, b = np.array(lat)[crowd - 1], np.array(lon)[crowd - 1]
        apart = haversine_km(a[:, None], b[:, None], a[None], b[None])
        # A lonely venue may have joined. Whoever is wider apart than the reach has a neighbour between them.
        assert apart.max() <= (1 + 2 * LONELY) * reach_km * (1 + 1e-9)
        near = np.where(np.eye(len(crowd), dtype=bool), np.inf, apart).min(axis=1)
        assert near.max() <= LONELY * reach_km * (1 + 1e-9)
    if reach_km == 1000.0:
        members = np.bincount(category, minlength=3)[np.array(category)]
        assert (sets.size[1:][members >= size] >= size).all()


def test_a_rare_venue_left_alone_hides_in_the_crowd_of_the_nearest_known_one() -> None:
    lat, lon = np.array([np.nan, *[0.0] * 6]), np.array([np.nan, 0.0, 0.01, 0.05, 0.06, 0.02, 9.0])
    category, known = (
        np.array([-1, 0, 0, 0, 0, 0, 0], np.int32),
        np.array([False, True, True, True, True, False, False]),
    )
    sets = crowds.find(lat, lon, category, 2, 30.0, known)
    assert sets.poi.tolist() == [[0, 0], [1, 2], [1, 2], [3, 4], [3, 4], [1, 2], [0, 0]]
    far = crowds.find(lat, lon, category, 2, 1.5, known)
    assert far.poi[5].tolist() == [0, 0]  # its host would be too wide


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
