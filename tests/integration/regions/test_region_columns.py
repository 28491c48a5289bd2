"""Columns of a dataset that is protected by regions: what reveals clean venues anywhere is changed or refused."""

import re
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest
from small_city import called, sentence
from small_world import SEED, manifest, parts, protected, released, rows

from ghostpoi.regions import columns, job

LOCAL = ("--engine", "local")
LARGEST = pl.col("city") == pl.col("city").mode().first()
HASH = pl.col("venue_id").map_elements(lambda text: sha256(f"salt {text}".encode()).hexdigest()[:6], pl.String)


def random(count: int, values: int, seed: int = 0) -> pl.Series:
    return pl.Series([f"phone {n}" for n in np.random.default_rng(seed).integers(0, values, count)])


def last_city() -> str:
    """The city that a sample leaves out if it cannot have all: the last by the hash of its first venue."""
    first = rows().group_by("city").agg(pl.col("venue_id").min())
    return max(first.iter_rows(), key=lambda city: sha256(city[1].encode()).digest())[0]


LAST = pl.col("city") == pl.lit(last_city())


def refusal(data: Path, *words: object) -> str:
    out = data.with_name("release")
    said = sentence(called("protect", data, "-o", out, *SEED, *LOCAL, *words))
    assert not out.exists()
    return said


def failure(data: Path, *words: object) -> str:
    """What is said if a region fails and others are protected."""
    out = data.with_name("release")
    done = called("protect", data, "-o", out, *SEED, *LOCAL, *words)
    assert done.returncode == 1, done.stderr
    assert not out.exists()
    said = re.fullmatch(
        r"ghostpoi: (\d) of (\d) regions are protected, but not region \d \(near .*?; [\d,]+ rows\)( and \d more)?: "
        r"(.*); then start again with --force", done.stderr.splitlines()[-1],
    )  # fmt: skip
    assert said, done.stderr
    assert 0 < int(said[1]) < int(said[2])
    return said[4]


@pytest.fixture
def without_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the last city be in no sample."""
    monkeypatch.setattr(job, "ENOUGH_ROWS", rows().height - 1)


@pytest.mark.parametrize(
    "address",
    [pl.when(LARGEST).then(pl.lit("n/a")).otherwise(HASH), pl.format("near {}", "venue_id")],
    ids=["empty in the largest region", "with the id"],
)
@pytest.mark.parametrize("count", [1, 7])
def test_a_column_becomes_what_it_does_in_one_table(address: pl.Expr, count: int, tmp_path: Path) -> None:
    frame = rows().with_columns(address=address, device=random(rows().height, 5))
    data = parts(tmp_path / "data", count, frame)
    by_region = protected(data, tmp_path / "regions", *LOCAL)
    whole = protected(parts(tmp_path / "one", 1, frame), tmp_path / "whole")
    assert manifest(by_region)["columns"] == manifest(whole)["columns"]
    assert "address" in manifest(by_region)["columns"]["changed_with_the_venue"]
    of_venue = dict(frame.select("venue_id", "address").iter_rows())
    assert released(by_region)["address"].to_list() == [of_venue[v] for v in released(by_region)["venue_id"]]
    assert released(by_region)["device"].equals(frame["device"])
    assert called("verify", by_region, "--against", data).returncode == 0


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pl.when(LAST).then(HASH).otherwise(pl.lit("n/a")), "follows from the venue here, but not in other regions"),
        (
            pl.when(LAST & (pl.int_range(pl.len()).over("city") > 0)).then(HASH).otherwise(pl.lit("n/a")),
            "in this region",
        ),
        (
            pl.when(LAST).then(HASH.str.slice(0, 1)).otherwise(pl.lit(random(rows().height, 5))),
            "follows from the venue here, but not in other regions",
        ),
        (
            pl.when(LAST).then(pl.lit(random(rows().height, 5))).otherwise(HASH),
            "follows from the venue in other regions, but not here",
        ),
    ],
    ids=["elsewhere empty", "elsewhere empty, with an exception", "elsewhere random", "only elsewhere"],
)
@pytest.mark.usefixtures("without_last")
def test_a_column_that_differs_in_one_region_is_refused(column: pl.Expr, said: str, tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 3, rows().with_columns(note=column))
    found = failure(data)
    assert found.startswith("the column 'note' ")
    assert said in found
    assert found.endswith("; leave it out with --drop note, or keep it at your own risk with --keep note")
    protected(data, tmp_path / "release", *LOCAL, "--drop", "note", "--force")


@pytest.mark.usefixtures("without_last")
def test_partial_predictors_in_large_regions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = pl.lit(pl.Series(np.random.default_rng(0).random(rows().height) < 0.7))
    letter = pl.lit(random(rows().height, 16))
    data = parts(tmp_path / "data", 3, rows().with_columns(
        note=pl.when(LAST & some).then(pl.format("phone {}", HASH.str.slice(0, 1))).otherwise(letter)
    ))  # fmt: skip
    few = rows().filter(LAST).height
    for name, value in (("FEW_ROWS", few), ("DIVIDED", 0), ("sample", lambda regions: [])):
        monkeypatch.setattr(columns, name, value)
    assert "in this region; leave it out with --drop note" in failure(data)


def test_the_order_of_rows_is_tested_in_every_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ORDERED", 100), ("DIVIDED", 0)):
        monkeypatch.setattr(columns, name, value)
    city = rows()["city"].value_counts(sort=True)["city"][-1]
    one, others = rows().filter(pl.col("city") == city), rows().filter(pl.col("city") != city)
    data = parts(tmp_path / "data", 3, pl.concat([others, one.sort("venue_id")]))
    said = "its rows are grouped by venue, so their order reveals clean venues; sort them by time with --order time"
    assert failure(data) == said


def hamlet(name: str, at: float, visits: list[tuple[int, int, str]]) -> pl.DataFrame:
    """Rows of a place far from all cities: the user, the venue and the device of each."""
    users, venues, devices = zip(*visits, strict=True)
    return rows()[: len(visits)].with_columns(
        user=pl.Series([f"{name} {user}" for user in users]),
        venue_id=pl.Series([f"{name} {venue}" for venue in venues]),
        latitude=at, longitude=pl.Series([0.001 * venue for venue in venues]), city=pl.lit(name),
        timezone_offset=pl.lit(0, rows().schema["timezone_offset"]), device=pl.Series(devices),
    )  # fmt: skip


def test_in_a_hamlet_the_rows_of_a_venue_agree_by_chance(tmp_path: Path) -> None:
    tourists = [(n, n, f"phone {n % 5}") for n in range(20)] * 4  # everybody is always at the same venue
    frame = pl.concat([
        rows().with_columns(device=random(rows().height, 5)),
        hamlet("chance", -60.0, [(50, 0, "phone 1"), (51, 0, "phone 1"), (52, 1, "phone 2"), (53, 2, "phone 3")]),
        hamlet("tourists", -70.0, tourists),
    ])  # fmt: skip
    plan = pl.format("plan {}", pl.col("user").cast(pl.String).hash(3) % 20)
    one_each = pl.when(pl.col("city") == "tourists").then(random(frame.height, 5)).otherwise("device")
    data = parts(tmp_path / "data", 2, frame.with_columns(plan=plan, device=one_each))
    release = protected(data, tmp_path / "release", *LOCAL)
    assert manifest(release)["regions"]["count"] == 5
    assert {"device", "plan"} <= set(manifest(release)["columns"]["kept"])
    (tmp_path / "told").mkdir()
    told = failure(parts(tmp_path / "told" / "data", 2, frame))
    assert told.startswith("the column 'device' follows from the venue here, but not in other regions")


def groups(column: pl.Expr, folder: Path, count: int) -> tuple[Path, tuple[str, ...]]:
    """A dataset with groups of categories, and the options that use them."""
    own = pl.format("{} {}", "city", "category_id")  # every city has categories of its own
    frame = rows().with_columns(category_id=own if count > 1 else pl.col("category_id")).with_columns(group=column)
    return parts(folder / "data", count, frame), (
        "--map", "category_group=group", "--method", "crowd", "--set", "method.category=group",
    )  # fmt: skip


NUMBER = pl.col("category").hash(1) % 3


def test_the_manifest_lists_the_groups_of_all_regions(tmp_path: Path) -> None:
    data, words = groups(pl.format("g{}", NUMBER), tmp_path, 3)
    release = protected(data, tmp_path / "release", *LOCAL, *words)
    listed = pl.read_parquet(data).select("category_id", "group").unique().sort("category_id")
    assert manifest(release)["disclosure"]["category_groups"] == [list(pair) for pair in listed.iter_rows()]
    assert called("verify", release, "--against", data).returncode == 0


def test_groups_that_differ_between_regions_are_those_of_the_whole_table(tmp_path: Path) -> None:
    data, words = groups(pl.when(LAST).then(pl.format("g{}", (NUMBER + 1) % 3)).otherwise(pl.format("g{}", NUMBER)),
                         tmp_path, 1)  # fmt: skip
    release = protected(data, tmp_path / "release", *LOCAL, *words)
    whole = protected(data, tmp_path / "whole", *words)
    assert manifest(release)["disclosure"] == manifest(whole)["disclosure"]
    assert called("verify", release, "--against", data).returncode == 0


def test_parts_must_agree_about_groups(tmp_path: Path) -> None:
    half = pl.int_range(pl.len()) < pl.len() // 2
    data, words = groups(pl.when(half).then(pl.format("g{}", NUMBER)).otherwise(pl.lit("other")), tmp_path, 2)
    assert "has several groups; give each category one group" in refusal(data, *words)


NOT_OF_THE_VENUE = "so regions would reveal its visits; name a column that follows from the venue"


@pytest.mark.parametrize("count", [1, 4])
def test_regions_must_follow_from_the_venue(count: int, tmp_path: Path) -> None:
    data = parts(tmp_path / "data", count, rows().with_columns(half=pl.int_range(pl.len()) < pl.len() // 2))
    for column in ("user", "half"):  # each of 4 parts has one half
        assert NOT_OF_THE_VENUE in refusal(data, "--map", f"region={column}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--map", "region=venue_id"), "--map region=venue_id: "),
        (("--set", "regions.gap_km=0.1"), "--set regions.gap_km=0.1: "),
        (("--set", "regions.most_rows=1"), "regions.most_rows must be at least 1000, not 1"),
        (("--set", "regions.most_venues=1"), "regions.most_venues must be at least 50, not 1"),
    ],
)
def test_regions_must_not_be_tiny(words: tuple[str, str], said: str, tmp_path: Path) -> None:
    found = refusal(parts(tmp_path / "data", 2), *words)
    assert said in found
    assert "must be at least" in found or "would leave most rows genuine" in found


def by_key(folder: Path, frame: pl.DataFrame, key: str, count: int = 1) -> Path:
    """Write rows as folders named by a column, which the files lack, with several files each."""
    for (value,), part in frame.group_by(key, maintain_order=True):
        for number in range(count):
            path = folder / f"{key}={quote(str(value), safe='')}" / f"{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            part.drop(key).gather_every(count, number).write_parquet(path)
    return folder


def towns() -> pl.DataFrame:
    """The world with towns that halve each city, not its districts."""
    half = pl.when(pl.col("venue_id").hash(0) % 2 == 0).then(pl.lit("St. Mary/Old")).otherwise(pl.lit("New"))
    return rows().with_columns(town=pl.format("{} {}", "city", half)).drop("city")


@pytest.mark.parametrize("count", [1, 2])
def test_names_of_folders_are_columns(count: int, tmp_path: Path) -> None:
    """Substitutes come from the same folder, whether or not it has several files."""
    data = by_key(tmp_path / "data", towns(), "town", count)
    found = protected(data, tmp_path / "by town", *LOCAL, "--map", "region=town")
    assert manifest(found)["regions"]["count"] == 6
    assert manifest(found)["regions"]["column"] == "town"
    town = dict(towns().select("venue_id", "town").iter_rows())
    for path in sorted((found / "checkins").rglob("*.parquet")):
        assert {f"town={quote(town[v], safe='')}" for v in pl.read_parquet(path)["venue_id"]} == {path.parent.name}
    assert called("verify", found, "--against", data).returncode == 0
    told = refusal(data)
    assert ("can become one of town=" if count == 1 else "the part of the folder") in told
    assert "has no column 'village'; its columns are " in refusal(data, "--map", "region=village", "--force")


def test_a_folder_name_is_tested_where_no_file_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "tests_of", lambda regions: [columns.TOGETHER])  # no parts of a region
    last = pl.when(pl.col("city") == rows()["city"].max()).then("town").otherwise(pl.lit("elsewhere"))
    frame = towns().with_columns(rows()["city"]).with_columns(town=last)
    assert "a venue of town=" in failure(by_key(tmp_path / "data", frame, "town", 2))
