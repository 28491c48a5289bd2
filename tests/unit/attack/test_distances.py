"""A kept column of distances: which option lies as far from the venue before as the column says."""

from dataclasses import replace

import numpy as np
from attack_evidence import candidates_of, evidence_of

from ghostpoi.attack.adversaries.lookups import at_distance

STEP_KM = 1.11195  # a hundredth of a degree of latitude


def test_released_venues_that_stand_for_none_are_passed_over() -> None:
    """The rule releases nothing as POI 3. A position that shows it gets no guess; those before and after do."""
    evidence = evidence_of(candidates_of([2], [1], [1, 2]), [0], [[1, 2, 3, 1, 3]])
    place = {"lat": np.array([0.0, 0.0, 0.01, 0.02]), "lon": np.zeros(4)}
    evidence = replace(evidence, rule=replace(evidence.rule, **place))
    km = np.array([np.nan, 2 * STEP_KM, np.nan, STEP_KM, np.nan])
    assert at_distance(evidence, km, evidence.released.poi).tolist() == [0, 3, 0, 2, 0]
