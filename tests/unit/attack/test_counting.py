"""The counting mixture: by hand, against loops over dicts, and its choice of weights."""

from collections import defaultdict

import numpy as np
import pytest
import torch
from builders import flat_sessions, sessions_of
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack import counting
from ghostpoi.attack.counting import (
    BACK_OFF,
    DOUBT,
    POPULAR,
    SLOTS,
    Comparison,
    CountingModel,
    SoftSessions,
    Steps,
    chosen,
    popularity_of,
    slots,
    tables_of,
)
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.attack.victims.base import Exam, Job
from ghostpoi.attack.victims.judge import ranks
from ghostpoi.data.sessions import Sessions
from ghostpoi.randomness import Seed

ROWS = 7
HOUR = 3600
CPU = torch.device("cpu")


@st.composite
def soft_sessions(draw: st.DrawFn) -> SoftSessions:
    lengths = draw(st.lists(st.integers(0, 5), max_size=6))
    n, k = sum(lengths), draw(st.integers(1, 3))
    noise = np.random.default_rng(draw(st.integers(0, 1000)))
    user, time = noise.integers(0, 3, len(lengths)), np.sort(noise.integers(0, 4 * 86_400, n))
    poi = np.stack([noise.permutation(ROWS)[:k] for _ in range(n)]) if n else np.zeros((0, k))
    share = noise.dirichlet(np.ones(k), n) if n else np.zeros((0, k))
    hard = flat_sessions(poi[:, 0] if n else np.zeros(0), lengths, user, time)
    return SoftSessions(hard, poi.astype(np.int32), share, noise.choice([1.0, 3.0], n))


@st.composite
def asked(draw: st.DrawFn) -> Sessions:
    lengths = draw(st.lists(st.integers(0, 5), max_size=5))
    noise = np.random.default_rng(draw(st.integers(0, 1000)))
    n = sum(lengths)
    poi = noise.integers(0, ROWS + 2, n)  # some of them unknown
    time = np.sort(noise.integers(0, 4 * 86_400, n))
    return flat_sessions(poi, lengths, noise.integers(0, 4, len(lengths)), time)


def by_hand(soft: SoftSessions, weights: tuple[float, ...], sessions: Sessions) -> np.ndarray:
    """The scores of all steps, (n, ROWS), with a dict for every count."""
    tables = [defaultdict(lambda: np.zeros(ROWS)) for _ in range(4)]
    visits = np.ones(ROWS)
    s = soft.sessions
    for number in range(len(s)):
        user, at = s.user[number], range(s.start[number], s.start[number + 1])
        options = [list(zip(soft.poi[i], soft.share[i] * soft.weight[i], strict=True)) for i in at]
        shares = [list(zip(soft.poi[i], soft.share[i], strict=True)) for i in at]
        for place, i in enumerate(at):
            for p, w in (o for o in options[place] if o[0]):
                tables[1][user][p] += w
                tables[2][user, s.time[i] // (4 * HOUR) % SLOTS][p] += w
                visits[p] += w
            for lag, forth, back in ((1, 1.0, BACK_OFF), (2, BACK_OFF, 0.0)):
                for q, v in (o for o in (shares[place + lag] if place + lag < len(at) else []) if o[0]):
                    for p, w in (o for o in options[place] if o[0]):
                        for table, one, two in ((0, (user, p), (user, q)), (3, p, q)):
                            tables[table][one][q] += forth * v * w
                            tables[table][two][p] += back * v * w
    visits[0] = 0
    doubts = (DOUBT["habit"], DOUBT["user"], DOUBT["hour"], DOUBT["step"])
    scores = []
    for number in range(len(sessions)):
        user = sessions.user[number]
        for i in range(sessions.start[number], sessions.start[number + 1] - 1):
            p = sessions.poi[i] if sessions.poi[i] < ROWS else 0
            score = POPULAR * visits / visits.sum()
            keys = ((user, p), user, (user, sessions.time[i] // (4 * HOUR) % SLOTS), p)
            for table, key, weight, doubt in zip(tables, keys, weights, doubts, strict=False):
                found = table[key]
                score = score + weight * found / (found.sum() + doubt)
            score[p] += weights[4] * (p > 0)
            scores.append(score)
    return np.array(scores).reshape(-1, ROWS)


@given(soft_sessions(), asked())
def test_counts_agree_with_dicts(soft: SoftSessions, sessions: Sessions) -> None:
    weights = (1.0, 0.5, 0.3, 0.7, 0.2)
    model = CountingModel(tables_of(soft, ROWS), popularity_of(soft, ROWS), weights)
    found = [batch.dense() for batch in model.probabilities(sessions)]
    scores = np.concatenate([np.zeros((0, ROWS)), *found])
    assert scores == pytest.approx(by_hand(soft, weights, sessions), abs=1e-12)
    assert not scores[:, 0].any()
    assert (scores[:, 1:] > 0).all()


@given(soft_sessions(), asked())
def test_the_few_best_columns_decide_as_all_do(soft: SoftSessions, sessions: Sessions) -> None:
    model = CountingModel.fit(soft, sessions, ROWS)  # ROWS is less than counting.BEST
    compared = Comparison.of(model, sessions)
    found = ranks(model, sessions, ROWS, CPU)
    assert compared.accuracy(model.weights) == pytest.approx((found == 1).mean() if len(found) else 0)
    assert compared.accuracy(model.weights) >= compared.accuracy(counting.START)
    assert chosen(compared) == model.weights


def test_steps_and_parts_of_the_day() -> None:
    sessions = sessions_of([1, 9, 2], [3], [4, 4], user=[5, 6, 7], gap_s=3 * HOUR)
    steps, target = Steps.of(sessions, ROWS)
    assert (steps.user.tolist(), steps.poi.tolist(), target.tolist()) == ([5, 5, 7], [1, 0, 4], [9, 2, 4])
    assert steps.slot.tolist() == [0, 0, 3]
    assert slots(np.array([0, 4 * HOUR - 1, 4 * HOUR, 24 * HOUR + 1])).tolist() == [0, 0, 1, 0]


def test_what_a_user_does_outweighs_what_others_do() -> None:
    routes = ([1, 2, 1, 2], [1, 3, 1, 3], [1, 3, 1, 3])
    train, test = sessions_of(*routes * 3, user=[0, 1, 2] * 3), sessions_of([1, 2], [1, 3], user=[0, 1])
    model = CountingModel.fit(SoftSessions.hard(train), train, 4)
    assert ranks(model, test, 4, CPU).tolist() == [1, 1]
    stranger = sessions_of([1, 3], [1, 2], user=[8, 8])
    assert ranks(model, stranger, 4, CPU).tolist() == [1, 3]  # then staying, then what one user did


def test_nothing_to_count_leaves_staying_and_popularity() -> None:
    nothing = sessions_of()
    model = CountingModel.fit(SoftSessions.hard(nothing), nothing, 4)
    assert ranks(model, sessions_of([2, 2, 3]), 4, CPU).tolist() == [1, 3]  # a tie counts against the target


def test_the_victim_returns_what_its_model_gives() -> None:
    train, test = sessions_of([1, 2, 1, 2], [1, 3, 1, 3], user=[0, 1]), sessions_of([1, 2], [1, 3], user=[0, 1])
    found = VICTIMS["counting"].train([Job("one", train, Seed(0))], Exam(train, test, 4, CPU), "strong")
    assert [(r.name, r.ranks.tolist(), r.validation, r.epochs) for r in found] == [("one", [1, 1], 1.0, 1)]
