"""The paper's printed numbers, as data."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

Printed = tuple[float, ...]  # (mean,) or (mean, std)
Section = dict[str, dict[str, Printed]]  # method -> key -> printed

CITIES = {"nyc": "Foursquare-NYC", "tky": "Foursquare-TKY"}


@cache
def contents(name: str = "paper") -> dict[str, Any]:
    """Read a TOML file of this folder."""
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))


def section(city: str, *names: str) -> Section:
    """Return tables of the paper, joined by method; empty where it has none for this city."""
    found: Section = {}
    for name in names:
        for method, row in contents()[city].get(name, {}).items():
            found.setdefault(method, {}).update({key: tuple(value) for key, value in row.items()})
    return found


def leak_section(city: str) -> dict[str, Section]:
    """Return the points of the leak figure that the text gives: ratio -> method -> key."""
    found: dict[str, Section] = {}
    for method, ratios in contents()[city].get("leak", {}).items():
        for ratio, row in ratios.items():
            found.setdefault(ratio, {})[method] = {key: tuple(value) for key, value in row.items()}
    return found
