"""How far released venues are from the clean ones, and how many keep the category."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ghostpoi.data.checkins import Floats, Ints, Venues
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Vocabulary

NOMINAL_KM = 1.0  # the paper's geographic limit; widened candidate sets exceed it


@dataclass(frozen=True)
class Moves:
    """The substitutions among some rows."""

    rows: int  # substituted or not
    km: Floats  # (n,) how far each substitute is away
    same_category: int

    @property
    def measures(self) -> dict[str, float]:
        """Category match, the share beyond 1 km and the distances are over substituted rows; without any, 1 and 0."""
        km, some = self.km, len(self.km) > 0
        return {
            "substitution_rate": len(km) / self.rows if self.rows else 0.0,
            "category_match": self.same_category / len(km) if some else 1.0,
            "beyond_1km": float((km > NOMINAL_KM).mean()) if some else 0.0,
            "mean_km": float(km.mean()) if some else 0.0,
            "p95_km": float(np.quantile(km, 0.95)) if some else 0.0,
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
