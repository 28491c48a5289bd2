"""The units in which audits estimate the time left, against what adversaries and victims took."""

import pytest

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.audits.controls import default_adversaries
from ghostpoi.progress import Pace

# Seconds of one core for a release by crowds. What is missing was not measured and takes what its units say.
FEW_ROWS = {  # the first 35,000 rows of NYC
    "habits": 0.151, "habits+leak": 0.143, "hidden-markov": 1.439, "step-lengths": 1.547, "session-habits": 0.334,
    "distilled": 1.726, "distilled-release": 0.018, "posterior": 0.119, "posterior-no-leak": 0.082, "markov": 0.014,
    "counting": 0.017,
}  # fmt: skip
ALL_ROWS = {
    "habits": 2.511, "hidden-markov": 14.762, "session-habits": 6.833, "posterior": 4.048, "markov": 0.836,
    "counting": 0.755,
}  # fmt: skip
CONTESTS = 12  # of each victim, under each seed
SEEDS = 3


def seconds(text: str) -> float:
    hours, minutes, rest = map(int, text.split(":"))
    return 3600.0 * hours + 60 * minutes + rest


@pytest.mark.parametrize("measured", [FEW_ROWS, ALL_ROWS], ids=["few rows", "all rows"])
def test_the_time_left_does_not_rise_by_more_than_half(measured: dict[str, float]) -> None:
    """Adversaries of all seeds come first, then the victims."""
    attacks = [(name, ADVERSARIES[name].effort) for name in default_adversaries()]
    work = attacks * SEEDS + [(name, VICTIMS[name].effort) for name in ("markov", "counting")] * CONTESTS * SEEDS
    per_unit = sum(measured.values()) / sum(effort for name, effort in dict(work).items() if name in measured)
    pace, now, least = Pace(sum(effort for _, effort in work)), 0.0, float("inf")
    for name, effort in work:
        now += 100 * measured.get(name, per_unit * effort)  # a hundred times slower: the text shows whole seconds
        pace.report(name, effort, now)
        if "-" not in (left := pace.left(now)):
            assert seconds(left) <= 1.5 * least + 1
            least = min(least, seconds(left))
    assert pace.done == pytest.approx(pace.total)
    assert least == 0
