"""What counting alone predicts: the popularity floor, below which nothing was learned, and first-order Markov.

Markov is no floor: trained on clean NYC it has the acc@1 of a good Transformer (.18). Trained on a release it is a
second, cheap victim that owes nothing to a training recipe.
"""

import numpy as np

from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.evaluate.measures.accuracy import Scores, known, scores, steps


def popularity(train: Sessions, test: Sessions, rows: int) -> Scores:
    """The floor: always name the most frequent POIs of the training sessions; ties go to the smaller POI."""
    _, target = steps(test)
    return scores(_unless_unknown(_popularity_rank(train, rows)[_within(target, rows)], target, rows), test)


def markov(train: Sessions, test: Sessions, rows: int) -> Scores:
    """First order: rank by how often a POI followed the present one inside training sessions, then by popularity."""
    popular = _popularity_rank(train, rows)  # (P+1,)
    here, there = steps(train)
    real = known(here, rows) & known(there, rows)
    pair, count = np.unique(here[real] * rows + there[real], return_counts=True)
    here, there = np.divmod(pair, rows)
    size = np.bincount(here, minlength=rows)  # followers seen of each POI
    first = np.cumsum(size) - size
    order = np.lexsort((popular[there], -count, here))
    followed = np.empty(len(pair), np.int64)  # rank of each seen follower
    followed[order] = np.arange(len(pair)) - first[here[order]] + 1

    at, target = steps(test)
    at, goal = _within(at, rows), _within(target, rows)
    found = np.minimum(np.searchsorted(pair, at * rows + goal), max(0, len(pair) - 1))
    seen = pair[found] == at * rows + goal if len(pair) else np.zeros(len(at), bool)
    # A POI that never followed comes after all that did, by popularity; those that did and are more popular are not
    # counted twice.
    by_popularity = np.sort(here * (rows + 1) + popular[there])
    ahead = np.searchsorted(by_popularity, at * (rows + 1) + popular[goal]) - first[at]
    rank = size[at] + popular[goal] - ahead
    rank[seen] = followed[found[seen]]
    return scores(_unless_unknown(rank, target, rows), test)


def _popularity_rank(train: Sessions, rows: int) -> Longs:
    """The rank of every POI by training check-ins, from 1, (P+1,); POI 0 is last."""
    visits = np.bincount(train.poi[known(train.poi.astype(np.int64), rows)], minlength=rows)
    visits[0] = -1
    rank = np.empty(rows, np.int64)
    rank[np.argsort(-visits, kind="stable")] = np.arange(1, rows + 1)
    return rank


def _within(poi: Longs, rows: int) -> Longs:
    """Unknown POIs as 0, which no step ever left."""
    return np.where(known(poi, rows), poi, 0)


def _unless_unknown(rank: Longs, target: Longs, rows: int) -> Floats:
    return np.where(known(target, rows), rank, np.inf)
