"""The model of A23: its loss against the definition, its blend with counts, and what only a Transformer can learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import sessions_of
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack.adversaries.posterior_models import Blend, Reader, targets
from ghostpoi.attack.counting import CountingModel, SoftSessions
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.training_windows import next_place
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

SHAPE = ModelSettings(dim=16, heads=2, layers=1, feed_forward=16, max_positions=4, dropout=0.0)
ROWS, CROWD_OF = 7, np.array([0, 1, 1, 2, 2, 3, 3])
CLEAN = sessions_of([1, 2, 3, 4, 5], [6, 1], [2], [5, 4, 3], user=[0, 1, 0, 1])


def reader() -> Reader:
    return Reader(ROWS, CROWD_OF, 2, SHAPE, 5).eval()


def softened(sessions: Sessions, seed: int = 0) -> SoftSessions:
    """Every visit is one of both members of its crowd."""
    members: Ints = np.array([[0, 0], [1, 2], [2, 1], [3, 4], [4, 3], [5, 6], [6, 5]], np.int32)[sessions.poi]
    share = np.random.default_rng(seed).uniform(0.1, 0.9, (sessions.positions, 1))
    return SoftSessions(sessions, members, np.concatenate([share, 1 - share], 1), np.ones(sessions.positions))


@given(st.integers(0, 50))
def test_the_loss_is_that_of_all_venues_behind_the_next_visit(seed: int) -> None:
    model, soft = reader(), softened(CLEAN, seed)
    windows, visits = next_place(CLEAN, SHAPE.max_positions), model.visits(soft)
    p = torch.exp(model.log_probs(model.read(visits.take(torch.from_numpy(windows.token)), windows.length))).detach()
    one_by_one = [
        -np.log(sum(float(p[n, poi]) * share for poi, share in zip(soft.poi[at], soft.share[at], strict=True)))
        for n, at in enumerate(windows.target)
    ]
    assert model.marginal_loss(visits, windows).item() == pytest.approx(np.mean(one_by_one), rel=1e-4)


def test_the_loss_of_certain_visits_is_the_cross_entropy() -> None:
    model, soft = reader(), SoftSessions.hard(CLEAN)
    windows, visits = next_place(CLEAN, SHAPE.max_positions), model.visits(soft)
    log_p = model.log_probs(model.read(visits.take(torch.from_numpy(windows.token)), windows.length))
    wanted = -log_p[np.arange(len(windows.token)), CLEAN.poi[windows.target]].mean()
    assert model.marginal_loss(visits, windows).item() == pytest.approx(wanted.item(), rel=1e-5)


def test_unknown_venues_and_users_are_read_as_nothing() -> None:
    strange = replace(CLEAN, poi=CLEAN.poi.copy(), user=np.array([0, 1, 40, 1], np.int32))
    strange.poi[3] = ROWS + 5
    visits = reader().visits(SoftSessions.hard(strange))
    assert visits.poi[3].tolist() == [0]
    assert visits.user.tolist() == [1] * 5 + [2] * 2 + [0] + [2] * 3


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_a_blend_is_the_mean_of_counts_and_model(weight: float) -> None:
    counts, model = CountingModel.fit(SoftSessions.hard(CLEAN), CLEAN, ROWS), reader()
    (found,) = Blend(counts, model, weight).probabilities(CLEAN)
    (scores,) = counts.probabilities(CLEAN)
    counted = scores.dense() / scores.dense().sum(1, keepdims=True)
    wanted = (1 - weight) * counted + weight * model.probabilities_of(model.states_of(CLEAN)).numpy()
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
    assert (found[:, 0] == 0).all()


def test_the_model_learns_what_counts_of_single_steps_cannot() -> None:
    """After 3 comes 5 if the session began at 1, and 6 if it began at 2: counts see 3 alone."""
    sessions = sessions_of(*[[1, 3, 5], [2, 3, 6]] * 40, user=[0] * 80)
    soft = SoftSessions.hard(sessions)
    counts, model = CountingModel.fit(soft, sessions, ROWS), reader()
    model.learn(soft, sessions, Training(learning_rate=0.01, batch_sessions=16, epochs=30, patience=30), Seed(3))
    assert model.accuracy(sessions) == 1.0
    blend = Blend(counts, model, 0.0).chosen(sessions)
    assert blend.weight > 0
    found = torch.cat(list(blend.probabilities(sessions))).argmax(1).numpy()
    np.testing.assert_array_equal(found, targets(sessions))
