"""The judge: ranks of what scorers predict, sparse and dense, and the victim that counts, as a scorer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from builders import sessions_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ghostpoi.attack.counting import Scores, Sparse
from ghostpoi.attack.victims.base import WRONG, Exam
from ghostpoi.attack.victims.counts import Chain, Markov
from ghostpoi.attack.victims.judge import judged, ranks
from ghostpoi.data.sessions import Sessions
from ghostpoi.randomness import Seed

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Fixed:
    """Predicts what it is told."""

    batches: tuple[Scores, ...]

    def probabilities(self, sessions: Sessions) -> Iterator[Scores]:
        yield from self.batches


def slow_ranks(scores: np.ndarray, target: list[int]) -> list[int]:
    """Count the venues that are scored as high as the one visited."""
    return [
        WRONG if goal < 1 or goal >= len(row) else int(sum(score >= row[goal] for score in row[1:]))
        for row, goal in zip(scores.tolist(), target, strict=True)
    ]


def test_a_tie_counts_against_the_target_and_column_0_never_counts() -> None:
    asked = sessions_of([1, 2, 3], [2, 1])
    scores = np.array([[9, 0.5, 0.5, 0], [9, 0.1, 0.2, 0.7], [9, 0.2, 0.3, 0.5]])
    assert ranks(Fixed((scores[:2], torch.from_numpy(scores[2:]))), asked, 4, CPU).tolist() == [2, 1, 3]


def test_an_unknown_venue_is_wrong_and_shown_as_0() -> None:
    seen = []

    class Curious(Fixed):
        def probabilities(self, sessions: Sessions) -> Iterator[Scores]:
            seen.append(sessions.poi.tolist())
            yield from super().probabilities(sessions)

    asked = sessions_of([1, 7, 2, 0])
    assert ranks(Curious((np.full((3, 3), 0.5),)), asked, 3, CPU).tolist() == [WRONG, 2, WRONG]
    assert seen == [[1, 0, 2, 0]]


def test_scores_that_are_no_numbers_are_wrong() -> None:
    assert ranks(Fixed((np.full((1, 3), np.nan),)), sessions_of([1, 2]), 3, CPU).tolist() == [WRONG]


def test_a_scorer_that_predicts_another_number_of_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="predicted 1 steps of 2"):
        ranks(Fixed((np.ones((1, 3)),)), sessions_of([1, 2, 1]), 3, CPU)
    with pytest.raises(ValueError, match="predicted 0 steps of 1"):
        ranks(Fixed(()), sessions_of([1, 2]), 3, CPU)


@given(st.data())
def test_sparse_scores_rank_like_dense_ones(data: st.DataObject) -> None:
    rows, steps = data.draw(st.integers(2, 7)), data.draw(st.integers(1, 9))
    few = st.integers(0, 3).map(float)  # ties are frequent
    base = np.array([0.0, *data.draw(st.lists(few, min_size=rows - 1, max_size=rows - 1))])
    more = np.array(data.draw(st.lists(st.lists(few, min_size=rows, max_size=rows), min_size=steps, max_size=steps)))
    more[:, 0] = 0
    scores = Sparse(base, sparse.csr_array(more))
    path = data.draw(st.lists(st.integers(0, rows + 1), min_size=steps + 1, max_size=steps + 1))
    expected = slow_ranks(more + base, path[1:])
    assert ranks(Fixed((scores,)), sessions_of(path), rows, CPU).tolist() == expected
    assert ranks(Fixed((scores.dense(),)), sessions_of(path), rows, CPU).tolist() == expected


def test_markov_counts_followers_and_popularity() -> None:
    some = sessions_of([1, 2, 3, 1, 2], [1, 4])
    counts, base = Markov(0.5, 7.0).counts(some, 5)
    expected = np.zeros((5, 5))
    for a, b in ((1, 2), (2, 3), (3, 1), (1, 2), (1, 4)):
        expected[a, b] += 1
        expected[b, a] += 0.5
    for a, b in ((1, 3), (2, 1), (3, 2)):
        expected[a, b] += 0.5
    assert np.allclose(counts.toarray(), expected)
    assert base.tolist() == [0, 3, 2, 1, 1]
    asked = sessions_of([1, 2, 4, 1], [3, 3])
    scores = expected[[1, 2, 4, 3]] + base
    assert ranks(Chain(counts, base), asked, 5, CPU).tolist() == slow_ranks(scores, [2, 4, 1, 3])


def test_what_a_scorer_achieves() -> None:
    exam = Exam(sessions_of([1, 2, 1]), sessions_of([2, 1]), 3, CPU)
    chain = Chain(sparse.csr_array(np.array([[0, 0, 0], [0, 0, 1.0], [0, 0, 1.0]])), np.zeros(3))
    found = judged("it", Seed(0), chain, exam, 0.0)
    assert (found.name, found.validation, found.ranks.tolist(), found.epochs) == ("it", 0.5, [2], 1)
    nothing = replace(exam, validation=sessions_of([1]))
    assert judged("it", Seed(0), chain, nothing, 0.0).validation == 0.0
