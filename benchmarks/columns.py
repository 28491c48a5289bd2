"""Leaky and harmless columns of usual exports, made for a real city: what `protect` says about each.

Every column is made from the clean rows with a seeded generator, added alone, and tested as `protect` does.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.city import City
from benchmarks.harmless import BY_POLICY, HARMLESS
from benchmarks.leaky import LEAKY
from ghostpoi import formats
from ghostpoi.columns.classify import Tests
from ghostpoi.columns.dependence import AREA, areas, value_codes
from ghostpoi.data.checkins import Longs
from ghostpoi.formats import CheckinFile, Columns
from ghostpoi.formats.build import file_of_rows

FILES = {"NYC": "dataset_TSMC2014_NYC.txt.xz", "California": "gowalla_california.csv.xz"}


@dataclass(frozen=True)
class _WithColumns:
    """The columns of a file and some more."""

    rows: Columns
    more: dict[str, pl.Series]

    @property
    def columns(self) -> list[str]:
        return [*self.rows.columns, *self.more]

    def get_column(self, name: str) -> pl.Series:
        return self.more[name] if name in self.more else self.rows.get_column(name)


def outcome(tests: Tests, name: str) -> str:
    """Return what `protect` does with a column: "refused", "refused by policy", "changes with the venue" or "kept"."""
    if tests.kind(name) == "change":
        return "changes with the venue"
    found = tests.finding(name, tests.sample([]))
    return "kept" if found is None else "refused" if found.share else "refused by policy"


def _most_common(key: Longs, venue: Longs, size: int) -> Longs:
    """Return the most common venue of each key, (size,); 0 for a key that does not occur."""
    pair, count = np.unique(key << 32 | venue, return_counts=True)
    order = np.argsort(count, kind="stable")
    out = np.zeros(size, np.int64)
    out[pair[order] >> 32] = pair[order] & 0xFFFFFFFF  # the last assignment, the largest count, wins
    return out


def recovered(city: City, column: pl.Series) -> tuple[float, float]:
    """Return the share of venues that an adversary names who knows the area of 48 venues, without and with a column.

    She learns the most common venue of each area and value from half of the rows, and predicts the other half.
    """
    area, code = areas(city.table.venues, AREA)[city.venue].astype(np.int64), value_codes(column)
    learn = np.random.default_rng(0).random(len(city)) < 0.5
    found = []
    for key in (area, area << 32 | code):
        number = np.unique(key, return_inverse=True)[1]
        found.append(_most_common(number[learn], city.venue[learn], int(number.max()) + 1)[number[~learn]])
    answer = np.where(found[1] > 0, found[1], found[0])
    return tuple(float((one == city.table.venue[~learn]).mean()) for one in (found[0], answer))  # type: ignore[return-value]


def read_city(path: Path, rows: int) -> CheckinFile:
    """Read the rows of random users of a city, up to this number."""
    file = formats.read(path)
    size, users = np.bincount(file.table.user), np.random.default_rng(0).permutation(len(file.table.user_ids))
    chosen = np.isin(file.table.user, users[np.cumsum(size[users]) <= rows])
    return file_of_rows(file.source, file.all_rows.take(np.flatnonzero(chosen)), file.format, file.mapping)


def columns(folder: Path, rows: int, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Test every column on each city, alone; return the outcomes, and what the kept leaky ones give away."""
    found: dict[str, Any] = {}
    for name, file_name in FILES.items():
        file = read_city(folder / file_name, rows)
        city = City(file.table, seed)
        families = {"leaky": LEAKY, "harmless": HARMLESS}
        made = {
            family: {column: pl.Series(column, make(city), strict=False) for column, make in makers.items()}
            for family, makers in families.items()
        }
        every = made["leaky"] | made["harmless"]
        tests = Tests(file.table, _WithColumns(file.rows, every), file.mapping)
        outcomes = {}
        for number, column in enumerate(every, 1):
            outcomes[column] = outcome(tests, column)
            tell(f"{name}: {number} of {len(every)} columns, {column} is {outcomes[column]}")
        accepted = [column for column in LEAKY if outcomes[column] == "kept"]
        found[name] = {
            "rows": len(file.table), "users": len(file.table.user_ids),
            **{family: dict(Counter(outcomes[column] for column in makers)) for family, makers in families.items()},
            "accepted": {column: recovered(city, every[column]) for column in accepted},
            "refused_harmless": [c for c in HARMLESS if "refused" in outcomes[c] and c not in BY_POLICY],
        }  # fmt: skip
    return found
