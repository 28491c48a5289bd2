"""constraints.txt pins every package that the project and its tests need, directly or through another package."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LINE = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)*)==([0-9][0-9a-z.]*)")


def needed() -> dict[str, str]:
    """Every needed package, with the one that asks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [project["build-system"]["requires"], project["project"]["dependencies"]]
    groups += project["project"]["optional-dependencies"].values()
    todo = [(Requirement(text), "pyproject.toml") for group in groups for text in group]
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    while todo:
        requirement, parent = todo.pop()
        name = canonicalize_name(requirement.name)
        if name == project["project"]["name"]:  # an extra that joins others
            continue
        found.setdefault(name, parent)
        for extra in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, extra))
            try:
                texts = distribution(name).requires or []
            except PackageNotFoundError:
                continue
            children = map(Requirement, texts)
            todo += [(c, name) for c in children if c.marker is None or c.marker.evaluate({"extra": extra})]
    return found


NEEDED = needed()


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    matches = [LINE.fullmatch(line) for line in lines]
    assert None not in matches, lines[matches.index(None)]
    return {m[1]: m[2] for m in matches if m}


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_the_installed_version_is_pinned(name: str) -> None:
    assert name in pins(), f"{NEEDED[name]} needs {name}; add it to constraints.txt"
    try:
        installed = distribution(name).version
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    assert Version(installed).public == pins()[name]  # without the local part of a CPU build


def test_packages_of_packages_are_found() -> None:
    assert {"markupsafe", "mpmath", "h11"} <= set(NEEDED)


def test_lines_are_in_order() -> None:
    assert list(pins()) == sorted(pins())
