"""Sentences of the paper that its own tables contradict, with the figures on both sides."""

import math
from itertools import pairwise
from typing import NamedTuple

from ghostpoi.study.paper import CITIES, Section, contents, section

GAPS = ("prot", "mean", "worst")


class Rise(NamedTuple):
    """A score of Table VI that rises with the entropy floor, where the text says that all trend downward."""

    key: str
    floors: tuple[float, float]  # bits
    printed: tuple[float, float]


class BelowUniform(NamedTuple):
    """A printed naturalness below that of a POI drawn evenly from all: such a release is not near the manifold."""

    city: str
    method: str
    printed: float
    uniform: float


def rises() -> list[Rise]:
    """Find the scores of Table VI that rise from one entropy floor to the next."""
    floors = {_floor(text): row for text, row in section("nyc", "entropy").items()}
    return [
        Rise(key, (low, high), (floors[low][key][0], floors[high][key][0]))
        for key in GAPS
        for low, high in pairwise(sorted(floors))
        if floors[high][key][0] > floors[low][key][0]
    ]


def _floor(method: str) -> float:
    """The entropy floor in the name of a method, such as `ghost method.eta=1.0`; 0 without one."""
    return float(method.partition("method.eta=")[2] or 0)


def below_uniform() -> list[BelowUniform]:
    """Find the releases of Table III that the trajectory LM takes for less likely than even draws from all POIs."""
    return [
        BelowUniform(city, method, row["naturalness"][0], uniform(city))
        for city in CITIES
        for method, row in section(city, "naturalness").items()
        if row["naturalness"][0] < uniform(city)
    ]


def uniform(city: str) -> float:
    """Return the log-likelihood of every POI under an even draw from all POIs of a city."""
    return -math.log(contents()["claims"]["pois"][city])


def beyond_limit(city: str) -> tuple[float, float]:
    """Return the least and the largest share of substitutes beyond the paper's own limit of 1 km, Table II."""
    return _extent(section(city, "plausibility"), "beyond_1km")


def left_alone(city: str) -> tuple[float, float]:
    """Return the least and the largest share of check-ins left as they are, where "every position" is perturbed."""
    low, high = _extent(section(city, "plausibility"), "substitution_rate")
    return 1 - high, 1 - low


def naturalness_order(city: str) -> list[str]:
    """Return the methods of Table III, most natural first. The text calls EM's substitutions the most plausible."""
    rows = section(city, "naturalness")
    return sorted((m for m in rows if m != "clean"), key=lambda m: -rows[m]["naturalness"][0])


def _extent(rows: Section, key: str) -> tuple[float, float]:
    values = [row[key][0] for row in rows.values()]
    return min(values), max(values)
