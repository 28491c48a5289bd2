"""How far released venues are from the clean ones, and how many keep the category."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ghostpoi.data.checkins import Floats, Ints, Longs, Venues
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Vocabulary

NOMINAL_KM = 1.0  # the paper's geographic limit; widened candidate sets exceed it
HIGH = 0.95  # the quantile that is published


@dataclass(frozen=True)
class Moves:
    """The substitutions among some rows."""

    rows: int  # substituted or not
    km: Floats  # (n,) how far each substitute is away
    same_category: int

    @property
    def measures(self) -> dict[str, float]:
        """Category match, the share beyond 1 km and the distances are over substituted rows; without any, 1 and 0."""
        high = float(np.quantile(self.km, HIGH)) if len(self.km) else 0.0
        return MoveCounts.of(self).measures | {"p95_km": high}


def joined_moves(each: Sequence[Moves]) -> Moves:
    """Return the substitutions among all of the rows."""
    km = np.concatenate([one.km for one in each])
    return Moves(sum(one.rows for one in each), km, sum(one.same_category for one in each))


@dataclass(frozen=True)
class MoveCounts:
    """The substitutions among any number of rows, in a few kilobytes: distances are counted by the metre."""

    rows: int  # substituted or not
    same_category: int
    beyond_1km: int
    total_km: float
    metres: Longs  # (m,) the distances that occur, rounded, ascending
    count: Longs  # (m,) how often each does

    @classmethod
    def of(cls, moved: Moves) -> "MoveCounts":
        metres, count = np.unique(np.rint(moved.km * 1000).astype(np.int64), return_counts=True)
        beyond, total = int((moved.km > NOMINAL_KM).sum()), float(moved.km.sum())
        return cls(moved.rows, moved.same_category, beyond, total, metres, count)

    @classmethod
    def added(cls, each: Sequence["MoveCounts"]) -> "MoveCounts":
        metres, place = np.unique(np.concatenate([one.metres for one in each]), return_inverse=True)
        count = np.zeros(len(metres), np.int64)
        np.add.at(count, place.reshape(-1), np.concatenate([one.count for one in each]))
        return cls(
            sum(one.rows for one in each), sum(one.same_category for one in each),
            sum(one.beyond_1km for one in each), sum(one.total_km for one in each), metres, count,
        )  # fmt: skip

    @property
    def measures(self) -> dict[str, float]:
        """The measures of `Moves`. The quantile is right to the metre; 10 metres are published."""
        n = int(self.count.sum())
        ends, rank = np.cumsum(self.count), int((n - 1) * HIGH)  # the quantile lies between this rank and the next
        ranks = (rank, min(rank + 1, n - 1)) if n else ()
        below, above = [self.metres[np.searchsorted(ends, at, "right")] / 1000 for at in ranks] or (0, 0)
        return {
            "substitution_rate": n / self.rows if self.rows else 0.0,
            "category_match": self.same_category / n if n else 1.0,
            "beyond_1km": self.beyond_1km / n if n else 0.0,
            "mean_km": self.total_km / n if n else 0.0,
            "p95_km": float(below + (above - below) * ((n - 1) * HIGH % 1)),
        }


def moves(places: Venues | Vocabulary, clean: Ints, released: Ints) -> Moves:
    """Return the substitutions of clean (N,) by released (N,)."""
    changed = released != clean
    before, after = clean[changed], released[changed]
    km = haversine_km(places.lat[before], places.lon[before], places.lat[after], places.lon[after])
    return Moves(len(clean), km, int((places.category[before] == places.category[after]).sum()))


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
