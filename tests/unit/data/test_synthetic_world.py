"""A world of synthetic cities: far apart, of different sizes, with travellers who are in one place at a time."""

import os
import weakref
from functools import cache
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_city import called, sentence

from ghostpoi.data import synthetic, synthetic_files
from ghostpoi.data.geo import chord, haversine_km, unit_sphere
from ghostpoi.data.synthetic_files import APART_KM, MAX_CITIES, World, city_frames, cut, write_world
from ghostpoi.errors import InputError

PLAN = World(12, 60, 150, 30, seed=3, travellers=0.3)
SIZE = ("--cities", 12, "--users", 60, "--pois", 150, "--days", 30, "--seed", 3, "--travellers", 0.3)
KEY = ["user", "utc_time", "venue_id"]


@cache
def rows() -> pl.DataFrame:
    return pl.concat(city_frames(PLAN))


def read(folder: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted(folder.iterdir())])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_command_writes_the_world_in_parts(tmp_path: Path) -> None:
    done = called("synth", "-o", tmp_path / "world", *SIZE, "--rows-per-part", 4000)
    assert done.returncode == 0, done.stderr
    table = read(tmp_path / "world")
    assert table.equals(rows())
    files = sorted(path.name for path in (tmp_path / "world").iterdir())
    assert files == [f"part-{number:05d}.parquet" for number in range(-(-table.height // 4000))]
    assert len(files) > 2
    people, venues = PLAN.city_users.sum(), PLAN.city_pois.sum()
    said = f"{table.height:,} check-ins of {people:,} people at {venues:,} venues in 12 cities"
    assert f"{said} ({table.height / 12:,.0f} check-ins per city on average) over 30 days" in done.stderr


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        assert called("synth", "-o", tmp_path / name, *SIZE, "--seed", seed).returncode == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert contents(tmp_path / "one").keys() == contents(tmp_path / "other").keys()
    assert contents(tmp_path / "one") != contents(tmp_path / "other")


@given(size=st.integers(1, 30), heights=st.lists(st.integers(0, 40), max_size=8))
def test_parts_are_consecutive_slices(size: int, heights: list[int]) -> None:
    ends = np.cumsum([0, *heights]).tolist()
    frames = [rows()[begin:end] for begin, end in pairwise(ends)]
    parts = list(cut(frames, size))
    assert [part.height for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert pl.concat([rows()[:0], *parts]).equals(rows()[: ends[-1]])


def test_csv_parts_hold_the_same_rows_and_every_part_can_be_read(tmp_path: Path) -> None:
    done = called("synth", "-o", tmp_path / "world", *SIZE, "--format", "csv", "--rows-per-part", 5000)
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "world").glob("part-*.csv"))
    table = pl.concat([pl.read_csv(path, schema_overrides={"user": pl.String}) for path in files])
    time = pl.col("utc_time").str.to_datetime("%a %b %d %H:%M:%S %z %Y").dt.cast_time_unit("ms")
    assert table.with_columns(time).equals(rows())
    write_world(tmp_path / "typed", PLAN)
    for file in (files[0], tmp_path / "typed" / "part-00000.parquet"):
        done = called("inspect", file, "--json")
        assert done.returncode == 0, done.stderr


def test_cities_lie_far_apart_and_share_no_venue_id() -> None:
    venues = rows().unique("venue_id")
    assert venues.height == rows().select("venue_id", "latitude", "longitude", "city").n_unique()
    at = {
        city: unit_sphere(*frame.select("latitude", "longitude").to_numpy().T)
        for (city,), frame in venues.group_by("city")
    }
    assert len(at) == PLAN.cities
    for one in at:
        for other in at:
            if one < other:
                closest = np.linalg.norm(at[one][:, None] - at[other][None], axis=-1).min()
                assert closest > chord(APART_KM), (one, other)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cities", [2, 3, 415, MAX_CITIES])
def test_centres_lie_far_apart_on_all_continents(cities: int, seed: int) -> None:
    places = World(cities, 100, 500, 1, seed).places
    lat, lon, zone = np.array(places).T
    assert len(set(places)) == cities
    nearest = min(
        np.partition(haversine_km(lat[k], lon[k], lat, lon), 1)[1] for k in range(0, cities, max(cities // 100, 1))
    )
    assert nearest > APART_KM
    assert np.abs(zone - lon * 4).max() <= 30  # an hour per 15 degrees
    if cities > 3:
        assert min(np.histogram(lat, 4)[0].min(), np.histogram(lon, 4)[0].min()) > cities / 10


def test_few_cities_are_large_and_the_mean_is_as_asked() -> None:
    for sizes, mean in ((World(415, 1200, 900, 1, 0).city_users, 1200), (World(415, 9, 900, 1, 0).city_pois, 900)):
        assert sizes.mean() == pytest.approx(mean, rel=0.001)
        assert sizes.max() > 6 * mean
        assert np.median(sizes) < 0.8 * mean
    assert World(415, 9, 900, 1, 0).city_pois.argmax() != World(415, 9, 900, 1, 1).city_pois.argmax()


def test_check_ins_follow_the_local_clock() -> None:
    """In every city more people check in by day than at night."""
    hour = (pl.col("utc_time").dt.epoch("s") / 60 + pl.col("timezone_offset")) / 60 % 24
    night = rows().group_by("city").agg(night=hour.is_between(1, 6).mean(), rows=pl.len())
    assert night.filter(pl.col("rows") > 300)["night"].max() < 0.03  # 5 of 24 hours


def test_travellers_are_in_one_place_at_a_time() -> None:
    steps = (
        rows()
        .sort(KEY)
        .with_columns(pl.col("user", "utc_time", "latitude", "longitude", "city").shift(1).name.prefix("last_"))
    )
    steps = steps.filter((pl.col("user") == pl.col("last_user")) & (pl.col("city") != pl.col("last_city")))
    assert steps.height > 50
    hours = (steps["utc_time"] - steps["last_utc_time"]).dt.total_seconds().to_numpy() / 3600
    km = haversine_km(
        *(steps[name].to_numpy() for name in ("latitude", "longitude", "last_latitude", "last_longitude"))
    )
    assert (km / hours).max() <= 800
    assert hours.min() >= 3


def test_the_plan_leaves_time_to_fly_both_ways() -> None:
    trips = PLAN.trips
    lat, lon, _ = np.array(PLAN.places).T
    flight_h = haversine_km(lat[trips.home], lon[trips.home], lat[trips.away], lon[trips.away]) / 800
    assert len(trips.user) == len(set(trips.user.tolist())) > 100
    assert (trips.home != trips.away).all()
    for begin, end in ((trips.leave, trips.arrive), (trips.depart, trips.back)):
        np.testing.assert_allclose((end - begin) / 3600, 3 + flight_h, atol=1 / 3600)
    assert set(((trips.depart - trips.arrive) / 86_400).tolist()) == set(range(2, 11))


def test_travellers_make_one_trip_to_another_city_and_some_come_back() -> None:
    order = rows().sort(KEY).group_by("user", maintain_order=True)
    cities = order.agg(city=pl.col("city").rle().struct.field("value")).filter(pl.col("city").list.len() > 1)
    home = np.searchsorted(PLAN.first_user, cities["user"].cast(pl.Int64).to_numpy() - 1, side="right") - 1
    returned = 0
    for k, visited in zip(home.tolist(), cities["city"].to_list(), strict=True):
        assert len(set(visited)) == 2
        assert f"city-{k:03d}" in visited
        returned += visited[0] == visited[-1] == f"city-{k:03d}"
    assert returned > 10
    assert 0.05 < cities.height / rows()["user"].n_unique() < 0.35


def test_without_travellers_everybody_stays_at_home() -> None:
    table = pl.concat(city_frames(World(5, 60, 150, 30, 3, travellers=0)))
    assert table.group_by("user").agg(pl.col("city").n_unique())["city"].to_list() == [1] * table["user"].n_unique()
    one = pl.concat(city_frames(World(1, 60, 150, 30, 3)))
    assert one["user"].cast(pl.Int64).is_between(1, 60).all()


def test_only_one_city_is_held_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[weakref.ref[object]] = []
    seeds: set[object] = set()
    make = synthetic.make_city

    def watched(*arguments: object) -> synthetic.City:
        assert not any(city() for city in made), "an earlier city is still in memory"
        city = make(*arguments)  # type: ignore[arg-type]
        made.append(weakref.ref(city))
        seeds.add(arguments[3])
        return city

    monkeypatch.setattr(synthetic, "make_city", watched)
    parts = cut(city_frames(PLAN), 100)
    next(parts)
    assert len(made) < PLAN.cities  # the first part does not wait for the last city
    made.clear()
    write_world(tmp_path / "world", PLAN)
    assert len(made) == len(seeds) == PLAN.cities  # and each city is drawn from its own seed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cities", 0), "--cities must be from 1 to 5,000, not 0"),
        (("--cities", 10**12), "--cities must be from 1 to 5,000, not 1,000,000,000,000"),
        (("--cities", 3, "--users", 0), "--users must be at least 1, not 0"),
        (("--cities", 3, "--seed", -1), "--seed must be at least 0, not -1"),
        (("--cities", 3, "--travellers", 1.5), "--travellers must be a share from 0 to 1, not 1.5"),
        (("--cities", 3, "--travellers", "nan"), "--travellers must be a share from 0 to 1, not nan"),
        (("--cities", 3, "--rows-per-part", 0), "--rows-per-part must be at least 1, not 0"),
        (("--cities", 3, "--format", "xls"), "--format xls: use parquet or csv"),
        (("--cities", 3, "--users", 1, "--pois", 2, "--days", 1, "--seed", 5),
         "the world has no check-ins; raise --cities, --users or --days"),
        (("--cities", 3, "--density", 0.001),
         "3 cities of up to 2,688 venues cannot all be placed 100 km apart; lower --cities or --pois, or "
         "raise --density"),
        (("--cities", 5000, "--pois", 9000),
         "5,000 cities of up to 128,084 venues cannot all be placed 100 km apart; lower --cities or --pois, "
         "or raise --density"),
        (("--travellers", 0), "--travellers is for several cities; add --cities"),
        (("--rows-per-part", 10), "--rows-per-part is for several cities; add --cities"),
        (("--format", "csv"), "--format is for several cities; add --cities"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(words: tuple[object, ...], said: str, tmp_path: Path) -> None:
    assert sentence(called("synth", "-o", tmp_path / "world", *words)) == said
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_or_the_name_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "mine").write_text("mine")
    assert "exists already; choose another folder" in sentence(called("synth", "-o", tmp_path / "world", *SIZE))
    assert contents(tmp_path / "world") == {"mine": b"mine"}
    refused = called("synth", "-o", tmp_path / "world.csv", *SIZE)
    assert sentence(refused) == f"-o {tmp_path}/world.csv: --cities writes a folder of parts; leave out .csv"


def test_too_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(synthetic_files, "MAX_PARTS", 3)
    with pytest.raises(InputError, match="the world has more than 3 parts; raise --rows-per-part"):
        write_world(tmp_path / "world", PLAN, 100)
    assert not (tmp_path / "world").exists()


@pytest.mark.parametrize("fault", [OSError(28, os.strerror(28)), KeyboardInterrupt()])
def test_an_interrupted_run_leaves_nothing(
    fault: BaseException, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real, parts = synthetic_files._bytes, count()

    def fail(frame: pl.DataFrame, kind: str) -> bytes:
        if next(parts) == 2:
            raise fault
        return real(frame, kind)

    monkeypatch.setattr(synthetic_files, "_bytes", fail)
    done = called("synth", "-o", tmp_path / "world", *SIZE, "--rows-per-part", 1000)
    assert done.returncode == (2 if isinstance(fault, OSError) else 130)
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
