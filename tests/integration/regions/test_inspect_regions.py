"""`inspect --engine`: a dataset is described region by region."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_city import called, sentence
from three_cities import SETS, all_rows, one_city, three_cities

import ghostpoi

BY_REGION = ("--engine", "local")


def inspected(*words: object) -> dict[str, Any]:
    done = called("inspect", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("method", ["crowd", "random"])
def test_the_summary_of_one_region_is_that_of_the_whole_table(method: str) -> None:
    words = (one_city(), "--method", method, *SETS)
    found = inspected(*words, *BY_REGION)
    regions = found.pop("regions")
    assert found == inspected(*words)
    assert regions["count"] == 1
    assert regions["smallest"] == regions["largest"][0]
    assert regions["smallest"]["rows"] == found["checkins"]


def test_counts_of_regions_add_up_and_users_count_once() -> None:
    found, rows = inspected(three_cities(), *SETS, *BY_REGION), all_rows()
    per_city = rows.group_by("city").agg(pl.len(), pl.col("venue_id").n_unique()).sort("len", descending=True)
    assert [(one["rows"], one["venues"]) for one in found["regions"]["largest"]] == per_city.select(
        "len", "venue_id"
    ).rows()
    assert found["regions"]["count"] == 3
    assert rows.group_by("city").agg(pl.col("user").n_unique())["user"].sum() > found["users"]  # people travel
    same = ("checkins", "users", "pois", "categories", "duplicates", "time", "pois_with_several_positions", "columns")
    whole = inspected(three_cities(), *SETS)
    assert {name: found[name] for name in same} == {name: whole[name] for name in same}
    assert "regions" not in whole
    each = []
    for city in per_city["city"]:
        path = one_city().with_name(f"alone-{city}.parquet")
        rows.filter(pl.col("city") == city).write_parquet(path)
        each.append(inspected(path, *SETS))
    for name in ("sessions", "positions"):
        assert found[name] == {part: sum(one[name][part] for one in each) for part in found[name]}
    for number, step in enumerate(found["filters"]):
        for count in ("rows_before", "rows_after"):
            assert step[count] == sum(one["filters"][number][count] for one in each)
    sessions = [sum(one["sessions"].values()) for one in each]
    mean = sum(one["session_length"]["mean"] * n for one, n in zip(each, sessions, strict=True)) / sum(sessions)
    assert found["session_length"]["mean"] == pytest.approx(mean)
    covered = sum(one["method"]["coverage"] * one["checkins"] for one in each) / found["checkins"]
    assert found["method"]["coverage"] == pytest.approx(covered)


def test_regions_may_follow_a_column_and_some_may_have_no_sessions() -> None:
    text = called("inspect", three_cities(), "--map", "region=city", "--set", "filters.min_poi_checkins=60")
    assert text.returncode == 0, text.stderr
    assert "3 regions of the column city; the smallest has" in text.stdout
    assert "; the filters leave no sessions in " in text.stdout
    for city in all_rows()["city"].unique():
        assert city in text.stdout
    nothing = sentence(called("inspect", three_cities(), *BY_REGION, "--set", "filters.min_poi_checkins=100000"))
    assert nothing.startswith(f"{three_cities()}: the filters leave no sessions in any region; lower ")


def test_where_rows_lack_a_value(tmp_path: Path) -> None:
    lines = one_city().read_text().splitlines()
    place = lines[0].split(",").index("venue_id")
    for number in (7, 30):
        values = lines[number].split(",")
        lines[number] = ",".join([*values[:place], "", *values[place + 1 :]])
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(lines) + "\n")
    words = (path, "--missing", "drop", *SETS)
    found, whole = inspected(*words, *BY_REGION), inspected(*words)
    assert found["missing"] == whole["missing"]
    assert found["missing"]["rows"] == 2
    assert found["users"] == whole["users"]


def test_the_api_and_what_is_refused() -> None:
    found = ghostpoi.inspect(three_cities(), engine="local", map={"region": "city"}, set={"regions.most_rows": 2000})
    assert found.summary["regions"]["count"] > 3
    assert max(one["rows"] for one in found.summary["regions"]["largest"]) <= 2000
    assert "--engine nowhere: unknown engine" in sentence(called("inspect", one_city(), "--engine", "nowhere"))
    refused = sentence(called("inspect", one_city(), *BY_REGION, "--set", "method.category=group"))
    assert refused.startswith("--set method.category=group needs all rows at once")
