"""The public names of the package, and that every option of a command is a keyword of its step."""

import dataclasses
import inspect
import typing

import pytest

import ghostpoi
from ghostpoi.api.given import IN_DATABASES, ReadingOptions
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
def test_a_step_has_the_keywords_and_defaults_that_are_declared(step: str) -> None:
    options = {one.keyword: one for one in declared()[step].values() if one.only != "command"}
    parameters = inspect.signature(getattr(ghostpoi, step)).parameters.values()
    given = {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        given |= dict.fromkeys(groups()["reading options"])
    required = inspect.Parameter.empty
    assert given == {
        name: required if (one.argument or one.required) and not one.optional else one.python_default
        for name, one in options.items()
    }


def test_the_options_of_reading_are_those_of_files() -> None:
    assert set(typing.get_type_hints(ReadingOptions)) == (
        {f.name for f in dataclasses.fields(Reading)} | {"max_size", *IN_DATABASES}
    )
    assert set(typing.get_type_hints(ReadingOptions)) == set(groups()["reading options"])


@pytest.mark.parametrize("step", STEPS)
def test_every_parameter_and_result_has_a_type(step: str) -> None:
    signature = inspect.signature(getattr(ghostpoi, step))
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty, parameter
    assert signature.return_annotation is not signature.empty
