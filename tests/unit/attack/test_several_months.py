"""A19 on releases small enough to follow by hand."""

import numpy as np
import pytest

from ghostpoi.attack.adversaries.several_releases import Month, SeveralMonths, shown_popularity
from ghostpoi.data.candidates import Candidates
from ghostpoi.draw.channel import channel_of

ROWS = 5  # four venues


def month(crowds: list[list[int]], habit: list[int], released: list[int], popular: bool = False) -> Month:
    """A release that draws from these crowds."""
    poi = np.zeros((ROWS, 4), np.int32)
    for crowd in crowds:
        for venue in crowd:
            poi[venue, : len(crowd)] = crowd
    return Month(np.array(habit), np.array(released), channel_of(Candidates(poi, np.zeros(ROWS))), popular)


def left(months: list[Month]) -> dict[int, list[int]]:
    found = SeveralMonths().intersect(months, shown_popularity(months, ROWS))
    return {habit: found.venue[found.habit == habit].tolist() for habit in np.unique(found.habit).tolist()}


FIRST = month([[1, 2], [3, 4]], [0, 0, 1], [1, 2, 4])
SAME = month([[1, 2], [3, 4]], [0, 1], [2, 3])
OTHER = month([[1, 3], [2, 4]], [0, 1], [3, 4])


def test_crowds_that_stay_leave_all_their_venues() -> None:
    assert left([FIRST]) == left([FIRST, SAME]) == {0: [1, 2], 1: [3, 4]}


def test_crowds_that_change_leave_the_visited_venue() -> None:
    assert left([OTHER]) == {0: [1, 3], 1: [2, 4]}
    assert left([FIRST, OTHER]) == {0: [1], 1: [4]}


def test_a_guess_is_shared_among_equals_and_follows_popularity() -> None:
    clean = np.array([1, 4])
    evenly = SeveralMonths().intersect([FIRST], shown_popularity([FIRST], ROWS))
    assert evenly.right(clean).tolist() == [0.5, 0.5]
    assert evenly.size(2).tolist() == [2, 2]
    popular = [month([[1, 2], [3, 4]], [0, 0, 1], [1, 1, 3], popular=True)]
    assert shown_popularity(popular, ROWS).tolist() == [1, 3, 1, 2, 1]
    assert SeveralMonths().intersect(popular, shown_popularity(popular, ROWS)).right(clean).tolist() == [1, 0]


def test_a_habit_in_one_release_only_is_not_narrowed_by_others() -> None:
    one = month([[1, 3], [2, 4]], [0], [3])
    found = SeveralMonths().intersect([FIRST, one], np.ones(ROWS))
    assert found.size(2).tolist() == [1, 2]
    assert found.right(np.array([1, 4])) == pytest.approx([1, 0.5])
