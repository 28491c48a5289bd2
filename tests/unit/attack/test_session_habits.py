"""A15: a session's area counts most where draws reveal nothing, a user's repeated draws elsewhere."""

from dataclasses import replace

import numpy as np
from attack_evidence import answer, candidates_of, evidence_of

from ghostpoi.attack.adversaries.habits import distinguishes
from ghostpoi.draw.channel import uniform


def test_distinguishes_by_hand() -> None:
    # 1 and 2 form a crowd; behind 3 stand 3 and 4, which are released differently; behind 5 stands 5 alone.
    channel = uniform(candidates_of([1, 2], [1, 2], [3, 4], [3], []))
    assert distinguishes(channel).tolist() == [False, False, False, True, False, False]


def test_a_session_tells_where_in_a_crowd_it_was() -> None:
    # 1 and 2 form a crowd. One session of the user was at 3, near 1, the other at 4, near 2, and most of them at 4.
    sets = candidates_of([1, 2], [1, 2], [], [])
    evidence = evidence_of(sets, [0] * 4, [[3, 1], [4, 2], [4, 1], [4, 4]])
    lat = np.array([np.nan, 0.0, 0.2, 0.001, 0.201])
    known = replace(evidence, rule=replace(evidence.rule, lat=lat, lon=np.zeros(5)))
    assert answer("session-habits", known) == [3, 1, 4, 2, 4, 2, 4, 4]
    assert answer("habits", known) == [3, 2, 4, 2, 4, 2, 4, 4]  # A7 knows the user's area alone


def test_repeated_draws_of_a_user_still_tell() -> None:
    # 3 and 4 may be either; that user 0 also released 5 in other sessions, and user 1 also 6, separates their habits.
    sets = candidates_of([3, 4, 5], [3, 4, 6], [1], [1], [1], [2])
    released = [[3, 4], [5, 5], [3, 4]] * 4 + [[3, 4], [6, 6], [3, 4]] * 4
    evidence = evidence_of(sets, [0] * 12 + [1] * 12, released)
    assert answer("session-habits", evidence) == answer("habits", evidence) == [1] * 24 + [2] * 24
