"""The speed rule, candidate by candidate: what walks must keep."""

from ghostpoi.data.candidates import steps_kmh
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.settings import SpeedSettings


def speed_mask(lat: Floats, lon: Floats, previous: Ints, options: Ints, gap_s: Longs, rule: SpeedSettings) -> Bools:
    """Mark the options (B, K) that can be reached from the previous venue (B,) within the speed limit.

    Padding (0) is never feasible. A previous venue of 0 (the first check-in) makes all options feasible.
    """
    return (options > 0) & (steps_kmh(lat, lon, previous, options, gap_s, rule.min_gap_s) <= rule.limit_kmh)
