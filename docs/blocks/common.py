"""What all blocks share: filling a page, reading cells, and writing tables."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from ghostpoi.study.plan import PROTOCOLS
from ghostpoi.study.results import GOWALLA, NYC, TOKYO, Results
from ghostpoi.study.tables import Table, tables

DOCS = Path(__file__).parent.parent
RESULTS = DOCS.parent / "results"
MARKED = re.compile(r"(<!-- block: ([^\n]+) -->\n\n)(.*?)(\n<!-- end -->)", re.DOTALL)
PREPARED = {NYC: "nyc.npz", TOKYO: "tky.npz", GOWALLA: "ca.npz"}  # what commands on the pages call prepared data

Block = Callable[..., str]
T = TypeVar("T")


def filled(page: str, blocks: Mapping[str, Block]) -> str:
    """Return the page with new contents of its blocks; the words of a marker are a name and its arguments."""

    def fill(found: re.Match[str]) -> str:
        name, *words = shlex.split(found[2])
        return f"{found[1]}{blocks[name](*words)}{found[4]}"

    return MARKED.sub(fill, page)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a pipe table."""
    return "".join(f"|{'|'.join(cells)}|\n" for cells in (head, ["---"] * len(head), *rows))


def known(value: T | None) -> T:
    """Return a measurement that the pages need."""
    if value is None:
        raise LookupError("results/ lacks a cell that the pages show; restore it or measure it again")
    return value


@cache
def study(name: str, protocol: str = "strong", data: str = NYC) -> Results:
    """Read the cells of a study."""
    return Results.read(RESULTS, name, protocol, data)


def measured(name: str, protocol: str = "strong") -> list[str]:
    """Return the data on which a study was measured: only Tokyo may lack some."""
    return [data for data in PREPARED if data != TOKYO or not study(name, protocol, data).unmeasured]


def mains() -> list[Results]:
    """Return the main matrix of all cities under both protocols."""
    found = [(data, protocol) for data in PREPARED for protocol in PROTOCOLS if data in measured("main", protocol)]
    return [study("main", protocol, data) for data, protocol in found]


@cache
def _tables(name: str, protocol: str, data: str) -> list[Table]:
    return tables([study(name, protocol, data)])


def printed(name: str, title: str, *without: str, data: str = NYC, protocol: str = "strong") -> str:
    """Return a table of `ghostpoi study tables`, without some columns, and the commands that make it."""
    found = next(one for one in _tables(name, protocol, data) if one.title.startswith(title))
    return replace(found.without(*without), notes=(commands(name, protocol, data),)).markdown(gap="")


def commands(name: str, protocol: str = "strong", data: str = NYC) -> str:
    """Write how a study is measured and printed; `both` protocols need two runs."""
    flag = "" if protocol == "strong" else f" --protocol {protocol}"
    again = ", again with `--protocol paper`" if protocol == "both" else ""
    city = f" --city {data}" if data != NYC else ""
    own = flag if again == "" else ""
    measure = f"`ghostpoi study run {name} --data {PREPARED[data]}{own}`{again}"
    return f"Measure: {measure}. Print: `ghostpoi study tables {name}{flag}{city}`."


def mean(results: Results, method: str, key: str, leak: float | None = None) -> float:
    """Return the mean of a key over seeds."""
    return known(results.value(method, key, leak))["mean"]


def values(field: str, *found: Results) -> str:
    """List the different values of a field of all cells; commits are shortened."""
    seen = {str(cell.get(field, "unknown")) for results in found for cell in results.cells}
    return ", ".join(sorted({value[:7] if field == "commit" else value for value in seen}))
