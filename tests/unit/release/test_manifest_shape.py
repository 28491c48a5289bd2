"""A manifest that was changed by hand is refused in one sentence, whatever was changed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_city import called, city, release, sentence

from ghostpoi.release.manifest import read_manifest

WRONG: list[tuple[str, Any, str]] = [
    ("columns.changed_with_the_venue", [["latitude"]], "columns.changed_with_the_venue has the wrong type"),
    ("columns.changed_with_the_venue", [{}], "columns.changed_with_the_venue has the wrong type"),
    ("columns.dropped", 7, "columns.dropped has the wrong type"),
    ("columns.fields", {"poi": None}, "columns.fields has the wrong type"),
    ("columns.fields", {"poi": ["venue_id"]}, "columns.fields has the wrong type"),
    ("rows.in_sessions", {"substituted": None}, "rows.in_sessions has the wrong type"),
    ("rows.outside_sessions", {"substituted": "x"}, "rows.outside_sessions has the wrong type"),
    ("rows.withheld", True, "rows.withheld has the wrong type"),
    ("rows.withheld", -1, "rows.withheld has the wrong type"),
    ("settings.method", [], "settings has the wrong type"),
    ("settings.filters", {"min_poi_checkins": {}}, "settings has the wrong type"),
    ("speed.limit_kmh", 10**400, "speed.limit_kmh has the wrong type"),
    ("speed.limit_kmh", float("nan"), "speed.limit_kmh has the wrong type"),
    ("speed.min_gap_s", 10**30, "speed.min_gap_s has the wrong type"),
    (
        "regions",
        {"count": 2, "gap_km": 5.0, "most_venues": 0, "most_rows": 9},
        "regions.most_venues has the wrong type",
    ),
    ("regions", {"count": 2, "gap_km": [5], "most_venues": 9, "most_rows": 9}, "regions.gap_km has the wrong type"),
    ("regions", {"count": 2, "most_venues": 9, "most_rows": 9}, "regions.gap_km is missing"),
    ("speed.min_gap_s", 0, "speed.min_gap_s has the wrong type"),
    ("data.file", "\ud800", "data.file is not a plain file name"),
    ("data.file", "a\x00b", "data.file is not a plain file name"),
    ("data.file", "..", "data.file is not a plain file name"),
    ("method", None, "method has the wrong type"),
    ("rows", [], "rows has the wrong type"),
]


@pytest.mark.parametrize(("key", "value", "says"), WRONG)
def test_a_wrong_value(key: str, value: Any, says: str, tmp_path: Path) -> None:
    manifest = release().manifest
    *section, last = key.split(".")
    (manifest[section[0]] if section else manifest)[last] = value
    check(json.dumps(manifest).encode(), says, tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("regions", {"count": 2, "gap_km": 5.0, "most_venues": 9, "most_rows": 1}),
        ("regions", {"count": 1, "column": "city", "most_venues": 9, "most_rows": 9}),
        ("speed.min_gap_s", 0.5), ("speed.limit_kmh", 1), ("rows.withheld", 0),
    ],
)  # fmt: skip
def test_a_right_value(key: str, value: Any, tmp_path: Path) -> None:
    manifest = json.loads(json.dumps(release().manifest))
    *section, last = key.split(".")
    (manifest[section[0]] if section else manifest)[last] = value
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert read_manifest(tmp_path) == manifest


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[]", "it is not a JSON object"),
        (b"null", "it is not a JSON object"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "it is nested too deeply"),
        (b" " * (1 << 26) + b"{}", "it is larger than 64 MiB"),
    ],
)
def test_a_wrong_file(content: bytes, says: str, tmp_path: Path) -> None:
    check(content, says, tmp_path)


def check(content: bytes, says: str, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(release().folder, folder)
    path = folder / "manifest.json"
    path.write_bytes(content)
    for more in ((), ("--against", city())):
        said = sentence(called("verify", folder, *more))
        assert said == f"{path} is not a manifest of ghostpoi ({says}); make the release again with protect"
