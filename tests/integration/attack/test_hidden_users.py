"""No adversary depends on users that pseudonyms hide."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from anonymous_city import LIGHT, choices, drawn, restored_by
from anonymous_city import city as anonymous_city

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.evidence import Evidence, Rule, leak
from ghostpoi.draw.channel import uniform
from ghostpoi.randomness import Seed

CPU, SEED = torch.device("cpu"), Seed(907)


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("leaked", [0, 0.3])
def test_no_adversary_depends_on_users_that_pseudonyms_hide(name: str, leaked: float) -> None:
    clean, sets = anonymous_city(40, 12), choices(12)
    clean = replace(clean, user=np.arange(40, dtype=np.int32) % 5)
    flags, released = leak(clean, leaked, SEED), drawn(clean, sets)
    shuffled = np.where(flags, clean.user, np.random.default_rng(1).permutation(clean.user)).astype(np.int32)
    assert (shuffled != clean.user).any()
    found = [
        restored_by(
            LIGHT[name],
            Evidence.of(
                replace(released, user=user), clean.poi, flags, 13, Rule(sets, uniform(sets), True),
                pseudonym=np.arange(40),
            ),
        )
        for user in (clean.user, shuffled)
    ]  # fmt: skip
    assert (found[0] == found[1]).all()
    assert found[0].min() >= 1
    assert found[0].max() <= 12
    if LIGHT[name].uses_leak:
        assert (found[0] == clean.poi)[np.repeat(flags, clean.length)].all()
