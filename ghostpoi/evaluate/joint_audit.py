"""What was measured in all audited regions together: means over regions, weighted by what each measure is taken of."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ghostpoi.evaluate.audit_result import SHARES, Measured, StepCounts
from ghostpoi.evaluate.measures.accuracy import PARTS
from ghostpoi.evaluate.whole_release import added

Weights = Mapping[str, Sequence[int]]  # by the name of a measure or of a group of them: one per region


def joined(each: Sequence[Measured]) -> Measured:
    """Join what was measured in the regions.

    Accuracies are those over the test steps of all regions. Regions share no venue and no square, so divergences of
    venues and the common part of flows are those of the whole, too; other statistics of use are means over regions.
    """
    counts = [one.counts for one in each]
    total = StepCounts(*(sum(column) for column in zip(*counts, strict=True)))
    weights: Weights = {
        "all": [c.test for c in counts],
        "moves": [c.moves for c in counts],
        "last": [c.last for c in counts],
        "restored": [c.trained for c in counts],
        "of_substituted": [c.substituted for c in counts],
        "spoiled": [c.trained - c.substituted for c in counts],
    }
    of_use: Weights = {"flows": [c.steps for c in counts], "gyration": [c.users for c in counts]}
    positions = [c.positions for c in counts]
    natural = [one.naturalness for one in each if one.naturalness is not None]
    return Measured(
        contests={
            contest: joined_measures([one.contests[contest] for one in each], weights) for contest in each[0].contests
        },
        floors={name: joined_measures([one.floors[name] for one in each], weights) for name in each[0].floors},
        counts=total,
        rows=added([one.rows for one in each]),
        utility={
            name: _means([one.utility[name] for one in each], of_use.get(name, positions)) for name in each[0].utility
        },
        sessions={part: sum(one.sessions[part] for one in each) for part in each[0].sessions},
        released=sum(one.released for one in each),
        kept=sum(one.kept for one in each),
        kept_columns=tuple(dict.fromkeys(name for one in each for name in one.kept_columns)),
        naturalness=_means(natural, weights["restored"]) if natural else None,
    )


def joined_measures(each: Sequence[Mapping[str, Any]], weights: Weights) -> dict[str, Any]:
    """Join the accuracies and recovered shares of one contest; values are numbers, or lists with one per seed."""
    parts = {part: _means([one[part] for one in each], weights[part]) for part in PARTS}
    return parts | _means([{name: one[name] for name in SHARES if name in one} for one in each], weights)


def _means(each: Sequence[Mapping[str, Any]], weights: Weights | Sequence[int]) -> dict[str, Any]:
    """Return the mean of every value, weighted by region."""
    return {
        name: _mean([one[name] for one in each], weights[name] if isinstance(weights, Mapping) else weights)
        for name in each[0]
    }


def _mean(values: Iterable[Any], weights: Sequence[int]) -> Any:
    used = weights if sum(weights) else [1] * len(weights)  # of nothing, every share is 0
    return np.average(np.array(list(values), float), axis=0, weights=used).tolist()
