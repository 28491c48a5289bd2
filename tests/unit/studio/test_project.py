"""Decisions about a file: what forms may say, and what follows from them."""

import json
import shlex
import stat
import tomllib
from pathlib import Path

import pytest

from ghostpoi.errors import InputError
from ghostpoi.studio.project import Project

FORM = {"purpose": "public", "pseudonyms": "", "times": "", "category": "any", "size": "64", "reach_km": "40"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(str(tmp_path / "my city.csv"))


def test_decisions_are_found_again_and_only_their_owner_reads_them(project: Project) -> None:
    project.with_settings(FORM | {"times": "hour", "limit-persons": "12,5"}).save()
    found = Project.of(project.path)
    assert (found.times, found.limits, found.purpose) == ("hour", {"persons": 0.125}, "public")
    stored = project.folder / "decisions.json"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert [stat.S_IMODE(one.stat().st_mode) for one in (project.folder, project.folder.parent)] == [0o700] * 2
    stored.write_text(json.dumps({"file": "/etc/passwd", "times": "week"}))
    assert Project.of(project.path).file == project.file
    stored.write_text("{")
    assert Project.of(project.path) == project


def test_a_dial_that_nobody_moved_follows_the_recipient(project: Project) -> None:
    assert project.dials == {"size": 64, "reach_km": 40}
    partner = project.with_settings(FORM | {"purpose": "partner"})
    assert (partner.size, partner.dials["size"]) == (0, 48)
    moved = project.with_settings(FORM | {"size": "48"})
    assert (moved.size, moved.dials["size"]) == (48, 48)
    assert moved.with_settings(FORM | {"size": "48", "reach_km": "5"}).toml().count("size = 48") == 1


def test_the_settings_file_and_the_commands_repeat_the_decisions(project: Project) -> None:
    names = ["who", "where", "note", "spare"]
    form = {"field-0": "user", "field-1": "poi", "fate-2": "drop", "fate-3": "keep", "timezone": " Europe/Paris "}
    found = project.with_columns(form, dict.fromkeys(names, "")).with_settings(
        FORM | {"pseudonyms": "week", "reach_km": "5"}
    )
    stated = tomllib.loads(found.toml())
    assert stated["columns"] == {"user": "who", "poi": "where"}
    assert stated["identity"] == {"pseudonyms": "week"}
    assert stated["method"] == {"reach_km": 5}
    assert stated["limits"] == {}
    protect, verify, audit, *reports = map(shlex.split, found.with_release({"title": "A b"}).commands())
    file, out, config = "my city.csv", "my city-release", "my city.csv.toml"
    assert protect == ["ghostpoi", "protect", file, "-o", out, "--config", config,
                       "--for", "public", "--keep", "spare", "--drop", "note",
                       "--timezone", "Europe/Paris"]  # fmt: skip
    assert verify[2:5] == [out, "--against", file]
    assert audit[-5:] == ["--timezone", "Europe/Paris", "--seeds", "1", "--no-naturalness"]
    assert reports == [["ghostpoi", "report", "my city-release", "--title", "A b"],
                       ["ghostpoi", "report", "my city-release", "--dpia", "--title", "A b"]]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [({"size": "7"}, "8 to 128"), ({"size": "x"}, "8 to 128"), ({"reach_km": "-1"}, "1 to 40"),
     ({"times": "week"}, "none of"), ({"purpose": "me"}, "none of"), ({"limit-persons": "101"}, "from 0 to 100"),
     ({"limit-persons": "nan"}, "from 0 to 100")],
)  # fmt: skip
def test_values_that_no_dial_has_are_refused(project: Project, change: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        project.with_settings(FORM | change)


@pytest.mark.parametrize("name", ["../other", "a/b", ".hidden", "x.private", "a\nb", "x" * 90])
def test_the_release_lies_next_to_the_file(project: Project, name: str) -> None:
    with pytest.raises(InputError, match="cannot name the release"):
        project.with_release({"release": name})
    assert project.with_release({"release": "Zürich 2012"}).out == project.path.with_name("Zürich 2012")


def test_two_columns_cannot_hold_the_same(project: Project) -> None:
    with pytest.raises(InputError, match="a and b cannot both be the venue"):
        project.with_columns({"field-0": "poi", "field-1": "poi"}, {"a": "poi", "b": ""})


def test_a_form_that_agrees_states_nothing_new(project: Project) -> None:
    found = {"who": "user", "where": "poi", "note": ""}
    form = {"field-0": "user", "field-1": "poi", "field-2": "", "fate-2": ""}
    assert project.with_columns(form, found) == project
    assert project.with_columns(form | {"field-2": "time"}, found).map == {
        "user": "who",
        "poi": "where",
        "time": "note",
    }
