"""The rows that `ghostpoi study levels` wrote, and what each reading of Table III explains."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ghostpoi.study import stored_json
from ghostpoi.study.paper import section

NEAR_CLEAN, NEAR_LEVELS = 0.15, 0.5  # distances to the printed values that count as the same
Row = Mapping[str, Any]


def path(results: Path, protocol: str) -> Path:
    """Return the file of a protocol."""
    return results / f"levels-{protocol}.json"


def read(results: Path, protocol: str) -> list[Row]:
    """Read the rows of a protocol: name, epochs, values and fits of each reading. Empty if nothing was measured."""
    command = f"ghostpoi study levels --data nyc.npz --protocol {protocol}"
    return list(stored_json.read(path(results, protocol), command).get("rows", []))


def printed(city: str = "nyc", without: Collection[str] = ()) -> dict[str, float]:
    """Return Table III: the clean value and that of each method, without some."""
    rows = section(city, "naturalness").items()
    return {method: row["naturalness"][0] for method, row in rows if method not in without}


def fits(found: Mapping[str, float], table: Mapping[str, float]) -> dict[str, bool]:
    """Say what a reading explains: the clean value, the levels of all printed releases, and their order."""
    methods = [method for method in table if method != "clean"]
    return {
        "clean": abs(found["clean"] - table["clean"]) <= NEAR_CLEAN,
        "levels": all(abs(found[method] - table[method]) <= NEAR_LEVELS for method in methods),
        "order": sorted(methods, key=lambda m: found[m]) == sorted(methods, key=lambda m: table[m]),
    }


def explaining(rows: Sequence[Row], table: Mapping[str, float]) -> list[str]:
    """Return the names of the readings that explain the clean value, the levels and the order at once."""
    return [row["name"] for row in rows if all(fits(row["values"], table).values())]


def distance(row: Row, table: Mapping[str, float]) -> float:
    """Return the largest distance of a reading to a printed value, the clean one included."""
    found: Mapping[str, float] = row["values"]
    return max(abs(found[key] - value) for key, value in table.items())


def nearest(rows: Sequence[Row], table: Mapping[str, float]) -> Row:
    """Return the reading whose largest distance to a printed value is the smallest."""
    return min(rows, key=lambda row: distance(row, table))
