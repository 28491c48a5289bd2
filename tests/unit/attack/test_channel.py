"""The public rule as arrays: by hand, and against its definition."""

import numpy as np
import pytest
from attack_evidence import candidate_sets, candidates_of
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack.evidence import rule_of
from ghostpoi.data.candidates import Candidates
from ghostpoi.draw.channel import Channel, uniform
from ghostpoi.draw.methods import METHODS


def test_uniform_by_hand() -> None:
    channel = uniform(candidates_of([2, 3], [3], []))
    assert channel.released.tolist() == [2, 3, 3, 3]
    assert channel.clean.tolist() == [1, 1, 2, 3]
    assert channel.probability.tolist() == [0.5, 0.5, 1.0, 1.0]  # 3 has no candidates and stays
    assert channel.start.tolist() == [0, 0, 0, 1, 4]
    keeping = uniform(candidates_of([2, 3], [3], []), keeps=True)
    assert keeping.probability[keeping.find(np.array([1, 1, 2]), np.array([1, 2, 2]))].tolist() == [1 / 3, 1 / 3, 0.5]


@given(candidate_sets(), st.booleans())
def test_uniform_is_its_definition(sets: Candidates, keeps: bool) -> None:
    channel = uniform(sets, keeps)
    wanted = {}
    for p in range(1, len(sets.poi)):
        options = [int(q) for q in sets.poi[p] if q]
        options += [p] if keeps or not options else []
        wanted |= {(p, q): 1 / len(options) for q in options}
    entries = zip(channel.clean.tolist(), channel.released.tolist(), strict=True)
    assert dict(zip(entries, channel.probability.tolist(), strict=True)) == pytest.approx(wanted)
    for q in range(channel.symbols):
        owner, entry = channel.behind(np.array([q]))
        assert channel.clean[entry].tolist() == sorted(p for p, to in wanted if to == q)
        assert not owner.any()
    pairs = np.array(list(wanted)).T
    found = channel.find(*pairs)
    assert (channel.clean[found] == pairs[0]).all()
    assert (channel.released[found] == pairs[1]).all()
    assert channel.find(np.array([0]), np.array([0])).tolist() == [-1]


def test_behind_several_at_once() -> None:
    channel = uniform(candidates_of([2, 3], [3], []))
    owner, entry = channel.behind(np.array([3, 1, 2, 3]))
    assert owner.tolist() == [0, 0, 0, 2, 3, 3, 3]  # nothing can have been released as 1
    assert entry.tolist() == [1, 2, 3, 0, 1, 2, 3]


def test_pairs_named_twice_add_up() -> None:
    channel = Channel.of(np.array([1, 2, 1]), np.array([3, 3, 3]), np.array([0.25, 1.0, 0.5]), 4)
    assert channel.clean.tolist() == [1, 2]
    assert channel.probability.tolist() == [0.75, 1.0]


def test_covering_lets_a_stranger_stand_behind_itself() -> None:
    channel = uniform(candidates_of([2], [3], [2]))
    more = channel.covering(np.array([1, 2, 1], np.int32))
    assert more.clean[more.behind(np.array([1]))[1]].tolist() == [1]
    assert len(more) == len(channel) + 1
    assert more.covering(np.array([1, 2, 3])) is more


def test_a_channel_without_entries() -> None:
    empty = Channel.of(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), 4)
    assert empty.find(np.array([1]), np.array([2])).tolist() == [-1]
    assert len(empty.covering(np.array([2]))) == 1


def test_what_is_known_of_each_method() -> None:
    sets = candidates_of([2, 3], [3], [])
    rules = {name: rule_of(method, sets) for name, method in METHODS.items()}
    assert rules["random"].exact
    assert not any(rules[name].exact for name in ("ghost", "pgd", "em", "ts-ue"))
    itself = np.array([1]), np.array([1])
    assert rules["ghost"].channel.find(*itself).tolist() == [-1]
    assert rules["ts-ue"].channel.find(*itself).tolist() != [-1]  # it may keep a POI
    assert not rule_of(None, sets).exact
