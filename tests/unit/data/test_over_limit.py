"""Steps over the speed limit are found as if the distance of every step was measured."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.geo import haversine_km, over_limit, speed_kmh

CHECKIN = st.tuples(st.floats(-90, 90), st.floats(-180, 180), st.integers(0, 10**6))
NEARBY = st.tuples(st.floats(40, 40.1), st.floats(-74, -73.9), st.integers(0, 3600))


@given(
    st.one_of(st.lists(CHECKIN, min_size=1), st.lists(NEARBY, min_size=1)), st.sampled_from([0.01, 5.0, 60.0, 900.0])
)
def test_all_steps_over_the_limit_are_marked(rows: list[tuple[float, float, int]], limit: float) -> None:
    rows = sorted(rows, key=lambda row: row[2])
    lat, lon, time = (np.array(column) for column in zip(*rows, strict=True))
    km = haversine_km(lat[:-1], lon[:-1], lat[1:], lon[1:])
    assert over_limit(lat, lon, time, limit, 60.0).tolist() == (speed_kmh(km, np.diff(time), 60.0) > limit).tolist()
