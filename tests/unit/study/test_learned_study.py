"""Learned candidate sets in studies: the sets of a variant, and how far they agree with the categories they ignore."""

from pathlib import Path

import numpy as np
import torch
from builders import flat_sessions

from docs import rerun_venue_use as compare
from ghostpoi.audits.cache import Cache
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.study.run import Releases

DAY, HOUR = 86_400, 3600


def town() -> Prepared:
    """Two cafés (1, 2: category 0) visited at 8, a bar at 20 (3: category 1) and a café that is used as a bar (4)."""
    rows = [(venue, day) for venue in (1, 2, 3, 4) for day in range(5)]
    time = np.array([(4 + day) * DAY + (8 if venue < 3 else 20) * HOUR for venue, day in rows])
    train = flat_sessions(np.array([venue for venue, _ in rows]), [5] * 4, [0, 1, 2, 3], time)
    lat, category = np.array([np.nan, 1, 1.001, 1.002, 1.003]), np.array([-1, 0, 0, 1, 0], np.int32)
    v = Vocabulary(lat, np.array([np.nan, 1, 1, 1, 1]), category, np.arange(5, dtype=np.int32))
    same = Candidates(np.array([[0, 0], [2, 4], [1, 4], [0, 0], [1, 2]], np.int32), np.ones(5))
    return Prepared(v, train, train, train, same, "town")


def releases(folder: Path) -> Releases:
    return Releases(town(), "strong", torch.device("cpu"), Cache(folder), lambda text: None)


def test_a_variant_has_the_sets_of_its_settings(tmp_path: Path) -> None:
    def sets(name: str) -> list[list[int]]:
        return [sorted({*row} - {0}) for row in releases(tmp_path)(name).rule.candidates.poi.tolist()[1:]]

    assert sets("random") == [[2, 4], [1, 4], [], [1, 2]]
    assert sets("random candidates.category=learned") == [[2], [1], [4], [3]]
    assert sets("random candidates.category=any") == [[2, 3, 4], [1, 3, 4], [1, 2, 4], [1, 2, 3]]


def test_a_release_draws_from_them(tmp_path: Path) -> None:
    found = releases(tmp_path).published("random candidates.category=learned", 0).poi
    assert found.tolist() == [2] * 5 + [1] * 5 + [4] * 5 + [3] * 5


def test_the_script_ranks_pairs_by_their_likeness() -> None:
    pairs, same = compare.pairs_of(town())
    assert sorted((a, b, s) for (a, b), s in zip(pairs.tolist(), same.tolist(), strict=True)) == [
        (1, 2, True), (1, 3, False), (1, 4, True), (2, 3, False), (2, 4, True), (3, 4, False)
    ]  # fmt: skip
    cafes = np.array([[0, 0], [1, 0], [2, 0.1], [0, 1], [-1, 0]], float)
    assert compare.precision(cafes, pairs, same) == [1, 1, 1]  # (1, 2) alone is accepted
    assert compare.precision(cafes[[0, 1, 3, 2, 4]], pairs, same) == [0, 0, 0]  # (1, 3)
