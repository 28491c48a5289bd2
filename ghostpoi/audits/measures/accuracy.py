"""What victims predict and adversaries restore: accuracy on clean test sessions, its floors, the recovered share.

Popularity and staying are the floors: they need no knowledge of who goes where. Staying is right at no move, so
accuracy on moves shows what a victim learned about where people go.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.sessions import Sessions

ACCURACY_VERSION = 1  # raised whenever the same input gives other accuracies or floors

Metrics = dict[str, float]
Value = TypeVar("Value", float, list[float])  # of one seed or of several
ROUNDING = 1e-9
PARTS = ("all", "moves", "last")  # of the steps of the test sessions
CUTOFFS = {"acc@1": 1, "acc@5": 5, "acc@10": 10}


def accuracy(rank: Floats, test: Sessions) -> dict[str, Metrics]:
    """Return the metrics over `all` steps of the test sessions, over `moves` and over the `last` step of each session.

    A move is a step to another POI. At every other step, predicting the present POI again is right. Ranks follow
    the order of the steps; 1 is the best, infinity stands for an unknown POI.
    """
    last = np.cumsum(np.maximum(test.length - 1, 0))[test.length > 1] - 1
    ranks = (rank, rank[moves(test)], rank[last])
    return {part: metrics(some) for part, some in zip(PARTS, ranks, strict=True)}


def in_one(found: Mapping[str, Mapping[str, Value]]) -> dict[str, Value]:
    """Return the metrics over all steps, with acc@1 over the other parts."""
    return dict(found["all"]) | {f"acc@1_{part}": found[part]["acc@1"] for part in PARTS[1:]}


def metrics(rank: Floats) -> Metrics:
    """Return acc@1, acc@5, acc@10 and MRR of these ranks; 0 if there are none."""
    if not len(rank):
        return dict.fromkeys((*CUTOFFS, "mrr"), 0.0)
    found = {name: float((rank <= cutoff).mean()) for name, cutoff in CUTOFFS.items()}
    return found | {"mrr": float((1 / rank).mean())}  # 1 / inf is 0


POSITIONS_PER_STEP = 5


def step(positions: int) -> float:
    """Return the step for shares of this many positions: 1, 2 or 5 times a power of ten."""
    least = POSITIONS_PER_STEP / max(1, positions)
    power = math.floor(math.log10(least))
    return next(size for size in (m * 10.0**power for m in (1, 2, 5, 10)) if size >= least * (1 - ROUNDING))


def rounded(values: Sequence[float], positions: int) -> list[float]:
    """Round accuracies or shares to the step, so that they reveal no count of single visits."""
    size = step(positions)
    return [round(round(value / size) * size, 9) for value in values]


def floor_hits(train: Sessions, sessions: Sessions, rows: int) -> dict[str, Bools]:
    """Return at which steps of sessions the most popular POI of the training sessions, or staying, is right."""
    here, there = steps(sessions)
    top = int(_popularity_rank(train, rows).argmin())
    return {"popularity": there == top, "stay": (here == there) & known(there, rows)}


def popularity(train: Sessions, test: Sessions, rows: int) -> dict[str, Metrics]:
    """Rank POIs by their frequency in the training sessions; ties go to the smaller POI."""
    _, target = steps(test)
    return _accuracy(_popularity_rank(train, rows)[_within(target, rows)], target, test, rows)


def stay(train: Sessions, test: Sessions, rows: int) -> dict[str, Metrics]:
    """Rank the present POI first, then all others by popularity."""
    popular = _popularity_rank(train, rows)
    at, target = steps(test)
    here, there = popular[_within(at, rows)], popular[_within(target, rows)]
    rank = np.where(target == at, 1, there + (there < here))  # the present POI moves ahead of more popular ones
    return _accuracy(rank, target, test, rows)


def markov(train: Sessions, test: Sessions, rows: int) -> dict[str, Metrics]:
    """Rank POIs by how often they followed the present one inside training sessions, then by popularity."""
    popular = _popularity_rank(train, rows)  # (P+1,)
    here, there = steps(train)
    real = known(here, rows) & known(there, rows)
    pair, count = np.unique(here[real] * rows + there[real], return_counts=True)
    here, there = np.divmod(pair, rows)
    size = np.bincount(here, minlength=rows)  # distinct followers of each POI
    first = np.cumsum(size) - size
    order = np.lexsort((popular[there], -count, here))
    followed = np.empty(len(pair), np.int64)  # rank of each follower
    followed[order] = np.arange(len(pair)) - first[here[order]] + 1

    at, target = steps(test)
    at, goal = _within(at, rows), _within(target, rows)
    found = np.minimum(np.searchsorted(pair, at * rows + goal), max(0, len(pair) - 1))
    seen = pair[found] == at * rows + goal if len(pair) else np.zeros(len(at), bool)
    # A POI that never followed ranks after all that did, by popularity. Followers that are more popular already stand
    # before it, so they are not counted again.
    by_popularity = np.sort(here * (rows + 1) + popular[there])
    ahead = np.searchsorted(by_popularity, at * (rows + 1) + popular[goal]) - first[at]
    rank = size[at] + popular[goal] - ahead
    rank[seen] = followed[found[seen]]
    return _accuracy(rank, target, test, rows)


def recovery(clean: Ints, released: Ints, restored: Ints, leaked: Bools) -> dict[str, float]:
    """Return shares of the positions (N,) that did not leak.

    `restored`: positions that hold the clean POI, including those that the publisher never changed; compare it with
    A1's. `of_substituted`: substituted positions that hold it. `spoiled`: unchanged positions that no longer hold it.
    """
    right, changed = (restored == clean)[~leaked], (released != clean)[~leaked]
    asked = {"restored": right, "of_substituted": right[changed], "spoiled": ~right[~changed]}
    return {name: share(yes) for name, yes in asked.items()}


def share(yes: Bools) -> float:
    """Return the share of true values; 0 if there are none."""
    return float(yes.mean()) if len(yes) else 0.0


def steps(sessions: Sessions) -> tuple[Longs, Longs]:
    """Return the POI before and after every step inside a session, each (N - S,)."""
    at = sessions.steps()
    return sessions.poi[at].astype(np.int64), sessions.poi[at + 1].astype(np.int64)


def moves(sessions: Sessions) -> Bools:
    """Whether each step leads to another POI, (N - S,)."""
    here, there = steps(sessions)
    return np.not_equal(here, there)


def known(poi: Longs, rows: int) -> Bools:
    """Whether each POI belongs to a vocabulary of `rows` rows."""
    return (poi >= 1) & (poi < rows)


def _popularity_rank(train: Sessions, rows: int) -> Longs:
    """The rank of every POI by training check-ins, from 1, (P+1,); POI 0 is last."""
    visits = np.bincount(train.poi[known(train.poi.astype(np.int64), rows)], minlength=rows)
    visits[0] = -1
    rank = np.empty(rows, np.int64)
    rank[np.argsort(-visits, kind="stable")] = np.arange(1, rows + 1)
    return rank


def _within(poi: Longs, rows: int) -> Longs:
    """Replace unknown POIs by 0, which no step leaves."""
    return np.where(known(poi, rows), poi, 0)


def _accuracy(rank: Longs, target: Longs, test: Sessions, rows: int) -> dict[str, Metrics]:
    return accuracy(np.where(known(target, rows), rank, np.inf), test)
