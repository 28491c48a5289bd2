"""What a manifest states of tool, settings, columns and disclosure must be what its data shows."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ghostpoi import __version__, formats
from ghostpoi.columns.classify import REASONS
from ghostpoi.draw.publication import described, publication
from ghostpoi.formats import CheckinFile
from ghostpoi.release.verify import complaints
from ghostpoi.settings import override

Manifest = dict[str, Any]
HEAD = "user,venue_id,venue_category_id,latitude,longitude,utc_time,mood,title"


@pytest.fixture
def file(tmp_path: Path) -> CheckinFile:
    path = tmp_path / "checkins.csv"
    rows = (f"u{i % 3},v{i % 5},c{i % 2},4{i % 5},-74,2012-04-0{i % 9 + 1}T08:00:00Z,good,t{i % 5}" for i in range(30))
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return formats.read(path)


def stated(file: CheckinFile, method: str = "random", *more: str) -> Manifest:
    """A manifest that says what is there."""
    settings = override(publication(method), more)
    return {
        "tool": {"name": "ghostpoi", "version": __version__}, "method": method, "protocol": "strong",
        "settings": settings.public(), "data": {"rows": 30},
        "rows": {"in_sessions": {"rows": 20}, "outside_sessions": {"rows": 12}, "withheld": 3, "missing": {"kept": 1}},
        "columns": {
            "fields": dict(file.mapping), "kept": ["mood"], "why": {"mood": sorted(REASONS)[0]}, "dropped": ["gone"],
            "changed_with_the_venue": [*HEAD.split(",")[1:5], "title"], "kept_on_request": ["mood"],
        },
        "disclosure": {"category": settings.keeps_category, "category_groups": [], "aggregates": []},
    }  # fmt: skip


COLUMNS = "columns.kept is ['mood'], {} in the manifest"
FAULTS: dict[str, tuple[Callable[[Manifest], object], list[str]]] = {
    "nothing": (lambda m: None, []),
    "a protocol": (lambda m: m.update(protocol="easy"), ["protocol is easy"]),
    "a setting": (
        lambda m: m["settings"]["speed"].pop("empty"), ["settings.speed.empty is strict, None in the manifest"],
    ),
    "one withheld more": (
        lambda m: m["rows"].update(withheld=4), ["the counts of rows add up to 29, data.rows to 30"],
    ),
    "nothing missing": (lambda m: m["rows"].pop("missing"), ["the counts of rows add up to 29, data.rows to 30"]),
    "rows": (
        lambda m: m["data"].update(rows=1031),
        ["data.rows is 30, 1031 in the manifest", "the counts of rows add up to 30, data.rows to 1,031"],
    ),
    "another column kept": (lambda m: m["columns"]["kept"].append("x"), [COLUMNS.format("['mood', 'x']")]),
    "a time that changes": (
        lambda m: m["columns"]["changed_with_the_venue"].append("utc_time"),
        ["columns.changed_with_the_venue is ['venue_id', 'venue_category_id', 'latitude', 'longitude', 'title'], "
         "['venue_id', 'venue_category_id', 'latitude', 'longitude', 'title', 'utc_time'] in the manifest"],
    ),
    "a column that is not there": (
        lambda m: m["columns"].update(changed_with_the_venue=[*HEAD.split(",")[1:5], "title", "x"]),
        ["columns.changed_with_the_venue is ['venue_id', 'venue_category_id', 'latitude', 'longitude', 'title'], "
         "['venue_id', 'venue_category_id', 'latitude', 'longitude', 'title', 'x'] in the manifest"],
    ),
    "a column that does not change": (
        lambda m: m["columns"]["changed_with_the_venue"].remove("title"),
        ["columns.kept is ['mood', 'title'], ['mood'] in the manifest"],
    ),
    "a reason": (
        lambda m: m["columns"]["why"].update(mood="just so"), ["columns.why says of 'mood' what no release says"],
    ),
    "a reason for another column": (
        lambda m: m["columns"]["why"].update(title=sorted(REASONS)[0]),
        ["columns.why says of 'title' what no release says"],
    ),
    "dropped": (
        lambda m: m["columns"]["dropped"].append("mood"), ["columns.dropped names 'mood', which is there"],
    ),
    "kept on request": (
        lambda m: m["columns"]["kept_on_request"].append("title"),
        ["columns.kept_on_request names 'title', which is not kept"],
    ),
    "a category": (
        lambda m: m["disclosure"].update(category="any"), ["disclosure.category is exact, any in the manifest"],
    ),
    "aggregates": (
        lambda m: m["disclosure"].update(aggregates=["visits"]),
        ["disclosure.aggregates is [], ['visits'] in the manifest"],
    ),
    "groups that nobody needs": (
        lambda m: m["disclosure"].update(category_groups=[["c0", "food"], ["c1", "food"]]),
        ["disclosure.category_groups are not those of the categories in the data"],
    ),
    "a preset": (
        lambda m: m.update(preset={"name": "nobody"}), ["preset is {'name': 'nobody'}, which the settings are not"],
    ),
    "a preset that the settings are not": (
        lambda m: m.update(preset={"name": "public"}), ["preset is {'name': 'public'}, which the settings are not"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
@pytest.mark.parametrize("signed", [True, False])
def test_each_fault_is_named(case: str, signed: bool, file: CheckinFile) -> None:
    change, expected = FAULTS[case]
    change(made := deepcopy(stated(file)))
    assert complaints(made, file, signed) == expected


@pytest.mark.parametrize(
    "tool", [{"name": "other", "version": __version__}, {"name": "ghostpoi", "version": "0"}, None]
)
def test_another_version_takes_a_signature(tool: Manifest | None, file: CheckinFile) -> None:
    made = stated(file) | {"tool": tool}
    assert complaints(made, file, signed=True) == []
    assert [one.split(" is ")[0] for one in complaints(made, file, signed=False)] == ["tool"]


def test_a_method_that_is_not_installed_takes_a_signature(file: CheckinFile) -> None:
    made = stated(file) | {"method": "nobody's", "protocol": "easy"}
    assert complaints(made, file, signed=True) == []
    said = "the method nobody's is not installed, so its settings are not checked"
    assert complaints(made, file, signed=False) == [said]


def test_without_the_data_only_settings_and_counts_are_checked(file: CheckinFile) -> None:
    made = stated(file)
    made["columns"]["kept"] = made["disclosure"]["aggregates"] = ["x"]
    assert complaints(made, None, signed=False) == []
    made["rows"]["withheld"] = 0
    assert complaints(made, None, signed=False) == ["the counts of rows add up to 33, data.rows to 30"]


@pytest.mark.parametrize(("groups", "fits"), [
    ([["c0", "food"], ["c1", "sport"]], True), ([["c0", "food"], ["c1", "food"], ["c2", "more"]], True),
    ([["c0", "food"]], False), ([], False), ([["c2", "food"], ["c3", "food"]], False),
])  # fmt: skip
def test_groups_are_stated_of_every_category(groups: list[list[str]], fits: bool, file: CheckinFile) -> None:
    made = stated(file, "crowd", "method.category=group", "method.draw=even")
    made["disclosure"]["category_groups"] = groups
    said = complaints(made, file, signed=False)
    assert ("disclosure.category_groups are not those of the categories in the data" in said) != fits


@pytest.mark.parametrize("preset", ["partner", "research", "public"])
def test_a_preset_is_what_it_sets(preset: str, file: CheckinFile) -> None:
    from ghostpoi.draw.publication import PRESETS

    made = stated(file, "crowd", *(f"{key}={value}" for key, value in PRESETS[preset].items() if "." in key))
    settings = override(publication("crowd"), [f"{k}={v}" for k, v in PRESETS[preset].items() if "." in k])
    made["preset"] = described(settings, preset, "crowd", True)["preset"]
    assert complaints(made, None, signed=False) == []
    made["preset"] = made["preset"] | {"sets": "all"}
    assert complaints(made, None, signed=False) == [f"preset is {made['preset']}, which the settings are not"]
