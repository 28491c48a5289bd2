"""A14: the table of step lengths, and a release that falls to it without a leak."""

from dataclasses import replace

import numpy as np
from attack_evidence import answer, candidates_of, evidence_of
from builders import sessions_of
from docs_scripts import script

from ghostpoi.attack.adversaries import hidden_markov
from ghostpoi.data.sessions import Vocabulary

LAT = np.array([np.nan, 0.0, 0.2, 0.001, 0.201, 0.1])


def test_counts_by_hand() -> None:
    # 1 and 3 are 111 m apart: the third length. 1 and 2 are 22 km apart: the eleventh. No step leads over a session.
    vocabulary = Vocabulary(LAT, np.zeros(6), np.zeros(6, np.int32), np.arange(6, dtype=np.int32))
    sessions = sessions_of([1, 1, 3], [2, 1], gap_s=1800)
    sessions = replace(sessions, time=np.array([0, 900, 901 + 900, 0, 30_000]))
    found = script("step_lengths").counts(sessions, vocabulary)
    assert found.shape == (5, 12)
    assert {tuple(cell): int(found[tuple(cell)]) for cell in np.argwhere(found)} == {(0, 0): 1, (1, 3): 1, (4, 10): 1}


def test_shares_of_the_shipped_table() -> None:
    shares = hidden_markov.known_shares()
    assert shares.shape == hidden_markov.SHAPE
    assert np.allclose(shares.sum(1), 1)
    median = (shares.cumsum(1) < 0.5).sum(1)
    assert (np.diff(median) > 0).sum() >= 2  # people get farther in more time
    assert (np.diff(median) >= 0).all()


def test_short_steps_tell_venues_apart_without_a_leak() -> None:
    # 5 may be 1 or 2, far apart. Everybody goes to both, 3 is next to 1, and 4 is next to 2.
    sets = candidates_of([5], [5], [], [], [1])
    released = [[3, 5], [4, 5]] * 8
    evidence = evidence_of(sets, [0] * 16, released)
    known = replace(evidence, rule=replace(evidence.rule, lat=LAT, lon=np.zeros(6)))
    assert answer("step-lengths", known) == [3, 1, 4, 2] * 8
    assert answer("habits", known)[1] == answer("habits", known)[3]
    apart = answer("step-lengths", evidence)  # without coordinates
    assert apart[1] == apart[3]
