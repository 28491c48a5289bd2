"""--for: named sets of settings, what other options change of them, and what protect says first."""

import json
from pathlib import Path

import pytest
from small_city import SEED, SETS, called, city, protect, sentence

from ghostpoi.draw.publication import PRESETS

STATUS = {
    "partner": "Treat this release as personal data: all rows of a person share an id",
    "research": "Treat this release as personal data: known times of visits lead to their rows",
    "public": "Treat this release as personal data unless you have shown that nobody in it can be singled out",
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_set_of_settings(name: str, tmp_path: Path) -> None:
    made = protect(city(), tmp_path / "r", "--seed", SEED, "--for", name, "--keep", "timezone_offset")
    settings = made.manifest["settings"]
    for key, value in PRESETS[name].items():
        section, _, field = key.partition(".")
        assert not field or str(settings[section][field]) == value
    sets = ", ".join(f"{key}={value}" for key, value in PRESETS[name].items())
    assert made.manifest["preset"] == {"name": name, "sets": sets, "changed": ""}
    said = " ".join(made.done.stdout.split())
    assert said.startswith(STATUS[name])
    assert f"preset {name}: {sets}" in said
    assert "changed by other options" not in said
    done = called("verify", made.folder, "--against", city())
    assert done.returncode == 0, done.stdout


def test_other_options_change_a_preset_and_are_named(tmp_path: Path) -> None:
    more = ("--times", "hour", "--no-candidate", "keep", "--set", "hide.min_visitors=5")
    made = protect(city(), tmp_path / "r", "--seed", SEED, "--for", "public", "--keep", "timezone_offset", *more)
    changed = "identity.times, hide.min_visitors, no_candidate"
    assert made.manifest["preset"]["changed"] == changed
    assert f"changed by other options: {changed}" in " ".join(made.done.stdout.split())
    assert made.manifest["settings"]["identity"] == {"pseudonyms": "session", "times": "hour"}
    assert made.manifest["settings"]["hide"]["min_visitors"] == 5
    other = protect(city(), tmp_path / "s", "--seed", SEED, "--for", "partner", "--method", "random")
    assert other.manifest["preset"]["changed"] == ""
    manifest = json.loads((made.folder / "manifest.json").read_text())
    manifest["preset"]["changed"] = ""
    (made.folder / "manifest.json").write_text(json.dumps(manifest))
    (made.folder / "manifest.sig").unlink()
    assert "which the settings are not" in called("verify", made.folder).stdout.replace("\n", " ")


def test_without_a_preset_the_first_line_says_it_too(tmp_path: Path) -> None:
    made = protect(city(), tmp_path / "r", "--seed", SEED)
    assert made.done.stdout.startswith("Treat this release as personal data: it keeps the user ids")
    assert "preset" not in made.manifest
    said = sentence(called("protect", city(), "-o", tmp_path / "s", *SETS, "--for", "friends"))
    assert said == "--for friends: use partner, research or public"
