"""How well a victim that was trained on a release predicts clean test sessions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.models import fit
from ghostpoi.models.fit import Accuracy
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.models.windows import Windows, next_poi
from ghostpoi.settings import Precision


@dataclass(frozen=True)
class Scores:
    """Accuracy over every next-POI position of the test sessions, and over the last of each session only."""

    all: Accuracy
    last: Accuracy


def evaluate(model: CausalTransformer, test: Sessions, precision: Precision = "float32") -> Scores:
    """Rank the true next POI among all POIs at every position of the test sessions.

    A POI that the model does not know (0, or outside its vocabulary) is read as 0 and, as a target, counts as wrong.
    """
    pairs = next_poi(test, model.settings.max_positions)
    read, asked = (known(a, model.rows) for a in (pairs.token, pairs.target))
    askable = Windows(np.where(read, pairs.token, 0), np.where(asked, pairs.target, 1), pairs.length)
    rank = fit.ranks(model, askable, precision)
    # A model whose training diverged answers NaN, which beats no logit: rank 0 is its way to say that it has no answer.
    return scores(np.where(asked & (rank >= 1), rank, np.inf), test)


def scores(rank: Floats, test: Sessions) -> Scores:
    """From the rank of every next POI in the order of the test sessions, 1 the best, infinite where it is unknown."""
    last = np.cumsum(np.maximum(test.length - 1, 0))[test.length > 1] - 1
    return Scores(_accuracy(rank), _accuracy(rank[last]))


def steps(sessions: Sessions) -> tuple[Longs, Longs]:
    """The POI at and after every step inside a session, in order, each (N - S,)."""
    pairs = next_poi(sessions, max(2, sessions.positions))
    return pairs.token, pairs.target


def figures(accuracy: Accuracy) -> dict[str, float]:
    """By the names that the commands print."""
    return {"acc@1": accuracy.acc1, "acc@5": accuracy.acc5, "acc@10": accuracy.acc10, "mrr": accuracy.mrr}


def _accuracy(rank: Floats) -> Accuracy:
    n = len(rank)
    if not n:
        return Accuracy(0.0, 0.0, 0.0, 0.0, 0)
    acc1, acc5, acc10 = (float((rank <= k).mean()) for k in (1, 5, 10))
    return Accuracy(acc1, acc5, acc10, float((1 / rank).mean()), n)  # 1 / inf is 0


def known(poi: Longs, rows: int) -> NDArray[np.bool_]:
    """Which POIs a vocabulary of `rows` rows holds."""
    return (poi >= 1) & (poi < rows)
