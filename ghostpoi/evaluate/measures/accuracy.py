"""Accuracy on clean test sessions, from the rank that a victim gives every true next POI."""

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.sessions import Sessions

Metrics = dict[str, float]
CUTOFFS = {"acc@1": 1, "acc@5": 5, "acc@10": 10}


def accuracy(rank: Floats, test: Sessions) -> dict[str, Metrics]:
    """Return the metrics over `all` next-POI positions of the test sessions and over the `last` one of each session.

    Ranks follow the order of the test sessions; 1 is the best, infinity stands for an unknown POI.
    """
    last = np.cumsum(np.maximum(test.length - 1, 0))[test.length > 1] - 1
    return {"all": metrics(rank), "last": metrics(rank[last])}


def metrics(rank: Floats) -> Metrics:
    """Return acc@1, acc@5, acc@10 and MRR of these ranks; 0 if there are none."""
    if not len(rank):
        return dict.fromkeys((*CUTOFFS, "mrr"), 0.0)
    found = {name: float((rank <= cutoff).mean()) for name, cutoff in CUTOFFS.items()}
    return found | {"mrr": float((1 / rank).mean())}  # 1 / inf is 0


def steps(sessions: Sessions) -> tuple[Longs, Longs]:
    """Return the POI before and after every step inside a session, each (N - S,)."""
    at = np.flatnonzero(np.diff(sessions.session_of()) == 0)
    return sessions.poi[at].astype(np.int64), sessions.poi[at + 1].astype(np.int64)


def known(poi: Longs, rows: int) -> NDArray[np.bool_]:
    """Whether each POI belongs to a vocabulary of `rows` rows."""
    return (poi >= 1) & (poi < rows)
