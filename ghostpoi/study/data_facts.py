"""What prepared data alone says about statements of the paper: candidate sets, distances and speed of a city.

No model and no release is needed. The results are counts and shares, so they may be published.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.data.candidates import Candidates, find
from ghostpoi.data.checkins import Ints
from ghostpoi.data.displacement import NOMINAL_KM
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.evaluate.measures.plausibility import steps_over_limit
from ghostpoi.settings import CandidateSettings, SpeedSettings
from ghostpoi.study import stored_json
from ghostpoi.study.learned_facts import learned_facts
from ghostpoi.study.store import write_json

FILE = "data-facts.json"  # by name of the data
FEW = 4  # "fewer than four candidates" in the paper
RULES = {  # readings of the paper's candidate rule, by the setting that differs
    "nominal": replace(CandidateSettings(), max_widenings=0),
    "widened_below_4": replace(CandidateSettings(), min_candidates=FEW),
    "widened_below_6": CandidateSettings(),
}


def write_facts(cities: Sequence[Prepared], results: Path) -> Path:
    """Write the facts of these cities into the folder of results, beside those of others."""
    path = results / FILE
    write_json(path, read_facts(results) | {city.name: data_facts(city) for city in cities})
    return path


def read_facts(results: Path) -> dict[str, Any]:
    """Read the facts of all cities, by name of the data; empty if there are none."""
    return stored_json.read(results / FILE, "ghostpoi study facts --data FILE")


def data_facts(data: Prepared) -> dict[str, Any]:
    """Return all facts of a city: its sizes, its candidate sets under each rule, and its clean speeds."""
    v, train = data.vocabulary, data.train
    sets = {name: find(v.lat, v.lon, v.category, rule) for name, rule in RULES.items()}
    return {
        "pois": len(v) - 1,
        "sessions": {part: len(getattr(data, part)) for part in ("train", "val", "test")},
        "positions": train.positions,
        "candidates": {name: candidate_facts(found, train.poi) for name, found in sets.items()},
        "learned": learned_facts(data),
        "beyond_1km_drawn": beyond_nominal(data.candidates, v, train.poi),
        "over_speed_limit": speed_facts(train, v),
    }


def candidate_facts(candidates: Candidates, visits: Ints) -> dict[str, float]:
    """Count small candidate sets, over POIs and over visits (N,): the POI at each training position."""
    size = candidates.size
    of_pois, of_visits = size[1:], size[visits]
    return {
        "mean_size": float(of_pois.mean()),
        "pois_few": int((of_pois < FEW).sum()),
        "share_few": float((of_pois < FEW).mean()),
        "pois_none": int((of_pois == 0).sum()),
        "share_none": float((of_pois == 0).mean()),
        "visits_few": float((of_visits < FEW).mean()),
        "visits_none": float((of_visits == 0).mean()),
    }


def beyond_nominal(candidates: Candidates, vocabulary: Vocabulary, visits: Ints) -> float:
    """Return the share of substitutes beyond 1 km, if every visit (N,) draws evenly from its candidate set."""
    sets, lat, lon = candidates.poi, vocabulary.lat, vocabulary.lon
    km = haversine_km(lat[:, None], lon[:, None], lat[sets], lon[sets])
    far = ((km > NOMINAL_KM) & (sets > 0)).sum(axis=1) / np.maximum(candidates.size, 1)  # (P+1,)
    moved = visits[candidates.size[visits] > 0]
    return float(far[moved].mean()) if len(moved) else 0.0


def speed_facts(sessions: Sessions, vocabulary: Vocabulary) -> dict[str, float]:
    """Count the clean steps inside sessions that imply a speed over the paper's limit."""
    over = steps_over_limit(sessions, sessions.poi, vocabulary, SpeedSettings())
    return {"steps": len(over), "over": int(over.sum()), "share": float(over.mean()) if len(over) else 0.0}
