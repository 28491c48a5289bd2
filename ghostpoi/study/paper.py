"""The paper's own figures, as data, and what they say about each other."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Printed = tuple[float, ...]  # (mean,) or (mean, std)
Section = dict[str, dict[str, Printed]]  # method -> figure -> printed

CITIES = {"nyc": "Foursquare-NYC", "tky": "Foursquare-TKY"}
ROUNDING = 0.00005  # of a figure printed with four decimals
SLACK = 1e-9


@dataclass(frozen=True)
class Difference:
    """A gap that the paper prints and that its own accuracies, or another of its tables, give differently."""

    city: str
    method: str
    figure: str
    printed: float
    otherwise: float
    source: str


@cache
def contents() -> dict[str, Any]:
    """The whole file."""
    return tomllib.loads((Path(__file__).parent / "paper.toml").read_text("utf-8"))


def section(city: str, name: str) -> Section:
    """A table of the paper; empty where it has none for this city."""
    table = contents()[city].get(name, {})
    return {m: {k: tuple(v) for k, v in row.items()} for m, row in table.items()}


def leak_section(city: str) -> dict[str, Section]:
    """The points of the leak figure that the text gives: ratio -> method -> figure."""
    found: dict[str, Section] = {}
    for method, ratios in contents()[city].get("leak", {}).items():
        for ratio, row in ratios.items():
            found.setdefault(ratio, {})[method] = {k: tuple(v) for k, v in row.items()}
    return found


def claims() -> dict[str, Any]:
    """Single numbers that the text claims."""
    found: dict[str, Any] = contents()["claims"]
    return found


def disagreements() -> list[str]:
    """Where its text and its figures differ."""
    return [str(entry["what"]) for entry in contents()["disagreements"]]


def derived(row: Mapping[str, Printed]) -> dict[str, float]:
    """The gaps that follow from a row's own accuracies."""
    acc = {a: row[a][0] for a in ("none", "bridge", "frequency", "bigram") if a in row}
    clean, pooled = row["clean"][0], [acc["none"], acc["bridge"], acc["frequency"]]
    survival = {f"surv_{a}": acc[a] - acc["none"] for a in acc if a != "none"}
    return {
        "prot": clean - acc["none"],
        **survival,
        "mean": clean - sum(pooled) / len(pooled),
        "worst": clean - max(pooled),
    }


def contradictions() -> list[Difference]:
    """All printed gaps that differ from other printed figures by more than rounding explains."""
    found = []
    for city in CITIES:
        for method, row in section(city, "main").items():
            for figure, value in derived(row).items():
                printed, off = row[figure][0], row[figure][0] - value
                # The maximum is taken per seed: the mean of maxima can only be higher than the maximum of means.
                off = max(off, 0.0) if figure == "worst" else abs(off)
                if off > 3 * ROUNDING + SLACK:
                    found.append(Difference(city, method, figure, printed, value, "Table I's own accuracies"))
    return found + _between_tables()


def _between_tables() -> list[Difference]:
    """GHOST at its default setting stands in three tables; GHOST-Sym is a corner of Table V."""
    main = section("nyc", "main")["ghost"]
    found = []
    for name, number in (("weights", "V"), ("entropy", "VI")):
        for figure, printed in section("nyc", name)["ghost"].items():
            if abs(main[figure][0] - printed[0]) > 2 * ROUNDING + SLACK:
                found.append(
                    Difference("nyc", "ghost", figure, main[figure][0], printed[0], f"Table {number}, same setting")
                )
    symmetric = derived({"clean": main["clean"], **section("nyc", "manifold")["ghost-sym"]})
    for figure, printed in section("nyc", "weights")["ghost method.alpha=1.0 method.beta=1.0"].items():
        if abs(symmetric[figure] - printed[0]) > 3 * ROUNDING + SLACK:
            found.append(
                Difference(
                    "nyc", "ghost-sym", figure, printed[0], symmetric[figure], "Table IV's accuracies, same setting"
                )
            )
    return found
