"""The parts into which audits split sessions, where few people have many."""

import numpy as np

from ghostpoi.audits.match import _parts
from ghostpoi.data.sessions import Sessions, split
from ghostpoi.settings import FilterSettings


def sessions_of(*counts: int) -> Sessions:
    """Sessions of one visit each: so many of each user."""
    user = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    at = np.arange(len(user))
    return Sessions(user, np.append(at, len(user)), at.astype(np.int32), at, at)


def test_people_with_several_training_sessions_give_their_last_one_to_validate_on() -> None:
    data = sessions_of(4, 1, 2, 3, 5)
    assert split(data.user, FilterSettings()).tolist() == [0, 0, 0, 2, 2, 0, 2, 0, 0, 2, 0, 0, 0, 0, 2]
    assert _parts(data, FilterSettings()).tolist() == [0, 0, 1, 2, 2, 0, 2, 0, 1, 2, 0, 0, 0, 0, 2]


def test_a_split_with_validation_sessions_stays() -> None:
    data = sessions_of(10, 3)
    assert _parts(data, FilterSettings()).tolist() == split(data.user, FilterSettings()).tolist()


def test_no_share_and_no_person_with_two_sessions_leave_none() -> None:
    assert not np.any(_parts(sessions_of(4, 4), FilterSettings(val_share=0)) == 1)
    assert not np.any(_parts(sessions_of(1, 2), FilterSettings()) == 1)
