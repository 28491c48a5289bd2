"""Draws follow the content of rows: duplicates, another order, another format, an engine, a series."""

import csv
import json
import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_city import CONFIG, SEED, SMALL, called, protect, rich_frame, sentence

import ghostpoi
from ghostpoi.draw.methods import METHODS

NAMES = {"Who": "user", "spot": "venue_id", "catid": "category_id", "lat": "latitude", "lng": "longitude"}
COPIES = 150
CONTENT = ["user", "time", "venue_id"]
WITHOUT_TRAINING = ("crowd", "random", "k-anonymous", "randomised-response", "geo-indistinguishability")


def city() -> pl.DataFrame:
    """The city, with copies of rows, each of which has a copy again."""
    frame = rich_frame().select(*NAMES, "timestamp").rename({**NAMES, "timestamp": "time"})
    some = frame.sample(COPIES, seed=1)
    return pl.concat([frame, some, some])


def written(path: Path, frame: pl.DataFrame) -> Path:
    frame.write_csv(path)
    return path


def shown(clean: pl.DataFrame, release: Path) -> pl.DataFrame:
    """The released venue of each clean row, in the order of content."""
    name = json.loads((release / "manifest.json").read_text())["data"]["file"]
    read = pl.read_parquet if name.endswith("parquet") else pl.read_csv
    columns = [pl.col(c).cast(pl.String) for c in CONTENT]
    venues = read(release / name)["venue_id"].cast(pl.String).alias("released")
    return clean.select(columns).with_columns(venues).sort(*CONTENT, "released")


def told(made: Any) -> int:
    """How many rows repeat others, as `protect` tells the publisher."""
    (count,) = re.findall(r"note: ([\d,]+) rows repeat another's user, time, venue and release", made.done.stderr)
    return int(count.replace(",", ""))


@pytest.mark.parametrize("method", METHODS)
def test_equal_rows_are_released_at_one_venue(method: str, tmp_path: Path) -> None:
    file = written(tmp_path / "city.csv", city())
    made = protect(file, tmp_path / "release", "--method", method, "--seed", SEED)
    each = shown(city(), made.folder).group_by(CONTENT).agg(pl.len(), venues=pl.col("released").n_unique())
    assert each["len"].max() >= 3
    assert each["venues"].max() == 1
    assert told(made) == len(city()) - len(each)
    assert "duplicates" not in json.dumps(made.manifest)  # how many rows are alike in truth is for the publisher alone
    done = called("verify", made.folder, "--against", file)
    assert done.returncode == 0, done.stdout


def test_whether_venues_of_a_crowd_differ_does_not_show(tmp_path: Path) -> None:
    """A second visit in the same second to another venue of the crowd is released as one to the same venue is."""
    frame = city()
    rows = dict(zip(frame["venue_id"], frame.iter_rows(), strict=True))
    names = sorted(rows)
    after = dict(zip(names, [*names[1:], names[0]], strict=True))
    some = frame.sample(COPIES, seed=2)
    other = pl.DataFrame(
        [(user, *rows[after[venue]][1:5], time) for user, venue, *_, time in some.iter_rows()],
        frame.schema, orient="row",
    )  # fmt: skip
    file = written(tmp_path / "city.csv", pl.concat([frame, some, other]))
    one_crowd = [f"method.size={len(names)}", "method.reach_km=50", "filters.min_poi_checkins=1"]
    words = [word for text in [*one_crowd, "filters.min_user_checkins=1"] for word in ("--set", text)]
    made = protect(file, tmp_path / "release", "--seed", SEED, *words)
    released = pl.read_csv(made.data)["venue_id"]
    assert released.n_unique() > len(names) / 2
    assert released[-COPIES:].equals(released[-2 * COPIES : -COPIES])


@pytest.mark.parametrize("method", WITHOUT_TRAINING)
def test_the_order_of_rows_changes_no_release(method: str, tmp_path: Path) -> None:
    shuffled = city().sample(fraction=1.0, shuffle=True, seed=3)
    one, two = (
        shown(frame, protect(written(tmp_path / f"{n}.csv", frame), tmp_path / f"{n}", "--method", method, "--seed",
                             SEED).folder)
        for n, frame in enumerate((city(), shuffled))
    )  # fmt: skip
    assert one.equals(two)


def numbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        user=pl.col("user").cast(pl.Int64), time=pl.col("time").str.to_datetime("%a %b %d %H:%M:%S %z %Y")
    )


def test_the_source_of_rows_changes_no_release(tmp_path: Path) -> None:
    frame = city()
    numbered(frame).write_parquet(parquet := tmp_path / "city.parquet")
    padded = frame.with_columns(
        user=pl.col("user").cast(pl.String).str.zfill(6),
        time=pl.col("time").str.to_datetime("%a %b %d %H:%M:%S %z %Y").dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    files = [written(tmp_path / "city.csv", frame), parquet, written(tmp_path / "padded.csv", padded)]
    more: list[list[Any]] = [[], [], [], ["--engine", "local"]]
    found = []
    for number, (file, words) in enumerate(zip([*files, files[0]], more, strict=True)):
        made = protect(file, tmp_path / str(number), "--seed", SEED, *words)
        found.append(shown(frame, made.folder)["released"].to_list())
    in_memory = ghostpoi.protect(frame, seed=SEED, set=SMALL, config=CONFIG).table["venue_id"]
    columns = [pl.col(c).cast(pl.String) for c in CONTENT]
    ordered = frame.select(columns).with_columns(in_memory.alias("released")).sort(*CONTENT, "released")
    assert [ordered["released"].to_list()] * 4 == found


def test_regions_draw_with_the_numbers_of_one_file(tmp_path: Path) -> None:
    """Two towns far apart: divided or not, a crowd holds venues of one town, so draws are the same."""
    there = city().with_columns(
        latitude=pl.col("latitude") + 30, venue_id="far " + pl.col("venue_id"),
        user=pl.col("user").cast(pl.Int64) + 5000,
    )  # fmt: skip
    both = pl.concat([city().with_columns(user=pl.col("user").cast(pl.Int64)), there])
    both = both.sample(fraction=1.0, shuffle=True, seed=6)
    file = written(tmp_path / "city.csv", both)
    whole = ("--seed", SEED, "--set", "method.draw=even")
    one = protect(file, tmp_path / "one", *whole, "--engine", "local", "--set", "regions.gap_km=20000")
    two = protect(file, tmp_path / "two", *whole, "--engine", "local")
    assert two.manifest["regions"]["count"] == 2
    assert shown(both, one.folder).equals(shown(both, two.folder))
    for made in (one, two):
        assert told(made) == len(both) - len(both.select(CONTENT).unique()) >= 4 * COPIES
        assert "duplicates" not in json.dumps(made.manifest)


def test_a_file_of_few_rows_states_no_figures_of_its_draws(tmp_path: Path) -> None:
    file, frame = tmp_path / "few.csv", city().head(12)
    written(file, frame)
    every = [f"filters.min_{name}=1" for name in ("poi_checkins", "user_checkins", "session_length")]
    words = [word for text in [*every, "method.size=2", "method.reach_km=50"] for word in ("--set", text)]
    made = protect(file, tmp_path / "release", "--seed", SEED, *words)
    assert made.manifest["plausibility"] is None
    assert "drawn_own" not in made.manifest["rows"]
    assert set(made.manifest["rows"]["outside_sessions"]) == {"rows", "no_candidate"}
    assert "how many drew their own venue is not stated" in made.done.stdout
    assert called("verify", made.folder, "--against", file).returncode == 0
    local = protect(file, tmp_path / "local", "--seed", SEED, *words, "--engine", "local")
    assert local.manifest["rows"] == made.manifest["rows"]
    assert local.manifest["plausibility"] is None


def series(tmp_path: Path, first: pl.DataFrame, second: pl.DataFrame) -> tuple[list[str], Any]:
    """Release two files in a series; return the venues of the first release, and what the second printed."""
    files = [written(tmp_path / f"{n}.csv", frame) for n, frame in enumerate((first, second))]
    words = ("--series", tmp_path / "series")
    made = protect(files[0], tmp_path / "release-0", *words)
    done = called("protect", files[1], "-o", tmp_path / "release-1", *words)
    with made.data.open(newline="") as file:
        return [row["venue_id"] for row in csv.DictReader(file)], done


def test_a_series_knows_rows_whatever_their_order_and_times_look_like(tmp_path: Path) -> None:
    frame = city()
    times = pl.col("time").str.to_datetime("%a %b %d %H:%M:%S %z %Y").dt.strftime("%Y-%m-%d %H:%M:%S+00:00")
    order = list(range(len(frame)))
    random.Random(4).shuffle(order)
    before, done = series(tmp_path, frame, frame.with_columns(time=times)[order])
    assert done.returncode == 0, done.stderr
    assert f"{len(frame):,} rows repeat earlier draws" in done.stdout
    after = pl.read_csv(tmp_path / "release-1" / "checkins.csv")["venue_id"].to_list()
    assert after == [before[row] for row in order]


def test_equal_rows_of_a_series_are_released_at_one_venue(tmp_path: Path) -> None:
    frame = city()
    later = pl.concat([frame, frame.sample(COPIES, seed=5)])
    _, done = series(tmp_path, frame, later)
    assert done.returncode == 0, done.stderr
    each = shown(later, tmp_path / "release-1").group_by(CONTENT).agg(venues=pl.col("released").n_unique())
    assert each["venues"].max() == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [("{}", "{:06}"), ("{:06}", "{}"), ("u{}", "u{:06}"), ("user_{}", "USER_{}"), ("{}", "{}.0")],
)
def test_a_series_refuses_user_ids_that_only_look_different(before: str, after: str, tmp_path: Path) -> None:
    frame, users = city(), city()["user"].cast(pl.Int64).to_list()
    written_as = (frame.with_columns(user=pl.Series([form.format(u) for u in users])) for form in (before, after))
    said = sentence(series(tmp_path, *written_as)[1])
    assert "is written otherwise than in earlier releases of the series" in said
    assert said.endswith("write user ids as in the first file")


@pytest.mark.parametrize("reverse", [False, True])
def test_a_series_refuses_a_few_rows_in_the_order_of_their_venues(reverse: bool, tmp_path: Path) -> None:
    """No test can judge the order of so few rows; that of time, or of users and time, is fine."""
    moment = pl.col("time").str.to_datetime("%a %b %d %H:%M:%S %z %Y")
    frame = city()
    few = frame[-400:-385].with_columns(pl.col("user").cast(pl.Int64))
    by_venue = few.sort("venue_id", descending=reverse).with_columns(pl.col("user").cast(pl.String))
    _, done = series(tmp_path, frame, by_venue)
    assert "has 15 rows, too few to test what their order reveals" in sentence(done)
    for number, order in enumerate(([moment], [pl.col("user"), moment])):
        file = written(tmp_path / f"fine-{number}.csv", few.sort(*order).with_columns(pl.col("user").cast(pl.String)))
        protect(file, tmp_path / f"fine-{number}", "--series", tmp_path / "series")
    hidden = ("--series", tmp_path / "other", "--pseudonyms", "week")  # rows are put in the order of time
    protect(written(tmp_path / "by-venue.csv", by_venue), tmp_path / "hidden", *hidden)


def test_weeks_go_on_where_a_series_begins_inside_a_session(tmp_path: Path) -> None:
    """The second file has the whole session, of which the first has the end: the same rows keep their pseudonyms."""
    frame = city().with_columns(moment=pl.col("time").str.to_datetime("%a %b %d %H:%M:%S %z %Y")).sort("moment")
    own = frame.filter(pl.col("user") == frame["user"].mode()[0])
    gaps = own["moment"].diff().dt.total_seconds().to_numpy()
    begin = own["moment"][int((gaps < 6 * 3600).nonzero()[0][3])]  # the row before belongs to the same session
    first = frame.filter(pl.col("moment") >= begin).drop("moment")
    for kind in ("week", "session"):
        files = [written(tmp_path / f"{kind}-{n}.csv", rows) for n, rows in enumerate((first, frame.drop("moment")))]
        words = ("--series", tmp_path / kind, "--pseudonyms", kind)
        made = [protect(file, tmp_path / f"{kind}-{n}", *words) for n, file in enumerate(files)]
        one, two = (pl.read_csv(one.data).select("user", "time", "venue_id").unique() for one in made)
        assert made[1].manifest["series"]["repeated"] == len(first)
        assert len(one.join(two, on=["user", "time", "venue_id"], how="semi")) == len(one)
        for release, file in zip(made, files, strict=True):
            assert called("verify", release.folder, "--against", file).returncode == 0


def test_pseudonyms_of_a_single_user_do_not_tell_how_long_the_name_is(tmp_path: Path) -> None:
    lengths = []
    for number, name in enumerate(("Bo", "Maximiliane Mustermann")):
        frame = city().with_columns(user=pl.lit(name)).unique(["time"]).sort("time")
        file = written(tmp_path / f"{number}.csv", frame)
        made = protect(file, tmp_path / str(number), "--pseudonyms", "session", "--set", "filters.min_poi_checkins=1")
        lengths.append({len(i) for i in pl.read_csv(made.data)["user"].unique()})
    assert lengths[0] == lengths[1]
    assert len(lengths[0]) == 1
