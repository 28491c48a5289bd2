"""Crowds across categories, and draws by popularity."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.vq import kmeans2
from small_city import RICH, SEED, called, city, prepared, protect, rich_frame, scratch, sentence, settings, task_of

from ghostpoi.attack.evidence import rule_of
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Longs
from ghostpoi.data.places import SLOT_S, SLOTS, Places, of_sessions, of_table, slot_of
from ghostpoi.draw import table as rows_outside_sessions
from ghostpoi.draw.crowds import by_hours, by_name, category_hours
from ghostpoi.draw.methods.base import LEARNED_GROUPS
from ghostpoi.draw.methods.crowd import Crowd
from ghostpoi.draw.table import publish
from ghostpoi.draw.whole_table import grouped, prepare
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings

CPU = torch.device("cpu")
RULE = CandidateSettings()
SMOOTHING = 50


def street(visits: list[int], categories: list[int], group: list[int] | None = None) -> Places:
    """Venues in a row, a hundred metres apart."""
    count, kinds = len(visits), max(categories) + 1
    lat, lon = np.append(np.nan, np.zeros(count)), np.append(np.nan, 0.0009 * np.arange(count))
    hours = np.zeros((kinds, SLOTS), np.int64)
    np.add.at(hours, (np.array(categories), np.arange(count) % SLOTS), visits)
    category = np.append(-1, categories).astype(np.int32)
    groups = np.arange(kinds) if group is None else np.array(group)
    return Places(lat, lon, category, np.append(0, visits), hours, groups.astype(np.int32))


def crowds(method: Crowd, places: Places) -> set[tuple[int, ...]]:
    sets = method.candidate_sets(places, RULE)
    return {tuple(int(p) for p in row if p) for row in sets.poi[1:]}


def test_a_crowd_follows_the_category_its_group_or_neither() -> None:
    places = street([9] * 6, [0, 1, 2, 0, 1, 2], [0, 0, 1])
    assert crowds(Crowd(size=2, category="exact"), places) == {(1, 4), (2, 5), (3, 6)}
    assert crowds(Crowd(size=2, category="group"), places) == {(1, 2), (4, 5), (3, 6)}
    assert crowds(Crowd(size=2, category="any"), places) == {(1, 2), (3, 4), (5, 6)}


def test_popular_venues_are_drawn_more_often_and_rare_ones_count_as_five() -> None:
    sets = Crowd(size=2, category="any", draw="popular").candidate_sets(street([1, 4, 40, 6], [0, 1, 2, 3]), RULE)
    assert sets.poi[1:].tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]
    assert sets.weight is not None
    assert sets.weight[1:].tolist() == [[5, 5], [5, 5], [40, 6], [40, 6]]
    channel = rule_of(Crowd(draw="popular"), sets).channel
    np.testing.assert_allclose(channel.probability[channel.released >= 3], [40 / 46, 40 / 46, 6 / 46, 6 / 46])


def test_the_hours_are_those_of_the_category() -> None:
    places = street([10, 30], [0, 1])
    hours = category_hours(places)
    assert hours.shape == (2, SLOTS)
    np.testing.assert_allclose(hours.sum(axis=1), 1)
    everywhere = (np.array([10, 30]) + 1) / (40 + SLOTS)
    np.testing.assert_allclose(hours[0, 0], (10 + SMOOTHING * everywhere[0]) / (10 + SMOOTHING))
    two = Candidates(np.array([[0, 0], [1, 2], [1, 2]], np.int32), np.ones(3))
    sets = Crowd(draw="popular-by-hour").drawn_from(two, places, hours)
    weights = sets.draw_weights(np.array([1, 2]), np.array([0, 1]))
    assert weights is not None
    np.testing.assert_allclose(weights, [[10, 30] * hours[:, 0] * SLOTS, [10, 30] * hours[:, 1] * SLOTS])


def test_a_category_with_few_visits_has_the_hours_of_all() -> None:
    hours = category_hours(street([4, 5, 300], [0, 1, 2]))
    everywhere = (np.array([4, 5, 300]) + 1) / (309 + SLOTS)
    np.testing.assert_allclose(hours[0, :3], everywhere)
    np.testing.assert_allclose(hours[1, 1], (5 + SMOOTHING * everywhere[1]) / (5 + SMOOTHING))


@given(st.integers(-(2**40), 2**40))
def test_slots_repeat_every_week(time: int) -> None:
    times: Longs = np.array([time, time + 7 * 86_400, time + SLOT_S], np.int64)
    first, again, following = slot_of(times)
    assert 0 <= first < SLOTS
    assert again == first
    assert following == (first + 1) % SLOTS


@pytest.mark.parametrize("draw", ["popular", "popular-by-hour"])
def test_rows_are_drawn_by_weight_in_and_outside_sessions(draw: str) -> None:
    """Both paths follow the weights: expected and released visits of every venue agree."""
    more = ("method.category=any", f"method.draw={draw}", "method.size=8", "speed.limit_kmh=10000")
    chosen = settings("crowd", *more)
    ready = prepare(prepared().table, chosen)
    task = replace(task_of(chosen), candidates=ready.session_sets)
    seeds = range(20)
    inside = np.concatenate([publish(task, Seed(seed), CPU).poi for seed in seeds])
    _agree(ready.session_sets, task.sessions.poi, task.sessions.time, inside)
    table, nothing = ready.table, np.zeros(len(ready.table), np.int32)
    drawn = (
        rows_outside_sessions.draw(ready, nothing, ready.noise(Seed(s)), chosen.speed, keep_clean=False) for s in seeds
    )
    outside = np.concatenate([one.poi for one in drawn])
    _agree(ready.venue_sets, table.venue, table.time, outside)


def _agree(sets: Candidates, anchor: np.ndarray, time: Longs, drawn: np.ndarray) -> None:
    weight = sets.draw_weights(anchor, slot_of(time))
    assert weight is not None
    total = weight.sum(axis=1, keepdims=True)
    share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    rows, times = len(sets.poi), len(drawn) // len(anchor)
    alone = np.bincount(anchor[total[:, 0] == 0], minlength=rows)
    mean = times * (np.bincount(sets.poi[anchor].ravel(), share.ravel(), rows) + alone)
    variance = times * np.bincount(sets.poi[anchor].ravel(), (share * (1 - share)).ravel(), rows)
    error = (np.bincount(drawn, minlength=rows) - mean)[variance > 5] / np.sqrt(variance[variance > 5])
    assert len(error) > 50
    assert np.abs(error).max() < 5
    assert 0.7 < error.std() < 1.3


@pytest.mark.parametrize(
    ("category", "draw"), [("any", "even"), ("any", "popular"), ("any", "popular-by-hour"), ("group", "even")]
)
def test_given_the_published_popularity_the_release_tells_the_crowd_and_nothing_else(
    category: str, draw: str, tmp_path: Path
) -> None:
    """Visits trade places inside their crowds and, where hours are published, inside their slots: the same bytes."""
    more = (f"method.category={category}", f"method.draw={draw}", "method.size=4")
    named = {str(name): "even" if i % 2 else "odd" for i, name in enumerate(prepared().table.category_ids)}
    given = ("--taxonomy", taxonomy(*(f"{a},{b}" for a, b in named.items()))) if category == "group" else ()
    method = settings("crowd", *more)
    ready = prepare(grouped(prepared().table, named if given else {}, method.method), method)
    table, every = ready.table, ready.venue_sets.poi
    member = (every == np.arange(len(every))[:, None]).any(axis=1)
    crowd = np.where(member, every[:, 0], 0)[table.venue].astype(np.int64)
    group = crowd * SLOTS + (slot_of(table.time) if draw == "popular-by-hour" else 0)
    lines = [line.split(b"\t") for line in city().read_bytes().splitlines(keepends=True)]
    traded, moved = [*lines], 0
    for name in np.unique(group[crowd > 0]):
        rows = np.flatnonzero(group == name)
        for row, other in zip(rows, Seed(4).generator("trade", int(name)).permutation(rows), strict=True):
            traded[row] = [lines[row][0], *lines[other][1:6], *lines[row][6:]]
            moved += table.venue[row] != table.venue[other]
    assert moved > 150
    path = tmp_path / "traded.txt"
    path.write_bytes(b"".join(b"\t".join(line) for line in traded))
    flags = [word for text in more for word in ("--set", text)]
    one, two = (protect(file, tmp_path / file.stem, *flags, *given, "--seed", SEED) for file in (city(), path))
    assert one.data.read_bytes() == two.data.read_bytes()


def test_categories_with_the_same_hours_share_a_group() -> None:
    kinds = 24
    hours = np.zeros((kinds, SLOTS), np.int64)
    for kind in range(kinds):  # twelve peaks, each shared by two categories
        hours[kind, 3 * (kind % 12)] = 10_000
    places = replace(street([1] * kinds, list(range(kinds))), category_visits=hours)
    group = by_hours(places)
    assert (group[:12] == group[12:]).all()
    assert len(np.unique(group)) <= 10
    assert (by_hours(places) == group).all()


@pytest.mark.parametrize("kinds", [4, 24])
def test_groups_are_those_of_the_most_compact_of_five_starts(kinds: int) -> None:
    """The first one of equally compact ones: with few categories, each is its own group from every start."""
    chosen = set()
    for seed in range(6):
        hours = np.random.default_rng(seed).integers(0, 900, (kinds, SLOTS))
        places = replace(street([1] * kinds, list(range(kinds))), category_visits=hours)
        point, tried = np.sqrt(category_hours(places)), []
        for start in range(5):
            first = np.random.default_rng(start).permutation(kinds)[:10]
            centre, group = kmeans2(point, point[first], iter=100, minit="matrix")
            tried.append((sum(np.linalg.norm(point[k] - centre[group[k]]) ** 2 for k in range(kinds)), group))
        best = min(range(5), key=lambda start: tried[start][0])
        chosen.add(best)
        assert by_hours(places).tolist() == np.unique(tried[best][1], return_inverse=True)[1].tolist()
    assert (chosen == {0}) == (kinds == 4)


def test_a_category_without_a_group_is_alone() -> None:
    assert by_name(["bar", "café", "zoo"], {"bar": "food", "café": "food"}).tolist() == [1, 1, 0]


def test_a_table_and_its_sessions_count_the_same_visits() -> None:
    ready = prepared()
    v, table = ready.data.vocabulary, ready.table
    everywhere, inside = of_table(table).take(v.venue), of_sessions(ready.data.all, v)
    assert (everywhere.visits >= inside.visits).all()
    assert inside.visits.sum() == inside.category_visits.sum() == ready.data.all.positions
    assert everywhere.category_visits.sum() == len(table)


def taxonomy(*lines: str) -> Path:
    path = scratch() / "taxonomy.csv"
    path.write_text("category,group\n" + "".join(f"{line}\n" for line in lines))
    return path


def groups() -> dict[str, str]:
    return {name: "even" if i % 2 else "odd" for i, name in enumerate(rich_frame()["catid"].unique().sort())}


def test_groups_come_from_a_taxonomy_a_column_or_the_hours(tmp_path: Path) -> None:
    """All three ways, through protect and verify."""
    file = tmp_path / "rich.csv"
    rich_frame().with_columns(parent=pl.col("catid").replace_strict(groups())).write_csv(file)
    by_group = [*RICH, "--set", "method.category=group", "--seed", SEED]
    one = protect(file, tmp_path / "a", *by_group, "--map", "category_group=parent")
    two = protect(file, tmp_path / "b", *by_group, "--taxonomy", taxonomy(*(f"{a},{b}" for a, b in groups().items())))
    three = protect(file, tmp_path / "c", *by_group)
    assert one.data.read_bytes() == two.data.read_bytes() != three.data.read_bytes()
    for release in (one, two, three):
        disclosure = release.manifest["disclosure"]
        assert disclosure["category"] == "group"
        assert (LEARNED_GROUPS in disclosure["aggregates"]) == (release is three)
        found = dict(disclosure["category_groups"])
        if release is not three:
            assert found == groups()
        done = called("verify", release.folder, "--against", file, "--json")
        assert done.returncode == 0, done.stdout
        check = {c["check"]: c["detail"] for c in json.loads(done.stdout)["checks"]}
        assert check["category"].endswith("substitutes match by group")
        before, after = (pl.read_csv(path)["catid"].cast(pl.String) for path in (file, release.data))
        assert all(found[a] == found[b] for a, b in zip(before, after, strict=True))
        assert (before != after).mean() > 0.3
    assert "parent" in one.manifest["columns"]["changed_with_the_venue"]


def test_any_category_is_said_to_change() -> None:
    more = ("--set", "method.category=any", "--set", "method.draw=popular-by-hour")
    release = protect(city(), scratch() / "any", *more, "--seed", SEED)
    assert release.manifest["disclosure"] == {
        "category": "any",
        "category_groups": [],
        "aggregates": [
            "visits per venue, where fewer than 5 count as 5",
            "visits per category and four-hour slot of the week, where a category has at least 5",
        ],
    }
    done = called("verify", release.folder, "--against", city(), "--json")
    assert done.returncode == 0, done.stdout
    assert "substitutes match; the method does not keep categories" in done.stdout


@pytest.mark.parametrize(
    ("lines", "more", "said"),
    [
        (["bar,food"], [], "--taxonomy has no effect unless crowds follow groups; add --set method.category=group"),
        (["bar,food"], ["--set", "method.category=group"], "--taxonomy: categories of"),
        (["bar,food", "bar,drinks"], [], "line 3: 'bar' is in two groups"),
        (["bar"], [], "line 2: the category or its group is missing"),
        ([], [], "is empty; give a CSV file with the header line category,group"),
    ],
)
def test_a_taxonomy_that_does_not_fit_is_refused(lines: list[str], more: list[str], said: str) -> None:
    folder = scratch() / "refused"
    flags = ["--set", "method.category=exact", *more, "--taxonomy", taxonomy(*lines)]
    assert said in sentence(called("protect", city(), "-o", folder, *flags))
    assert not folder.exists()
