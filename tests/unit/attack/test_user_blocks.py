"""Users are inferred some at a time: whatever the size of the blocks, the numbers are the same."""

from itertools import pairwise

import numpy as np
import pytest
from anonymous_city import choices, city, drawn
from attack_evidence import unchanged

from ghostpoi.attack.adversaries import deconvolution
from ghostpoi.attack.adversaries.deconvolution import Visits
from ghostpoi.attack.evidence import Evidence, leak
from ghostpoi.draw.channel import uniform
from ghostpoi.randomness import Seed


@pytest.mark.parametrize("concentration", [np.inf, 3.0])
def test_blocks_of_users_change_no_number(concentration: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clean, sets = city(60, 12), choices(12)
    evidence = Evidence.of(drawn(clean, sets), clean.poi, leak(clean, 0.3, Seed(1)), 13, unchanged(13))
    visits = Visits.of(evidence, uniform(sets), evidence.symbol)
    prior = np.random.default_rng(2).random(len(visits.clean))
    found = []
    for block in (1, 7, 50, 1 << 20):
        monkeypatch.setattr(deconvolution, "BLOCK", block)
        options, groups, habits, *_ = (list(part) for part in zip(*visits.blocks(), strict=True))
        assert [b.start for b in options[1:]] == [b.stop for b in options[:-1]]
        assert (options[0].start, options[-1].stop) == (0, len(visits.clean))
        assert (groups[0].start, groups[-1].stop) == (0, len(visits.first))
        assert all(a.stop <= b.start for a, b in pairwise(habits))
        again = Visits.of(evidence, uniform(sets), evidence.symbol)
        for name in ("owner", "entry", "clean", "habit", "leaked", "habits"):
            np.testing.assert_array_equal(getattr(again, name), getattr(visits, name))
        found.append((len(options), visits.posterior(prior, 0.5, 6, concentration)))
    assert found[0][0] > found[1][0] > found[-1][0] == 1
    assert all((share == found[0][1]).all() for _, share in found)


def test_no_visits_make_no_blocks() -> None:
    clean, sets = city(5, 12), choices(12)
    evidence = Evidence.of(drawn(clean, sets), clean.poi, np.ones(5, bool), 13, unchanged(13))
    visits = Visits.of(evidence, uniform(sets), evidence.symbol)
    assert list(visits.blocks()) == []
    assert visits.posterior(np.zeros(0), 0.5, 3).shape == (0,)
