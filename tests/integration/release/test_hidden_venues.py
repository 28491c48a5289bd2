"""Homes, and venues with few visitors, are never released as themselves: in every method, in series, by region."""

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from monthly_city import month, release_in
from small_city import SEED, called, city, protect, release, rich_frame, sentence
from three_cities import SETS, all_rows

from ghostpoi.draw.methods import METHODS

HOMES = {"Home (private)", "Residential Building"}
KEEP = ("--set", "hide.homes=false")


def lines(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="latin-1") as file:
        return list(csv.reader(file, delimiter="\t"))


def home_id() -> str:
    """The category of private homes."""
    return next(row[2] for row in lines(city()) if row[3] == "Home (private)")


def failed(folder: Path, *more: object) -> list[str]:
    return [
        c["check"] for c in json.loads(called("verify", folder, *more, "--json").stdout)["checks"] if not c["passed"]
    ]


@pytest.mark.parametrize("method", METHODS)
def test_no_method_releases_a_home(method: str) -> None:
    made = release(method)
    before, after = lines(made.file), lines(made.data)
    homes = {row[1] for row in before if row[3] in HOMES}
    rows = sum(row[1] in homes for row in before)
    assert rows > len(before) / 20
    assert not homes & {row[1] for row in after}
    assert len(after) == len(before)
    counted = made.manifest["rows"]["hidden"]
    assert (counted["venues"], counted["rows"], counted["withheld"]) == (len(homes), rows, 0)
    assert f"{rows:,} rows are at {len(homes):,} homes" in " ".join(made.done.stdout.split())


def test_homes_can_be_kept() -> None:
    made = release("crowd", "txt", *KEEP)
    assert HOMES & {row[3] for row in lines(made.data)}
    assert made.manifest["rows"]["hidden"] == {"venues": 0, "rows": 0, "borrowed": 0, "withheld": 0}
    assert not failed(made.folder)
    assert not failed(made.folder, "--against", city())


def test_a_home_that_was_put_back_fails_with_and_without_the_clean_file(tmp_path: Path) -> None:
    made = release("crowd", "txt", *KEEP)
    folder = tmp_path / "release"
    folder.mkdir()
    manifest = made.manifest
    manifest["settings"]["hide"]["homes"] = True
    (folder / made.data.name).write_bytes(made.data.read_bytes())
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert failed(folder) == ["hidden venues"]
    assert "hidden venues" in failed(folder, "--against", city())


@pytest.mark.parametrize("method", ["crowd", "random", "geo-indistinguishability", "k-anonymous"])
def test_venues_with_few_visitors_can_be_hidden(method: str) -> None:
    made = release(method, "txt", "--set", "hide.min_visitors=4")
    clean = pl.DataFrame([(row[1], row[0]) for row in lines(made.file)], ["venue", "user"], orient="row")
    visitors = dict(clean.group_by("venue").agg(pl.col("user").n_unique()).iter_rows())
    after = [row[1] for row in lines(made.data)]
    assert min(visitors[venue] for venue in after) >= 4
    assert len(after) == len(clean) - made.manifest["rows"]["hidden"]["withheld"]
    assert not failed(made.folder, "--against", city())
    assert not failed(made.folder)


COLUMNS = {"Who": "user", "spot": "venue_id", "catid": "category", "lat": "lat", "lng": "lng", "timestamp": "time"}


def test_categories_without_names_can_be_named(tmp_path: Path) -> None:
    """Numbers say nothing; the publisher names those that are homes."""
    frame = rich_frame()
    number = {one: str(7000 + at) for at, one in enumerate(frame["catid"].unique().sort())}
    frame = frame.with_columns(catid=pl.col("catid").replace_strict(number)).select(*COLUMNS).rename(COLUMNS)
    frame.write_csv(tmp_path / "city.csv")
    at_home = set(frame.filter(pl.col("category") == number[home_id()])["venue_id"])
    silent = protect(tmp_path / "city.csv", tmp_path / "one", "--method", "crowd", "--seed", SEED)
    assert at_home & set(pl.read_csv(silent.data)["venue_id"])
    more = ("--set", f"hide.categories={number[home_id()]}")
    made = protect(tmp_path / "city.csv", tmp_path / "two", "--method", "crowd", "--seed", SEED, *more)
    assert not at_home & set(pl.read_csv(made.data)["venue_id"])
    assert not failed(made.folder, "--against", tmp_path / "city.csv")


def test_names_next_to_numbers_are_read(tmp_path: Path) -> None:
    frame = pl.DataFrame([row[:6] + row[7:] for row in lines(city())], orient="row")
    frame.columns = ["user", "venue_id", "category_id", "category_name", "lat", "lon", "time"]
    number = {one: str(at) for at, one in enumerate(frame["category_id"].unique().sort())}
    frame.with_columns(pl.col("category_id").replace_strict(number)).write_csv(tmp_path / "city.csv")
    made = protect(tmp_path / "city.csv", tmp_path / "release", "--method", "crowd", "--seed", SEED)
    after = pl.read_csv(made.data)
    assert made.manifest["rows"]["hidden"]["rows"] > 0
    assert not HOMES & set(after["category_name"])


def test_a_visit_to_a_home_is_released_like_one_to_its_neighbour(tmp_path: Path) -> None:
    """Where in the crowd a visit was does not show, at home or elsewhere: some homes change places with shops."""
    frame = rich_frame().select(*COLUMNS).rename(COLUMNS)
    homes = frame.filter(pl.col("category") == home_id())["venue_id"].unique().sort().to_list()
    others = frame.filter(pl.col("category") != home_id())["venue_id"].unique().sort().to_list()
    venues = {row[1]: row[1:5] for row in frame.iter_rows()}
    swap = dict(zip(homes[:5], others[:5], strict=True)) | dict(zip(others[:5], homes[:5], strict=True))
    swapped = [(row[0], *venues[swap.get(row[1], row[1])], row[5]) for row in frame.iter_rows()]
    one_crowd = [f"hide.categories={home_id()}", "method.size=500", "method.draw=even"]
    one_crowd += ["filters.min_poi_checkins=1", "filters.min_user_checkins=1"]
    words = [word for text in one_crowd for word in ("--set", text)]
    released = []
    for name, table in (("one", frame), ("two", pl.DataFrame(swapped, frame.schema, orient="row"))):
        table.write_csv(tmp_path / f"{name}.csv")
        made = protect(tmp_path / f"{name}.csv", tmp_path / name, "--method", "crowd", "--seed", SEED, *words)
        released.append(pl.read_csv(made.data)["venue_id"].to_list())
    assert released[0] == released[1]


def test_a_region_of_homes_alone_is_withheld(tmp_path: Path) -> None:
    """Three cities, and far from them a village of which only homes are known."""
    rows = all_rows().with_columns(pl.col("utc_time").dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
    some = rows.filter(pl.col("category") == "Home (private)").head(1)["venue_id"].to_list()
    village = rows.filter(pl.col("venue_id").is_in(some)).with_columns(
        venue_id=pl.lit("far away"), user=pl.lit(999), latitude=pl.lit(-50.0), longitude=pl.lit(-100.0)
    )
    village = village.cast({name: rows.schema[name] for name in rows.columns})
    file = tmp_path / "world.csv"
    pl.concat([rows, village]).write_csv(file)
    done = called("protect", file, "-o", tmp_path / "r", "--engine", "local", "--seed", SEED, *SETS)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    counted = manifest["rows"]["hidden"]
    assert counted["withheld"] == manifest["rows"]["withheld"] == len(village)
    after = pl.read_csv(tmp_path / "r" / manifest["data"]["file"])
    assert len(after) == len(rows)
    assert not HOMES & set(after["category"])
    found = called("verify", tmp_path / "r", "--against", file)
    assert found.returncode == 0, found.stdout


def test_a_file_of_homes_alone_is_refused(tmp_path: Path) -> None:
    rows = [row for row in lines(city()) if row[3] in HOMES]
    file = tmp_path / "homes.txt"
    file.write_text("".join("\t".join(row) + "\n" for row in rows), "latin-1")
    text = sentence(called("protect", file, "-o", tmp_path / "r", *SETS))
    assert text.startswith("all venues are homes or others that are never released")
    assert "--set hide.homes=false" in text


def test_a_series_never_shows_a_home(tmp_path: Path) -> None:
    """Homes of later months draw from the crowds of the series; what was hidden when it came stays hidden."""
    seen = 0
    for number in range(3):
        made = release_in(tmp_path / "series", month(number), tmp_path / f"r{number}", "--set", "hide.min_visitors=2")
        before, after = pl.read_csv(made.file), pl.read_csv(made.data)
        assert not HOMES & set(after["category"])
        few = before.group_by("venue_id").agg(pl.col("user").n_unique()).filter(pl.col("user") < 2)["venue_id"]
        seen += len(set(few) & set(after["venue_id"]))
        assert not failed(made.folder, "--against", made.file)
        assert not failed(made.folder)
        if number == 0:
            assert not set(few) & set(after["venue_id"])
            hidden = set(before["venue_id"]) - set(after["venue_id"])
    assert seen == 0 or hidden
    assert called("series", "verify", tmp_path / "series").returncode == 0
    other = called("protect", month(3), "-o", tmp_path / "x", "--series", tmp_path / "series")
    assert "hide.min_visitors is 1 here and 2 in" in sentence(other)


def test_a_table_of_venues_does_not_list_homes(tmp_path: Path) -> None:
    """Visited or not."""
    before = lines(city())
    venues = {row[1]: row[2:6] for row in before} | {"unvisited": ["9", "Apartment", "40.7", "-74.0"]}
    with (tmp_path / "venues.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["venue_id", "category_id", "category_name", "lat", "lon"]] + [
            [name, *rest] for name, rest in venues.items()
        ])  # fmt: skip
    with (tmp_path / "city.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["user", "venue_id", "time"]] + [[row[0], row[1], row[-1]] for row in before])
    words = ("--venues", tmp_path / "venues.csv", "--method", "crowd")
    made = protect(tmp_path / "city.csv", tmp_path / "release", *words)
    listed = pl.read_csv(made.folder / "venues.csv")
    assert set(listed["venue_id"]) == {name for name, rest in venues.items() if rest[1] not in HOMES | {"Apartment"}}
    assert set(pl.read_csv(made.data)["venue_id"]) <= set(listed["venue_id"])
    assert not failed(made.folder, "--against", tmp_path / "city.csv")
    few = protect(tmp_path / "city.csv", tmp_path / "few", *words, "--set", "hide.min_visitors=4")
    assert 0 < len(pl.read_csv(few.folder / "venues.csv")) < len(listed)
    assert not failed(few.folder, "--against", tmp_path / "city.csv")


def test_an_audit_measures_popularity_over_venues_that_may_appear() -> None:
    words = [
        "--adversaries",
        "posterior",
        "--seeds",
        "1",
        "--no-naturalness",
        "--victim",
        "markov",
        "--json",
        "--no-store",
    ]
    for setting in ("min_poi_checkins=5", "train_share=0.5", "val_share=0.25"):
        words += ["--set", f"filters.{setting}"]
    found = []
    for more in ((), KEEP):  # what the audit assumes of the rule: by default, what the manifest states
        done = called("audit", city(), release("crowd").folder, *words, *more)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout)["utility"]["popularity"])
    assert found[0]["poi_js"] < found[1]["poi_js"]
    assert found[0]["category_js"] < found[1]["category_js"]
