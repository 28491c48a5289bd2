"""Measure what prepared data alone says: about candidate sets, distances and speed, and what no adversary can exceed.

    python docs/rerun_facts.py nyc.npz ca.npz

writes counts and shares, which may be published, into results/data-facts.json, next to those of other cities. It needs
no model and no release.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.attack.evidence import Outside
from ghostpoi.audits.measures.bound import CrowdVisits, bound
from ghostpoi.audits.measures.utility import steps_over_limit
from ghostpoi.data.candidates import Candidates, candidate_sets, find
from ghostpoi.data.checkins import Ints
from ghostpoi.data.displacement import NOMINAL_KM
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.places import of_sessions, slot_of, with_use
from ghostpoi.data.prepared import Prepared, load
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.crowds import by_hours
from ghostpoi.draw.publication import publication
from ghostpoi.settings import CandidateSettings, SpeedSettings

RESULTS = Path(__file__).parent.parent / "results" / "data-facts.json"  # by name of the data
FEW = 4  # "fewer than four candidates" in the paper
RULES = {  # readings of the paper's candidate rule, by the setting that differs
    "nominal": replace(CandidateSettings(), max_widenings=0),
    "widened_below_4": replace(CandidateSettings(), min_candidates=FEW),
    "widened_below_6": CandidateSettings(),
}
THRESHOLDS = (-1.0, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8)  # the first accepts every venue
# The default of candidates.plausibility is the lowest of these thresholds at which so many of the accepted pairs of NYC
# within the nominal radius have the same category. At the next one, more visits lack a candidate than by category.
TARGET_PRECISION = 0.09


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path, help="files that ghostpoi prepare wrote")
    known = json.loads(RESULTS.read_text("utf-8"))
    cities = map(load, parser.parse_args().data)
    found = known | {city.name: data_facts(city) for city in cities}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


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
        "bound": bound_facts(data),
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


def bound_facts(data: Prepared) -> dict[str, float]:
    """Return what nobody can exceed who names the clean venues of training visits behind the default release."""
    v, train, chosen = data.vocabulary, data.train, publication("crowd", "strong")
    sets = chosen.method.candidate_sets(of_sessions(train, v), chosen.candidates)
    user = np.repeat(train.user, train.length).astype(np.int64)
    published = np.zeros(len(v))
    if sets.weight is not None:
        published[sets.poi] = sets.weight
    priors = {"nothing": Outside(), "published": Outside(published), "city": Outside.true(train, v)}
    return bound(CrowdVisits(sets, user, train.poi, slot_of(train.time)), priors)


def learned_facts(data: Prepared) -> dict[str, dict[str, float]]:
    """Return for each threshold what it accepts. How venues are used is learned from the training sessions.

    `near` figures are over pairs within the nominal radius, all others over candidate sets with widening. A draw is an
    even one from the candidates of a visited venue. Groups of categories are those that `crowd` learns.
    """
    places = with_use(of_sessions(data.train, data.vocabulary), data.train)
    category, group = places.category, replace(places, category_group=by_hours(places)).group
    found, same_near = {}, 0
    for threshold in THRESHOLDS:
        rule = replace(CandidateSettings(), category="learned", plausibility=threshold)
        near = candidate_sets(places, replace(rule, max_widenings=0, max_candidates=len(category)))
        pairs, same = int(near.size.sum()), _same(near, category)
        same_near = same_near or int(same.sum())  # those of the first threshold are all there are
        sets = candidate_sets(places, rule)
        size, drawn = sets.size[data.train.poi], data.train.poi[sets.size[data.train.poi] > 0]
        found[f"{threshold:g}"] = {
            "near_precision": float(same.sum()) / max(pairs, 1),
            "near_recall": float(same.sum()) / max(same_near, 1),
            "mean_size": float(sets.size[1:].mean()),
            "visits_none": float((size == 0).mean()),
            "precision": float(_same(sets, category).sum()) / max(int(sets.size.sum()), 1),
            "draws_same_category": _drawn(sets, category, drawn),
            "draws_same_group": _drawn(sets, group, drawn),
        }
    return found


def threshold_for(facts: Mapping[str, Mapping[str, float]], precision: float = TARGET_PRECISION) -> float:
    """Return the lowest threshold whose accepted pairs reach a precision."""
    return min(float(threshold) for threshold, found in facts.items() if found["near_precision"] >= precision)


def _same(sets: Candidates, kind: Ints) -> Ints:
    """The number of candidates of each POI that are of its kind, (P+1,)."""
    return ((kind[sets.poi] == kind[:, None]) & (sets.poi > 0)).sum(axis=1)


def _drawn(sets: Candidates, kind: Ints, visits: Ints) -> float:
    """The share of draws for these visits that keep the kind of the venue."""
    share = _same(sets, kind) / np.maximum(sets.size, 1)
    return float(share[visits].mean()) if len(visits) else 0.0


if __name__ == "__main__":
    main()
