"""Where the paper's text and its printed numbers contradict each other, as the page on the reproduction says."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import pytest
from findings import prose

from ghostpoi.study import labels, paper
from ghostpoi.study.labels import show

PAGE = prose("results/reproduction.md")
ROUNDING = 0.00015 + 1e-9  # of three numbers printed with four decimals
MAIN, WEIGHTS, MANIFOLD, ENTROPY, MOVED, NATURAL = (
    paper.section("nyc", name) for name in ("main", "weights", "manifold", "entropy", "plausibility", "naturalness")
)


class Contradiction(NamedTuple):
    """A printed gap that the paper's own accuracies, or another of its tables, give differently."""

    city: str
    method: str
    key: str
    printed: float
    otherwise: float


def derived(row: Mapping[str, paper.Printed]) -> dict[str, float]:
    """The gaps that follow from a row's own accuracies."""
    acc = {key: value[0] for key, value in row.items()}
    pooled = [acc["none"], acc["bridge"], acc["frequency"]]
    survival = {f"surv_{a}": acc[a] - acc["none"] for a in ("bridge", "frequency", "bigram") if a in acc}
    mean, worst = acc["clean"] - sum(pooled) / len(pooled), acc["clean"] - max(pooled)
    return {"prot": acc["clean"] - acc["none"], **survival, "mean": mean, "worst": worst}


def contradictions() -> Iterator[Contradiction]:
    """Printed gaps that differ from other printed numbers by more than rounding explains."""
    for city in paper.CITIES:
        for method, row in paper.section(city, "main").items():
            gaps = derived(row)
            # The maximum is taken per seed, so a worst-case gap below the one of the means contradicts nothing.
            yield from differing(city, method, row, gaps | {"worst": min(gaps["worst"], row["worst"][0])})
    for same in (WEIGHTS["ghost"], ENTROPY["ghost"]):  # Tables V and VI, same setting
        yield from differing("nyc", "ghost", MAIN["ghost"], {key: value for key, (value,) in same.items()})
    symmetric = derived({"clean": MAIN["ghost"]["clean"], **MANIFOLD["ghost-sym"]})
    yield from differing("nyc", "ghost-sym", WEIGHTS["ghost method.alpha=1.0 method.beta=1.0"], symmetric)


def differing(
    city: str, method: str, row: Mapping[str, paper.Printed], other: Mapping[str, float]
) -> Iterator[Contradiction]:
    for key, value in other.items():
        if key in row and abs(row[key][0] - value) > ROUNDING:
            yield Contradiction(city, method, key, row[key][0], value)


def test_gaps_that_follow_from_a_row() -> None:
    accuracies = {"clean": 0.2, "none": 0.05, "bridge": 0.08, "frequency": 0.08, "bigram": 0.09}
    gaps = derived({key: (value,) for key, value in accuracies.items()})
    expected = {"prot": 0.15, "surv_bridge": 0.03, "surv_frequency": 0.03, "surv_bigram": 0.04, "mean": 0.13}
    assert gaps == pytest.approx(expected | {"worst": 0.12})


def test_printed_gaps_contradict_other_numbers() -> None:
    found = list(contradictions())
    assert f"{len(found)} printed gaps differ by more than rounding from what the paper's other numbers give." in PAGE
    largest = max(found, key=lambda one: abs(one.printed - one.otherwise))
    assert (largest.method, largest.key) == ("ghost", "surv_bridge")
    told = f"Δsurv A2: {show(largest.printed)} in Table I, {show(largest.otherwise)} in Table V."
    assert told in PAGE


def test_a_score_rises_with_the_entropy_floor() -> None:
    floors = {float(text.partition("method.eta=")[2] or 0): row for text, row in ENTROPY.items()}
    rises = [(key, low, high) for key in ("prot", "mean", "worst") for low, high in pairwise(sorted(floors))
             if floors[high][key][0] > floors[low][key][0]]  # fmt: skip
    assert rises == [("mean", 2.0, 3.0), ("worst", 2.0, 3.0)]
    key, low, high = rises[-1]
    told = f"{labels.heading(key)} rises from {show(floors[low][key][0])} to {show(floors[high][key][0])}"
    assert f"|{told} ({low:.0f} to {high:.0f} bits)|" in PAGE


def test_releases_are_less_likely_than_an_even_draw() -> None:
    even = {city: -math.log(count) for city, count in paper.contents()["claims"]["pois"].items()}
    rows = [(city, row["naturalness"][0]) for city in even
            for method, row in paper.section(city, "naturalness").items() if method != "clean"]  # fmt: skip
    below = [value for city, value in rows if value < even[city]]
    told = f"|{len(below)} of {len(rows)} log p of Table III are below a draw from all venues"
    assert f"{told} ({show(even['nyc'], 2)} on NYC)|" in PAGE


def test_distances_and_positions_left_alone() -> None:
    far, moved = ([row[key][0] for row in MOVED.values()] for key in ("beyond_1km", "substitution_rate"))
    assert f"|{min(far):.1%} to {max(far):.1%} lie beyond (Table II)|" in PAGE
    assert f"|at least {1 - max(moved):.1%} are left alone (Table II)|" in PAGE
    assert f"|moves beyond 1 km: .615 to .646|EM {show(min(far))}|" in PAGE
    assert min(far) == MOVED["em"]["beyond_1km"][0]


def test_em_is_not_the_most_natural() -> None:
    order = sorted((m for m in NATURAL if m != "clean"), key=lambda m: -NATURAL[m]["naturalness"][0])
    assert f"|Table III ranks EM {['first', 'second', 'third', 'last'][order.index('em')]}|" in PAGE
    assert order.index("em") > 0


def test_ghost_is_not_the_best_everywhere() -> None:
    ghost, pgd = MAIN["ghost"], MAIN["pgd"]
    assert pgd["none"][0] > ghost["none"][0]
    assert f"|NYC: PGD {show(pgd['none'][0])}, GHOST {show(ghost['none'][0])}|" in PAGE
    assert ghost["surv_frequency"][0] > pgd["surv_frequency"][0]
    assert f"|at 5%: {show(ghost['surv_frequency'][0])} and {show(pgd['surv_frequency'][0])}|" in PAGE
    own, symmetric, free = (MANIFOLD[m]["frequency"][0] for m in ("ghost", "ghost-sym", "ghost-ef"))
    assert f"|GHOST's {show(own)} is the best A3 of Table IV|" in PAGE
    assert f"|GHOST-Sym {show(symmetric)}, GHOST-EF {show(free)}|" in PAGE
    assert own > max(symmetric, free)
    worst = max(row["surv_frequency"][0] for row in WEIGHTS.values())
    assert worst == WEIGHTS["ghost"]["surv_frequency"][0]
    assert f"|they have the largest Δsurv A3 of Table V, {show(worst)}|" in PAGE
