"""How far learned candidate sets agree with categories, which they do not see. Counts and shares of a city."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.learned_candidates import candidate_sets
from ghostpoi.data.places import of_sessions, with_use
from ghostpoi.data.prepared import Prepared
from ghostpoi.publish.category_groups import by_hours
from ghostpoi.settings import CandidateSettings

THRESHOLDS = (-1.0, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8)  # the first accepts every venue
# The default of candidates.plausibility is the lowest of these thresholds at which so many of the accepted pairs of NYC
# within the nominal radius have the same category. At the next one, more visits lack a candidate than by category.
TARGET_PRECISION = 0.09


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
    count: Ints = ((kind[sets.poi] == kind[:, None]) & (sets.poi > 0)).sum(axis=1)
    return count


def _drawn(sets: Candidates, kind: Ints, visits: Ints) -> float:
    """The share of draws for these visits that keep the kind of the venue."""
    share = _same(sets, kind) / np.maximum(sets.size, 1)
    return float(share[visits].mean()) if len(visits) else 0.0
