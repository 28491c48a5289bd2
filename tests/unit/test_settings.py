"""Settings: assignments, TOML files and error messages."""

import tomllib
from pathlib import Path

import pytest

from ghostpoi.errors import InputError
from ghostpoi.settings import CandidateSettings, FilterSettings, Settings, SpeedSettings, load, override, settings_file


def refused(assignment: str) -> str:
    with pytest.raises(InputError) as error:
        override(Settings(), [assignment])
    return str(error.value)


def test_the_defaults_are_the_readings_of_the_paper() -> None:
    s = Settings()
    assert s.filters == FilterSettings(10, 10, 86_400, 3, 0.8, 0.1)
    assert s.candidates == CandidateSettings(1.0, 6, 1.5, 4, 32)
    assert s.speed == SpeedSettings(60.0, 60.0, "strict")


def test_assignments_apply_in_order() -> None:
    s = override(
        Settings(),
        ["candidates.radius_km=2", "filters.min_poi_checkins = 5", "candidates.radius_km=3", "speed.empty=ignore"],
    )
    assert (s.candidates.radius_km, s.filters.min_poi_checkins, s.speed.empty) == (3.0, 5, "ignore")
    assert s.candidates == CandidateSettings(radius_km=3.0)
    assert Settings().candidates.radius_km == 1.0


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "candidates.radius=2",
            "--set candidates.radius=2: section 'candidates' has no setting 'radius'; "
            "did you mean candidates.radius_km?",
        ),
        ("speed.zzz=2", "--set speed.zzz=2: section 'speed' has no setting 'zzz'; it has limit_kmh, min_gap_s, empty"),
        (
            "candidate.radius_km=2",
            "--set candidate.radius_km=2: there is no section 'candidate'; sections are filters, ",
        ),
        ("__class__.x=2", "there is no section '__class__'"),
        ("radius_km=2", "--set 'radius_km=2' is not of the form section.key=value, e.g. --set candidates.radius_km=2"),
        ("candidates.radius_km", "is not of the form section.key=value"),
        ("filters.min_poi_checkins=many", "filters.min_poi_checkins must be a whole number, not 'many'"),
        ("filters.min_poi_checkins=2.5", "filters.min_poi_checkins must be a whole number, not '2.5'"),
        ("filters.min_poi_checkins=", "filters.min_poi_checkins must be a whole number, not ''"),
        ("filters.min_poi_checkins=0", "filters.min_poi_checkins must be at least 1, not 0"),
        ("filters.train_share=1.5", "filters.train_share must be at least 0 and at most 1, not 1.5"),
        ("filters.train_share=nan", "filters.train_share must be at least 0 and at most 1, not nan"),
        ("candidates.radius_km=far", "candidates.radius_km must be a number, not 'far'"),
        ("candidates.radius_km=inf", "candidates.radius_km must be at least 1e-06 and at most 20000, not inf"),
        ("speed.empty=maybe", "speed.empty must be one of strict, ignore, not 'maybe'"),
    ],
)
def test_what_is_wrong_is_named(assignment: str, message: str) -> None:
    assert message in refused(assignment)
    assert refused(assignment).startswith("--set ")


def test_a_number_beyond_floats_is_refused_too() -> None:
    assert "must be at least 0 and at most 100, not 999" in refused(f"candidates.max_widenings={'9' * 400}")


def save(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


def test_a_toml_file(tmp_path: Path) -> None:
    path = save(tmp_path, '[candidates]\nradius_km = 2\nmin_candidates = 4\n[speed]\nempty = "ignore"\n')
    s = load(path, Settings())
    assert s == Settings(
        candidates=CandidateSettings(radius_km=2.0, min_candidates=4), speed=SpeedSettings(empty="ignore")
    )
    assert repr(s) == repr(
        override(Settings(), ["candidates.radius_km=2", "candidates.min_candidates=4", "speed.empty=ignore"])
    )
    assert load(path, override(Settings(), ["filters.min_poi_checkins=3"])).filters.min_poi_checkins == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("radius_km = 2", "'radius_km' is outside a [section]; put it under one of filters, candidates, speed"),
        ("[candidates]\nradius = 2", "candidates.radius: section 'candidates' has no setting 'radius'; did you mean"),
        ("[candidate]\nradius_km = 2", "there is no section 'candidate'"),
        ("[filters]\nmin_poi_checkins = 2.0", "filters.min_poi_checkins must be a whole number, not 2.0"),
        ("[filters]\nmin_poi_checkins = true", "filters.min_poi_checkins must be a whole number, not True"),
        ("[filters]\ntrain_share = true", "filters.train_share must be a number, not True"),
        ("[filters]\ntrain_share = [1]", "filters.train_share must be a number, not [1]"),
        ("[speed]\nempty = 1", "speed.empty must be one of strict, ignore, not 1"),
        ("[filters", "is not valid TOML ("),
    ],
)
def test_a_wrong_toml_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = save(tmp_path, text)
    with pytest.raises(InputError) as error:
        load(path, Settings())
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_an_absent_toml_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the settings file .*none\.toml: no such file or directory"):
        load(tmp_path / "none.toml", Settings())
    with pytest.raises(InputError, match="is a directory"):
        load(tmp_path, Settings())


def test_what_is_given_stands_in_a_settings_file_and_the_rest_is_off() -> None:
    given = {"columns": {"poi": 'a "b"'}, "limits": {"persons": 0.1}, "method": {"size": 64, "draw": "even"}}
    text = settings_file("city\n.csv", given)
    assert tomllib.loads(text) == given | {"identity": {}}
    assert text.startswith("# For city?.csv\n")
    assert "# reach_km = 40 " in text
    assert "persons = 0.1             # share of people" in text
