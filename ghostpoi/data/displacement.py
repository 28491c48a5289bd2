"""How far released venues are from the clean ones, and how many keep the category."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ghostpoi.data.checkins import Floats, Ints, Longs, Venues
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Vocabulary

NOMINAL_KM = 1.0  # the paper's geographic limit; widened candidate sets exceed it
HIGH = 0.95  # the quantile that is published


@dataclass(frozen=True)
class Moves:
    """The substitutions among any number of rows."""

    rows: int  # substituted or not
    same_category: int
    beyond_1km: int
    total_km: float
    km: Floats  # (m,) the distances that occur, ascending
    count: Longs  # (m,) how often each does

    @staticmethod
    def added(each: Sequence["Moves"]) -> "Moves":
        """Return the substitutions among the rows of all."""
        km, place = np.unique(np.concatenate([one.km for one in each]), return_inverse=True)
        count = np.zeros(len(km), np.int64)
        np.add.at(count, place.reshape(-1), np.concatenate([one.count for one in each]))
        return Moves(
            sum(one.rows for one in each), sum(one.same_category for one in each),
            sum(one.beyond_1km for one in each), sum(one.total_km for one in each), km, count,
        )  # fmt: skip

    @property
    def to_the_metre(self) -> "Moves":
        """The same in a few kilobytes: the quantile is right to the metre, and 10 metres are published."""
        return Moves.added([replace(self, km=np.rint(self.km * 1000) / 1000)])

    @property
    def measures(self) -> dict[str, float]:
        """Category match, the share beyond 1 km and the distances are over substituted rows; without any, 1 and 0."""
        n, ends = int(self.count.sum()), np.cumsum(self.count)
        at = (n - 1) * HIGH  # between two ranks
        low, high = self.km[np.searchsorted(ends, [at, min(np.floor(at) + 1, n - 1)], "right")] if n else (0.0, 0.0)
        return {
            "substitution_rate": n / self.rows if self.rows else 0.0,
            "category_match": self.same_category / n if n else 1.0,
            "beyond_1km": self.beyond_1km / n if n else 0.0,
            "mean_km": self.total_km / n if n else 0.0,
            "p95_km": float(high - (high - low) * (1 - at % 1) if at % 1 >= 0.5 else low + (high - low) * (at % 1)),
        }


def moves(places: Venues | Vocabulary, clean: Ints, released: Ints) -> Moves:
    """Return the substitutions of clean (N,) by released (N,)."""
    changed = released != clean
    before, after = clean[changed], released[changed]
    km = haversine_km(places.lat[before], places.lon[before], places.lat[after], places.lon[after])
    same, far = places.category[before] == places.category[after], km > NOMINAL_KM
    return Moves(len(clean), int(same.sum()), int(far.sum()), float(km.sum()), *np.unique(km, return_counts=True))


def displacement(places: Venues | Vocabulary, clean: Ints, released: Ints) -> dict[str, float]:
    """Measure the substitutions of clean (N,) by released (N,)."""
    return moves(places, clean, released).measures


def without_category(measures: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the measures of a file without categories: it has no category match."""
    return {**measures, "category_match": None}


def published(measures: Mapping[str, float | None]) -> dict[str, float | None]:
    """Round measures for publication: two digits for kilometres, three for the rest.

    An exact quantile lies between the distances of two real pairs, and anyone can compute the distances of all pairs.
    """
    return {
        name: None if value is None else round(value, 2 if name.endswith("_km") else 3)
        for name, value in measures.items()
    }
