"""Readings of Table III: scores follow their definition, LMs are fitted to the clean value, rows are written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from builders import sessions_of

from docs import rerun_levels as levels
from docs.rerun_levels import SCORES, Course, Levels, Reading, with_end
from ghostpoi.audits.cache import Cache
from ghostpoi.draw.publication import Task
from ghostpoi.draw.walks import Substitution
from ghostpoi.models.trajectory_lm import load_or_train, log_likelihood, naturalness
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training, TrajectoryLM
from ghostpoi.study import prepare_city

ROWS = 9
SHAPE = ModelSettings(8, 2, 1, 8, 8, tied=True, start=1.0)
CPU = torch.device("cpu")
CLEAN = sessions_of([1, 2, 3, 4, 5, 6, 7], [5, 6, 7], [8, 1])
RELEASED = replace(CLEAN, poi=np.array([1, 3, 3, 2, 5, 8, 6, 5, 7, 7, 8, 2], np.int32))


@pytest.fixture
def lm() -> CausalTransformer:
    return CausalTransformer(ROWS, SHAPE, 4).eval().requires_grad_(False)


def brute(lm: CausalTransformer, prefix: list[int], poi: int, temperature: float = 1.0) -> float:
    """log T_psi(poi | prefix) from the whole distribution."""
    hidden = lm.hidden(torch.tensor([0, *prefix]), np.array([len(prefix) + 1]))[-1:]
    return float(torch.log_softmax(hidden @ lm.output[1:].T / temperature, 1)[0, poi - 1])


def by_definition(lm: CausalTransformer, score: str) -> float:
    """What a score of RELEASED should be, position by position."""
    clean, released = (np.split(s.poi, s.start[1:-1]) for s in (CLEAN, RELEASED))
    found = []
    for before, after in zip(clean, released, strict=True):
        context = before if "behind clean" in score else after
        window = {"no context": 1, "windows of 5 positions": 5}.get(score, 99)
        temperature = 0.7 if score == "temperature 0.7" else 1.0
        starts = [i - i % window for i in range(len(after))]
        rows = [brute(lm, list(context[at:i]), int(after[i]), temperature) for i, at in enumerate(starts)]
        if score == "last position":
            rows = rows[-1:]
        if score == "without the first position":
            rows = rows[1:]
        if score.startswith("substituted"):
            rows = [row for row, p, q in zip(rows, before, after, strict=True) if p != q]
        found.append(rows)
    if score == "mean of session means":
        return float(np.mean([np.mean(rows) for rows in found]))
    mean = float(np.mean([row for rows in found for row in rows]))
    return mean / np.log(2) if "bits" in score else mean


@pytest.mark.parametrize("score", SCORES)
def test_scores_follow_their_definition(lm: CausalTransformer, score: str) -> None:
    assert SCORES[score](lm, CLEAN, RELEASED) == pytest.approx(by_definition(lm, score), abs=1e-5)


def test_scores_of_clean_sessions_are_defined_everywhere(lm: CausalTransformer) -> None:
    """No position of clean sessions is substituted; then all count."""
    expected = naturalness(lm, CLEAN)
    for score in ("all positions", "substituted positions", "substituted positions behind clean POIs"):
        assert SCORES[score](lm, CLEAN, CLEAN) == pytest.approx(expected, abs=1e-6)


def test_a_course_passes_through_the_lm_of_the_studies(tmp_path: Path) -> None:
    settings = TrajectoryLM(SHAPE, Training(epochs=2, batch_sessions=2))
    of_study = load_or_train(tmp_path, CLEAN, ROWS, settings)
    course = Course(CLEAN, ROWS, settings, CPU)
    assert np.array_equal(log_likelihood(course.after(2), CLEAN), log_likelihood(of_study, CLEAN))
    twin = Course(CLEAN, ROWS, settings, CPU, twin=True)
    assert not np.array_equal(log_likelihood(twin.after(2), CLEAN), log_likelihood(of_study, CLEAN))


def test_the_lm_stops_where_the_clean_value_is_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    course = Course(CLEAN, ROWS, TrajectoryLM(SHAPE, Training(batch_sessions=2)), CPU)
    measured = {1: -9.0, 2: -5.0, 3: -3.0, 4: -2.0}

    def measure(lm: CausalTransformer) -> float:
        return measured[len(course.states)]

    assert course.nearest(measure, -4.2) == 2
    course.states.clear()
    assert course.nearest(measure, -3.9) == 3
    monkeypatch.setattr(levels, "LONGEST", 3)
    course.states.clear()
    assert course.nearest(measure, 0.0) == 3


def test_every_session_gets_an_end() -> None:
    ended = with_end(CLEAN, ROWS)
    assert ended.poi.tolist() == [1, 2, 3, 4, 5, 6, 7, 9, 5, 6, 7, 9, 8, 1, 9]
    assert ended.start.tolist() == [0, 8, 12, 15]
    assert ended.length.tolist() == [8, 4, 3]


def test_there_is_one_row_per_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, bool]] = []

    def publish(task: Task, seed: Seed, device: torch.device) -> Substitution:
        """Releases the next POI of the list, and notes who asked with an LM."""
        made.append((type(task.settings.method).__name__, task.trajectory_lm is not None))
        return Substitution(task.sessions.poi % (len(task.vocabulary) - 1) + 1, np.zeros(task.sessions.positions, bool))

    small = "lm.dim=8 lm.heads=2 lm.feed_forward=8"
    ours, end = Reading("ours", changes=small), Reading("end", changes=small, end=True)
    monkeypatch.setattr(levels, "READINGS", (ours, end, Reading("b", "all positions, bits", small)))
    monkeypatch.setattr(levels, "LONGEST", 1)
    monkeypatch.setattr(levels, "publish", publish)
    city = prepare_city(12, 30, 25, 0)
    rows = Levels(city, "strong", CPU, Cache(tmp_path), lambda text: None).rows()
    # GHOST alone releases again with another LM; the third reading has the first one's.
    others = [("TsUe", False), ("Em", False), ("Pgd", False), ("Random", False)]
    assert made == [("Ghost", True), *others, ("Ghost", True)]
    assert [row["name"] for row in rows] == ["ours", "end", "b"]
    assert levels.printed()["ghost"] == -10.0208
    plain, _, bits = (row["values"] for row in rows)
    assert set(plain) == {"clean", "random", "pgd", "ghost", "em", "ts-ue"}
    assert bits["random"] == pytest.approx(plain["random"] / np.log(2))
    assert all(row["epochs"] == 1 and set(row["fits"]) == {"clean", "levels", "order"} for row in rows)
