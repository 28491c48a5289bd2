"""The paper's printed numbers, as data, and where they contradict each other."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Printed = tuple[float, ...]  # (mean,) or (mean, std)
Section = dict[str, dict[str, Printed]]  # method -> key -> printed

CITIES = {"nyc": "Foursquare-NYC", "tky": "Foursquare-TKY"}
ROUNDING = 0.00015 + 1e-9  # of three numbers printed with four decimals


class Contradiction(NamedTuple):
    """A printed gap that the paper's own accuracies, or another of its tables, give differently."""

    city: str
    method: str
    key: str
    printed: float
    otherwise: float
    source: str


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


def derived(row: Mapping[str, Printed]) -> dict[str, float]:
    """Compute the gaps that follow from a row's own accuracies."""
    acc = {key: value[0] for key, value in row.items()}
    pooled = [acc["none"], acc["bridge"], acc["frequency"]]
    survival = {f"surv_{a}": acc[a] - acc["none"] for a in ("bridge", "frequency", "bigram") if a in acc}
    mean, worst = acc["clean"] - sum(pooled) / len(pooled), acc["clean"] - max(pooled)
    return {"prot": acc["clean"] - acc["none"], **survival, "mean": mean, "worst": worst}


def contradictions() -> list[Contradiction]:
    """Find printed gaps that differ from other printed numbers by more than rounding explains."""
    found = list[Contradiction]()
    for city in CITIES:
        for method, row in section(city, "main").items():
            gaps = derived(row)
            # The maximum is taken per seed, so a worst-case gap below the one of the means contradicts nothing.
            gaps["worst"] = min(gaps["worst"], row["worst"][0])
            found += _differing(city, method, row, gaps, "Table I's accuracies")
    main, corners = section("nyc", "main")["ghost"], section("nyc", "weights")
    for table, row in (("Table V", corners["ghost"]), ("Table VI", section("nyc", "entropy")["ghost"])):
        printed = {key: value for key, (value,) in row.items()}
        found += _differing("nyc", "ghost", main, printed, f"{table}, same setting")
    corner = corners["ghost method.alpha=1.0 method.beta=1.0"]  # GHOST-Sym
    symmetric = derived({"clean": main["clean"], **section("nyc", "manifold")["ghost-sym"]})
    return found + _differing("nyc", "ghost-sym", corner, symmetric, "Table IV's accuracies")


def _differing(
    city: str, method: str, row: Mapping[str, Printed], other: Mapping[str, float], source: str
) -> list[Contradiction]:
    pairs = [(key, row[key][0], value) for key, value in other.items() if key in row]
    return [Contradiction(city, method, *pair, source) for pair in pairs if abs(pair[1] - pair[2]) > ROUNDING]
