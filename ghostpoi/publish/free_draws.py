"""Draw the check-ins that the speed limit cannot touch, all at once.

Most neighbours in a trail are so far apart in time that all their candidates are within reach of each other. Such a
check-in draws by the weights of its set alone. `weighted_walk` draws the others, one after the other, and would draw
the same for these.
"""

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import EARTH_RADIUS_KM, MARGIN, MARGIN_KM
from ghostpoi.data.ordering import stable_order
from ghostpoi.data.places import SLOTS, slot_of
from ghostpoi.publish.trails import Trails
from ghostpoi.settings import SpeedSettings

AT_ONCE = 16_384  # draws: bounds the memory and fits caches


def free(trails: Trails, decided: Ints, speed: SpeedSettings) -> Bools:
    """Mark the undecided check-ins (N,) whose candidates are all slow enough, whatever their neighbours draw."""
    lat, lon = np.radians(trails.lat), np.radians(trails.lon)
    places = lat, lon, np.cos(lat)
    fixed = decided > 0
    place = np.where(fixed, decided, trails.anchor)
    around = np.where(fixed, 0.0, _spread(trails.sets, places)[trails.anchor])  # how far from there the draw may be
    km = _at_most_km(places, place[:-1], place[1:]) + around[:-1] + around[1:]
    hours = np.maximum(np.abs(np.diff(trails.time)), speed.min_gap_s) / 3600
    slow = (km * MARGIN + MARGIN_KM <= speed.limit_kmh * hours) | (trails.trail[1:] != trails.trail[:-1])
    found: Bools = ~fixed
    found[1:] &= slow
    found[:-1] &= slow | ~fixed[1:]  # a next check-in that is not yet decided follows this one
    return found


def draw(trails: Trails, at: Longs, uniform: Floats) -> Ints:
    """Draw a venue for each of these check-ins (B,) by the weights of its set; without a set, the clean venue."""
    sets, anchor = trails.sets, trails.anchor[at]
    slot = np.zeros(len(at), np.int64) if sets.slot_weight is None else slot_of(trails.time[at])
    key = _number_of_set(sets)[anchor] * SLOTS + slot  # equal keys have equal weights
    order = stable_order(key)
    drawn = np.empty(len(at), np.int32)
    for part in np.split(order, range(AT_ONCE, len(order), AT_ONCE)):
        new = np.diff(key[part], prepend=-1) != 0
        weight = _weights(sets, anchor[part[new]], slot[part[new]])
        column = _column(weight, np.cumsum(new) - 1, uniform[part])
        drawn[part] = sets.poi[anchor[part], column]
    return np.where(sets.size[anchor] > 0, drawn, anchor)


def _weights(sets: Candidates, anchor: Ints, slot: Longs) -> Floats:
    """Return the weights (B, K) of the candidates of anchors (B,) in time slots (B,), 0 for padding."""
    real, weight = sets.poi[anchor] > 0, sets.draw_weights(anchor, slot)
    return real.astype(float) if weight is None else real * weight


def _spread(sets: Candidates, places: tuple[Floats, Floats, Floats]) -> Floats:
    """Return a distance (P+1,) in km within which all candidates of a venue are."""
    venue = np.arange(len(sets.poi))[:, None]
    km = np.where(sets.poi > 0, _at_most_km(places, venue, sets.poi), 0.0)
    farthest: Floats = km.max(axis=1)
    return farthest


def _at_most_km(places: tuple[Floats, Floats, Floats], one: Ints | Longs, two: Ints | Longs) -> Floats:
    """Return the length of a way between venues that is no shorter than the shortest: along a parallel and a meridian.

    `places` holds latitude, longitude and the cosine of the latitude, (P+1,) each, in radians.
    """
    lat, lon, cosine = places
    return EARTH_RADIUS_KM * (np.abs(lat[two] - lat[one]) + cosine[one] * np.abs(lon[two] - lon[one]))


def _number_of_set(sets: Candidates) -> Longs:
    """Return a number (P+1,) for the set of each venue. All venues of a crowd have that of its first."""
    first = sets.poi[:, 0]
    same = (sets.poi == sets.poi[first]).all(axis=1)
    if sets.weight is not None:
        same &= (sets.weight == sets.weight[first]).all(axis=1)
    return np.where(same, first, np.arange(len(first)))


def _column(weight: Floats, row: Longs, uniform: Floats) -> Longs:
    """Draw a column (B,) with probability proportional to its weight in a row (B,) of the weights (C, K)."""
    width = weight.shape[1]
    cumulative = np.cumsum(weight, axis=1)
    goal, sums, begin = uniform * cumulative[row, -1], cumulative.ravel(), row * width
    column, step = np.zeros(len(row), np.int64), 1 << (width.bit_length() - 1)
    while step:  # count the sums that are not above the goal, by bisection
        probe = column + step
        below = (probe <= width) & (sums[begin + np.minimum(probe, width) - 1] <= goal)
        column, step = np.where(below, probe, column), step >> 1
    # Rounding may leave the last sum slightly below the draw. The draw then gets the last column with weight.
    last: Longs = width - 1 - (weight[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(column, last[row])
