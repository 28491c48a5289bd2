"""Which people adversaries and victims see of a file with very many visits."""

from pathlib import Path

import numpy as np
import pytest
from builders import sessions_of

from ghostpoi.audits import match
from ghostpoi.audits.match import align, read_pair, sampled_users
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.settings import FilterSettings


def test_people_are_taken_whole_up_to_the_limit() -> None:
    data = sessions_of([1, 2], [1, 2, 3], [4, 5], [1], user=[0, 1, 0, 2])
    ids = np.array(["a", "b", "c"], object)
    for most in range(1, 9):
        chosen = sampled_users(ids, data, most)
        assert chosen[0] == chosen[2]  # both are of user 0
        assert 0 < data.length[chosen].sum() <= max(most, data.length[data.user == data.user[chosen][0]].sum())
    assert sampled_users(ids, data, 8).all()
    assert (sampled_users(ids, data, 5) >= sampled_users(ids, data, 4)).all()


def test_the_rest_of_a_file_is_still_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "city.txt"
    write_city(file, 40, 60, 60, 0)
    pair, filters = read_pair(file, file, {}), FilterSettings(min_poi_checkins=1)
    whole = align(pair, filters)
    assert whole.sample is None
    monkeypatch.setattr(match, "MOST_VISITS", whole.all.positions // 2)
    some = align(pair, filters)
    assert some.sample is not None
    assert some.sample["users"] < some.sample["of_users"] == len(np.unique(whole.all.user))
    assert some.all.positions == whole.all.positions
    assert len(some.vocabulary) == len(whole.vocabulary)
    parts = (some.train, some.val, some.test)
    assert (
        round(sum(part.positions for part in parts) / whole.all.positions, 3) == some.sample["share_of_visits"] <= 0.5
    )
    seen = set().union(*(part.user.tolist() for part in parts))
    assert len(seen) == some.sample["users"]
    assert set(some.test.user.tolist()) <= set(some.train.user.tolist())
