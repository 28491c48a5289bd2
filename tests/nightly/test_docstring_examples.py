"""Every public name has an example in its docstring, and the examples are right."""

import doctest
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import polars
import pytest

import ghostpoi
from ghostpoi import options
from ghostpoi.api import door

NAMES = [name for name in ghostpoi.__all__ if name != "__version__"]
FLAGS = doctest.ELLIPSIS | doctest.REPORT_NDIFF


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with what the examples name: a table and a release of it."""
    before, path = Path.cwd(), tmp_path_factory.mktemp("examples")
    os.chdir(path)
    _run(ghostpoi.synth, "synth")  # writes checkins.csv
    ghostpoi.protect("checkins.csv", output="release")
    yield path
    os.chdir(before)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name(name: str) -> None:
    assert _run(getattr(ghostpoi, name), name) > 0, "it has no example"


def test_the_examples_of_messages() -> None:
    assert _run(options, "options") > 2
    assert _run(door, "door") > 0


def _run(thing: Any, name: str) -> int:
    """Run the examples of a docstring, and return how many there are."""
    known = vars(thing) if isinstance(thing, ModuleType) else {"ghostpoi": ghostpoi, "polars": polars}
    found = doctest.DocTestFinder(recurse=isinstance(thing, ModuleType)).find(thing, name, globs=dict(known))
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in found:
        told: list[str] = []
        assert runner.run(test, out=told.append).failed == 0, "".join(told)
    return sum(len(test.examples) for test in found)
