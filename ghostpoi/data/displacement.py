"""How far released venues are from the clean ones, and how many keep the category."""

from collections.abc import Mapping

import numpy as np

from ghostpoi.data.checkins import Ints, Venues
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Vocabulary

NOMINAL_KM = 1.0  # the paper's geographic limit; widened candidate sets exceed it


def displacement(places: Venues | Vocabulary, clean: Ints, released: Ints) -> dict[str, float]:
    """Measure the substitutions of clean (N,) by released (N,).

    Category match, the share beyond 1 km and the distances are over substituted rows; without any, 1 and 0.
    """
    changed = released != clean
    before, after = clean[changed], released[changed]
    km = haversine_km(places.lat[before], places.lon[before], places.lat[after], places.lon[after])
    some = len(km) > 0
    return {
        "substitution_rate": float(changed.mean()) if len(changed) else 0.0,
        "category_match": float((places.category[before] == places.category[after]).mean()) if some else 1.0,
        "beyond_1km": float((km > NOMINAL_KM).mean()) if some else 0.0,
        "mean_km": float(km.mean()) if some else 0.0,
        "p95_km": float(np.quantile(km, 0.95)) if some else 0.0,
    }


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
