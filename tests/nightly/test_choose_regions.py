"""`choose --engine`: settings are tried on a sample of regions."""

import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_city import called, scratch, sentence
from three_cities import SETS, one_city, three_cities

LOCAL = ("--engine", "local")
KEEP = ("--keep", "timezone_offset", "--seeds", 1)


@cache
def chosen(file: Path, *words: object, cache: str = "choose-regions") -> dict[str, Any]:
    page = scratch() / "choice-regions.html"
    done = called("choose", file, "-o", page, "--cache", scratch() / cache, *SETS, *KEEP, *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"page": page.read_text()}


def test_one_region_is_tried_like_the_whole_table(tmp_path: Path) -> None:
    city = pl.read_csv(one_city())  # one file would be read into memory
    for number, part in enumerate((city[: city.height // 2], city[city.height // 2 :])):
        part.write_csv(tmp_path / f"part-{number}.csv")
    same = ("--keep-category", "exact")  # half of all settings
    found, whole = chosen(tmp_path, *LOCAL, *same), chosen(tmp_path, *same)
    expected = {trial["name"]: trial for trial in whole["tried"]}
    assert [trial["name"] for trial in found["tried"]] == [*expected]
    for trial in found["tried"]:
        other = expected[trial["name"]]
        for measure in ("mean_km", "p95_km", "left_genuine", "category_match", "flows", "popularity", "missed"):
            assert trial[measure] == pytest.approx(other[measure]), measure
        assert trial["test_positions"] == other["test_positions"]
        if trial["complete"] == other["complete"]:
            assert trial["worst"] == pytest.approx(other["worst"])
    assert found["regions"]["count"] == 1
    assert "regions" not in whole


def test_the_sample_is_stated_and_the_recommended_command_works(tmp_path: Path) -> None:
    found = chosen(three_cities(), *LOCAL, "--regions", 2, "--map", "region=city")
    regions = found["regions"]
    assert (regions["count"], regions["sampled"]) == (3, 2)
    assert 0 < regions["share_of_rows"] < 1
    assert f"tried on 2 of 3 regions ({regions['share_of_rows']:.1%} of rows), chosen by a hash" in found["page"]
    words = shlex.split(found["recommended"]["command"])
    assert words[words.index("--engine") + 1] == "local"
    assert words[words.index("--map") + 1] == "region=city"
    assert "--regions" not in words
    words[words.index("RELEASE")] = str(tmp_path / "release")
    made = called(*words[1:])
    assert made.returncode == 0, made.stderr
    assert json.loads((tmp_path / "release" / "manifest.json").read_text())["regions"]["column"] == "city"


def test_what_is_refused() -> None:
    words = ("choose", three_cities(), "-o", scratch() / "x.html", *KEEP)
    assert "--regions is for a dataset of many regions and needs --engine" in sentence(called(*words, "--regions", 2))
    group = sentence(called(*words, *LOCAL, "--keep-category", "group"))
    assert group.startswith("--set method.category=group needs all rows at once")
    few = sentence(called(*words, *LOCAL, "--set", "filters.min_poi_checkins=9999"))
    assert "the filters leave too few sessions in all 3 regions of the sample" in few
    needed = sentence(called(*words, *LOCAL, "--drop", "user"))  # columns are tested as protect tests them
    assert "--drop user: a release needs this column" in needed
