"""Where each user is at home: venues near all the others that somebody visits are likelier than those far away."""

from itertools import pairwise

import numpy as np

from ghostpoi.attack.inference.visits import TINY, Visits
from ghostpoi.data.checkins import Floats
from ghostpoi.data.geo import haversine_km

LEAST = 0.2  # visits that a venue needs to count as one that the user goes to


def closeness(visits: Visits, counts: Floats, lat: Floats, lon: Floats, km: float) -> Floats:
    """The mean of 1 / (distance + km) from each pair's POI to its user's other visits, counts (H,) of them; (H,)."""
    out = np.zeros(len(counts))
    bounds = np.flatnonzero(np.diff(visits.habit_user, prepend=-1, append=-1))
    for begin, end in pairwise(bounds.tolist()):
        poi, count = visits.habit_clean[begin:end], counts[begin:end]
        to = np.flatnonzero(count >= LEAST)
        there, weight = poi[to], count[to]
        near = 1 / (haversine_km(lat[poi][:, None], lon[poi][:, None], lat[there], lon[there]) + km)
        near[to, np.arange(len(to))] = 0  # not from the venue to itself
        out[begin:end] = near @ weight / max(weight.sum(), TINY)
    return out
