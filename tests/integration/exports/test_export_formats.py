"""Exports for LibCity, GETNext, Flashback, scikit-mobility and datasets: the same rows in each tool's own form."""

import json
import sqlite3
from collections import Counter
from datetime import datetime
from itertools import groupby
from pathlib import Path

import numpy as np
import pyogrio
import pytest
import sample_releases
import small_city
from city_exports import PARTS, RECORDS, Visit, exported, records, release, table, visits
from huggingface_hub import DatasetCard
from hypothesis import given
from hypothesis import strategies as st
from small_city import called

from ghostpoi import formats
from ghostpoi.data import sessions
from ghostpoi.exports import EXPORTS, trajectories
from ghostpoi.exports.base import Visits
from ghostpoi.release.manifest import settings_of

SPLITTING = ("libcity", "getnext", "skmob", "hf", "geojson", "gpkg")  # Flashback splits in its own way
ALL = {
    "libcity": ["city.dyna"],
    "getnext": [f"city_{part}.csv" for part in ("train", "val", "test")],
    "flashback": ["city.txt"],
    "skmob": ["city.csv"],
    "hf": ["released.parquet"],
    "geojson": ["city.geojson"],
    "gpkg": ["city.gpkg:checkins"],
}
PART = {"libcity": "city.{}.dyna", "getnext": "city_{}.csv", "skmob": "city.{}.csv", "hf": "{}.parquet",
        "geojson": "city.{}.geojson", "gpkg": "city.gpkg:{}"}  # fmt: skip


def shown(made: small_city.Release, of: Path | None = None) -> list[Visit]:
    """The rows of a release, or of another file."""
    t = formats.read(of or made.data).table
    return list(zip(t.user_ids[t.user], t.venue_ids[t.venue], t.time.tolist(), strict=True))


@pytest.mark.parametrize("to", ALL)
@pytest.mark.parametrize("more", [(), ("--pseudonyms", "session")])
def test_a_public_export_has_the_rows_of_the_release(to: str, more: tuple[str, ...]) -> None:
    made = release("crowd", *more)
    folder = exported(made, private=False, to=to)
    found = [visit for name in ALL[to] for visit in visits(to, folder, name)]
    assert sorted(found) == sorted(shown(made))


@pytest.mark.parametrize("to", EXPORTS)
def test_a_public_export_depends_on_the_release_alone(to: str, tmp_path: Path) -> None:
    folder = exported(release(), private=False, to=to)
    alone = sample_releases.copied(release(), tmp_path)  # without the private folder beside it
    assert called("export", alone, "--to", to, "-o", tmp_path / "city").returncode == 0
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "city").iterdir()
    }


@pytest.mark.parametrize("to", SPLITTING)
def test_a_private_export_has_the_sessions_of_the_clean_file(to: str) -> None:
    clean = formats.read(release().file).table
    rows, released = shown(release(), release().file), shown(release())
    data = sessions.build(clean, settings_of(release().manifest).filters)
    expected = {
        "train": [released[row] for row in data.train.row],
        "valid": [rows[row] for row in data.val.row],
        "test": [rows[row] for row in data.test.row],
        "clean": [rows[row] for row in data.train.row],
    }
    folder = exported(release(), private=True, to=to)
    for part in PARTS:
        name = PART[to].format("val" if (to, part) == ("getnext", "valid") else part)
        assert sorted(visits(to, folder, name)) == sorted(expected[part]), part
    if to != "getnext":
        assert sorted(visits(to, folder, ALL[to][0])) == sorted(released)


@pytest.mark.parametrize("to", ALL)
def test_positions_and_categories_are_those_of_the_venue(to: str) -> None:
    folder, t = exported(release(), private=False, to=to), formats.read(release().data).table
    expected = {
        t.venue_ids[k]: (t.venues.lat[k], t.venues.lon[k], t.category_ids[t.venues.category[k]])
        for k in range(1, len(t.venue_ids))
    }
    if to == "libcity":
        places = {row["venue_id"]: (json.loads(row["coordinates"]), row) for row in table(folder / "city.geo")}
        assert {v: (lat, lon, row["venue_category_name"]) for v, ((lon, lat), row) in places.items()} == expected
        return
    category = (
        {} if to in ("skmob", *RECORDS) else {r["number"]: r["category"] for r in table(folder / "city.venues.csv")}
    )
    found = {}
    for name in ALL[to]:
        if to == "flashback":
            rows = [line.split("\t")[2:] for line in (folder / name).read_text().splitlines()]
            places = [(lat, lon, category[number]) for lat, lon, number in rows]
        elif to in RECORDS:
            places = [(r["latitude"], r["longitude"], r["category"]) for r in records(folder, name)]
        elif to == "skmob":
            places = [(r["lat"], r["lng"], r["category"]) for r in table(folder / name)]
        else:
            places = [(r["latitude"], r["longitude"], category[r["POI_id"]]) for r in table(folder / name)]
        for (_, venue, _), (lat, lon, kind) in zip(visits(to, folder, name), places, strict=True):
            found[venue] = (float(lat), float(lon), kind)
    assert found == expected


def test_flashback_gets_each_user_once_with_the_newest_row_first_and_the_busiest_user_first() -> None:
    rows = visits("flashback", exported(release(), private=False, to="flashback"), "city.txt")
    users = [(user, [time for *_, time in found]) for user, found in groupby(rows, key=lambda row: row[0])]
    assert len({user for user, _ in users}) == len(users) > 10
    assert all(times == sorted(times, reverse=True) for _, times in users)
    assert [len(times) for _, times in users] == sorted((len(times) for _, times in users), reverse=True)


def test_flashback_tests_on_clean_rows_and_trains_on_released_ones() -> None:
    folder = exported(release(), private=True, to="flashback")
    released, mixed, clean = (visits("flashback", folder, f"city{part}.txt") for part in ("", ".test", ".clean"))
    assert sorted(clean) == sorted(shown(release(), release().file))
    assert sorted(released) == sorted(shown(release()))
    expected, at = [], 0
    for _, found in groupby(released, key=lambda row: row[0]):
        size = len(list(found))
        steps = int((size - 1) * 0.8)  # of training, as Flashback counts; a file has the newest row first
        expected += clean[at : at + size - steps - 1] + released[at + size - steps - 1 : at + size]
        at += size
    assert mixed == expected
    assert mixed not in (released, clean)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=20))
def test_flashback_trains_on_no_row_that_is_clean(sizes: list[int]) -> None:
    start = np.append(0, np.cumsum(sizes))
    rows = Visits(np.repeat("u", start[-1]), np.zeros(start[-1], np.int32), np.arange(start[-1]), start)
    marked = trajectories.trained(rows)
    for size, first in zip(sizes, start[:-1], strict=True):
        places = list(range(size))
        steps = int(len(places[:-1]) * 0.8)  # inputs: all rows but the last; labels: all but the first
        used = {*places[:-1][:steps], *places[1:][:steps]}
        assert used <= {place for place in places if marked[first + place]} <= used | {0}


@given(st.lists(st.lists(st.integers(0, 3 * trajectories.DAY), min_size=1, max_size=30), min_size=1, max_size=8))
def test_getnext_trains_on_each_users_first_trajectories(gaps: list[list[int]]) -> None:
    times = [np.cumsum(steps) for steps in gaps]
    user = np.repeat([f"u{k}" for k in range(len(gaps))], [len(t) for t in times]).astype(object)
    start = np.append(0, np.cumsum([len(t) for t in times]))
    rows = Visits(user, np.arange(len(user), dtype=np.int32), np.concatenate(times), start)
    parts = trajectories.split(rows)
    assert sorted(v for part in parts.values() for v in part.venue) == list(range(len(user)))
    for k, steps in enumerate(gaps):
        count = 1 + sum(gap > trajectories.DAY for gap in steps[1:])
        begun = {name: [int(part.start[i]) for i in range(len(part.start) - 1)] for name, part in parts.items()}
        found = [[parts[n].venue[at] for at in begun[n] if parts[n].user[at] == f"u{k}"] for n in parts]
        assert sum(map(len, found)) == count
        assert len(found[0]) == -(-count * 8 // 10)
        assert [v for part in found for v in part] == sorted(v for part in found for v in part)


def test_getnext_has_its_columns_and_says_how_many_test_users_it_knows() -> None:
    folder = exported(release(), private=True, to="getnext")
    first = table(folder / "city_train.csv")[0]
    assert tuple(first) == trajectories.GETNEXT_COLUMNS
    when = datetime.fromisoformat(first["UTC_time"])
    assert int(first["day_of_week"]) == when.weekday()
    assert float(first["norm_in_day_time"]) == (2 * when.hour + (when.minute >= 30)) / 48
    assert first["trajectory_id"].split("_")[0] == first["user_id"]
    users = {part: {row["user_id"] for row in table(folder / f"city_{part}.csv")} for part in ("train", "test")}
    known = f"{len(users['test'] & users['train'])} of {len(users['test'])} test users are in `train`"
    assert known in (folder / "README.md").read_text()
    hidden = exported(release("crowd", "--pseudonyms", "session"), private=True, to="getnext")
    assert f" 0 of {len(users['test'])} test users are in `train`" in (hidden / "README.md").read_text()


def test_libcity_gets_numbers_that_are_rows_and_each_user_in_time_order() -> None:
    folder = exported(release(), private=False, to="libcity")
    for name, key in (("city.geo", "geo_id"), ("city.usr", "usr_id"), ("city.dyna", "dyna_id")):
        assert [int(row[key]) for row in table(folder / name)] == list(range(len(table(folder / name))))
    rows = [(int(row["entity_id"]), row["time"]) for row in table(folder / "city.dyna")]
    assert rows == sorted(rows)
    assert all(datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ") for _, time in rows)


def test_a_geopackage_has_a_layer_of_venues_and_spatial_indexes() -> None:
    folder = exported(release(), private=False, to="gpkg")
    path = folder / "city.gpkg"
    assert [name for name, _ in pyogrio.list_layers(path)] == ["checkins", "venues"]
    venues, rows = records(folder, "city.gpkg:venues"), Counter(venue for _, venue, _ in shown(release()))
    assert {row["venue_id"]: row["checkins"] for row in venues} == rows
    assert pyogrio.read_info(path, layer="checkins")["dtypes"].tolist()[1] == "datetime64[ms]"
    with sqlite3.connect(path) as connection:
        extensions = connection.execute(
            "SELECT table_name FROM gpkg_extensions WHERE extension_name = 'gpkg_rtree_index'"
        )
        assert sorted(name for (name,) in extensions) == ["checkins", "venues"]
    connection.close()


@pytest.mark.parametrize(
    ("to", "data", "more"), [("libcity", "city.dyna", ["--venues", "city.geo"]), ("getnext", "city_train.csv", [])]
)
def test_an_export_is_read_and_protected_as_it_is(to: str, data: str, more: list[str], tmp_path: Path) -> None:
    folder = exported(release(), private=False, to=to)
    words = [folder / word if word.startswith("city") else word for word in more]
    done = called("protect", folder / data, *words, "-o", tmp_path / "again", "--seed", small_city.SEED)
    assert done.returncode == 0, done.stderr
    assert f"{len(table(folder / data)):,} rows released" in done.stdout


def test_the_card_for_hugging_face_has_any_name() -> None:
    name = 'Zürich: "a" 😀'
    card = DatasetCard.load(exported(release(), False, name, "hf") / "README.md")
    assert card.data.pretty_name == name
    assert card.data.to_dict()["configs"][0]["data_files"] == [{"split": "train", "path": "released.parquet"}]
    assert card.text.startswith(f"\n# {name}\n")
