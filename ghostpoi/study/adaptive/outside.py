"""What was measured outside of this project, as data: where to start from, and what to reach."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def contents() -> dict[str, Any]:
    """The whole file."""
    return tomllib.loads((Path(__file__).parent / "outside.toml").read_text("utf-8"))


def accuracy() -> dict[str, dict[str, float]]:
    """Method -> adversary -> acc@1 of one seed."""
    found: dict[str, dict[str, float]] = contents()["accuracy"]
    return found


def naturalness() -> dict[str, float]:
    """Method -> mean log p."""
    found: dict[str, float] = contents()["naturalness"]
    return found


def at_least() -> dict[str, float]:
    """Method -> the acc@1 that A8 has to win back from it."""
    found: dict[str, float] = contents()["at_least"]
    return found


def target(name: str) -> float:
    """A bound that a defence is to keep."""
    return float(contents()["target"][name])
