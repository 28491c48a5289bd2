"""The public names of the package, and that every option of a command is a keyword of its step."""

import dataclasses
import inspect

import pytest

import ghostpoi
from ghostpoi.api.given import IN_DATABASES
from ghostpoi.formats import Reading
from ghostpoi.options import declared, groups

STEPS = ("audit", "choose", "export", "inspect", "person", "protect", "report", "synth", "verify")


def test_dir_shows_exactly_the_public_names() -> None:
    results = {"Audit", "Choice", "Export", "Inspection", "Person", "Release", "Report", "Verification"}
    assert set(dir(ghostpoi)) == {*STEPS, *results, "InputError", "__version__"}
    assert set(ghostpoi.__all__) == set(dir(ghostpoi))
    assert all(getattr(ghostpoi, name) is not None for name in dir(ghostpoi))
    with pytest.raises(AttributeError, match="module 'ghostpoi' has no attribute 'nothing'"):
        ghostpoi.nothing  # noqa: B018


@pytest.mark.parametrize("step", STEPS)
def test_a_step_has_the_keywords_that_are_declared(step: str) -> None:
    parameters = inspect.signature(getattr(ghostpoi, step)).parameters
    assert list(parameters) == [one.keyword for one in declared()[step].values() if one.only != "command"]


def test_places_and_defaults_are_those_that_scripts_rely_on() -> None:
    parameters = inspect.signature(ghostpoi.protect).parameters
    assert [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD] == ["source", "method"]
    defaults = {name: parameters[name].default for name in ("method", "output", "seed", "keep", "resume", "workers")}
    assert defaults == {
        "method": "crowd", "output": None, "seed": None, "keep": (), "resume": False, "workers": 0,
    }  # fmt: skip
    positional = {
        "synth": ["users", "pois", "days"],
        "export": ["release", "to", "output"],
        "audit": ["source", "release"],
    }
    for step, names in positional.items():
        given = inspect.signature(getattr(ghostpoi, step)).parameters.values()
        assert [p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD] == names


def test_the_options_of_reading_are_those_of_files() -> None:
    stated = {f.name for f in dataclasses.fields(Reading)} | {"max_size", *IN_DATABASES}
    assert set(groups()["reading options"]) == stated


@pytest.mark.parametrize("step", STEPS)
def test_every_parameter_and_result_has_a_type(step: str) -> None:
    signature = inspect.signature(getattr(ghostpoi, step))
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty, parameter
    assert signature.return_annotation is not signature.empty
