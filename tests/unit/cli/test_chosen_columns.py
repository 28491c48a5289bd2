"""`inspect` says which column it took for which field, and why."""

import json
from pathlib import Path

from small_city import called, city, rich_csv

OPEN = ["--set", "filters.min_poi_checkins=1", "--set", "filters.min_user_checkins=1"]


def shown(*words: object) -> list[str]:
    return [line.rstrip() for line in called("inspect", *words).stdout.splitlines()]


def test_columns_are_named_with_the_reason() -> None:
    done = called("inspect", rich_csv(), "--map", "user=Who", "--map", "poi=spot", "--json")
    assert json.loads(done.stdout)["columns"] == {
        "user": {"column": "Who", "chosen_by": "--map"},
        "poi": {"column": "spot", "chosen_by": "--map"},
        "category": {"column": "catid", "chosen_by": "its name"},
        "lat": {"column": "lat", "chosen_by": "its name"},
        "lon": {"column": "lng", "chosen_by": "its name"},
        "time": {"column": "timestamp", "chosen_by": "its name"},
    }


def test_columns_that_were_passed_over_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    row = "u{0},v,c,Café,1,2,{0}\n"
    path.write_text(
        "user,[b]venue_id,category_id,category_name,lat,lon,time\n" + "".join(row.format(i // 9) for i in range(27))
    )
    lines = shown(path, *OPEN, "--set", "filters.min_session_length=1", "--map", "poi=[b]venue_id")
    assert "category  category_id  its name, before 'category_name'" in lines
    assert "poi       [b]venue_id  --map" in lines


def test_a_format_with_fixed_places_says_so() -> None:
    assert "time      utc_time     its place (tsmc2014)" in shown(city())


def test_json_has_names(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    line = {"user": 1, "poi": "a", "lat": 1.0, "lon": 2.0, "time": "2012-04-03T05:51:34Z"}
    path.write_text("".join(json.dumps(line) + "\n" for _ in range(15)))
    assert "time   time    its name" in shown(path, *OPEN)
