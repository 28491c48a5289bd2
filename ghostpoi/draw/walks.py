"""Walks without models: venues are drawn by the weights of their candidate sets, along trails of check-ins.

A draw must be reachable from the check-in before it and, if the next one is already decided, leave enough time to reach
that one. Most neighbours in a trail are so far apart in time that all their candidates are within reach of each other:
such check-ins are drawn all at once (`draw_free`), the others one after the other, with the same result.
`model_walk` draws the same in sessions, with torch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ghostpoi.data.candidates import Candidates, steps_kmh
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs, stable_order
from ghostpoi.data.geo import EARTH_RADIUS_KM, MARGIN, MARGIN_KM
from ghostpoi.data.places import SLOTS, slot_of
from ghostpoi.settings import SpeedSettings


@dataclass(frozen=True)
class Trails:
    """Check-ins in the order of their trails and times, and the places that can be drawn."""

    trail: Longs | Ints  # (N,) ascending
    time: Longs  # (N,)
    anchor: Ints  # (N,) the clean venue
    lat: Floats  # (P+1,)
    lon: Floats  # (P+1,)
    sets: Candidates

    def neighbour(self, at: Longs, step: int, chosen: Ints) -> tuple[Ints, Longs]:
        """Return the venue one step away in the trail (0: none or not chosen), and the time between, (B,) each."""
        there = np.clip(at + step, 0, len(self.trail) - 1)
        exists = (there != at) & (self.trail[there] == self.trail[at])
        return np.where(exists, chosen[there], 0), np.where(exists, np.abs(self.time[there] - self.time[at]), 0)


@dataclass(frozen=True)
class Substitution:
    """Released venues, one per position of the sessions or per row of the table."""

    poi: Ints  # (N,) POIs of the vocabulary for sessions, venues for the table
    mask_emptied: Bools  # (N,) the speed mask excluded every candidate of a set that was not empty

    def take(self, rows: Longs) -> "Substitution":
        """Return those of these positions."""
        return Substitution(self.poi[rows], self.mask_emptied[rows])


DRAWS_AT_ONCE = 16_384  # draws: bounds the memory and fits caches


def free(trails: Trails, decided: Ints, speed: SpeedSettings) -> Bools:
    """Mark the undecided check-ins (N,) whose candidates are all slow enough, whatever their neighbours draw."""
    lat, lon = np.radians(trails.lat), np.radians(trails.lon)
    places = lat, lon, np.cos(lat)
    fixed = decided > 0
    place = np.where(fixed, decided, trails.anchor)
    poi = trails.sets.poi
    spread = np.where(poi > 0, _at_most_km(places, np.arange(len(poi))[:, None], poi), 0.0).max(axis=1)
    around = np.where(fixed, 0.0, spread[trails.anchor])  # how far from there the draw may be
    km = _at_most_km(places, place[:-1], place[1:]) + around[:-1] + around[1:]
    hours = np.maximum(np.abs(np.diff(trails.time)), speed.min_gap_s) / 3600
    slow = (km * MARGIN + MARGIN_KM <= speed.limit_kmh * hours) | (trails.trail[1:] != trails.trail[:-1])
    found: Bools = ~fixed
    found[1:] &= slow
    found[:-1] &= slow | ~fixed[1:]  # a next check-in that is not yet decided follows this one
    return found


def draw_free(trails: Trails, at: Longs, uniform: Floats) -> Ints:
    """Draw a venue for each of these check-ins (B,) by the weights of its set; without a set, the clean venue."""
    sets, anchor = trails.sets, trails.anchor[at]
    slot = np.zeros(len(at), np.int64) if sets.slot_weight is None else slot_of(trails.time[at])
    key = number_of_set(sets)[anchor] * SLOTS + slot  # equal keys have equal weights
    order = stable_order(key)
    drawn = np.empty(len(at), np.int32)
    for part in np.split(order, range(DRAWS_AT_ONCE, len(order), DRAWS_AT_ONCE)):
        new = np.diff(key[part], prepend=-1) != 0
        own, now = anchor[part[new]], slot[part[new]]
        real, weight = sets.poi[own] > 0, sets.draw_weights(own, now)
        column = _column(real * (1.0 if weight is None else weight), np.cumsum(new) - 1, uniform[part])
        drawn[part] = sets.poi[anchor[part], column]
    return np.where(sets.size[anchor] > 0, drawn, anchor)


def _at_most_km(places: tuple[Floats, Floats, Floats], one: Ints | Longs, two: Ints | Longs) -> Floats:
    """Return the length of a way between venues that is no shorter than the shortest: along a parallel and a meridian.

    `places` holds latitude, longitude and the cosine of the latitude, (P+1,) each, in radians.
    """
    lat, lon, cosine = places
    return EARTH_RADIUS_KM * (np.abs(lat[two] - lat[one]) + cosine[one] * np.abs(lon[two] - lon[one]))


def number_of_set(sets: Candidates) -> Longs:
    """Return a number (P+1,) for the set of each venue. All venues of a crowd have that of its first."""
    first = sets.poi[:, 0]
    same = (first > 0) & (sets.poi == sets.poi[first]).all(axis=1)
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


TRAILS_AT_ONCE = 4096  # draws: bounds the memory and fits caches


def walk(
    trails: Trails, chosen: Ints, uniform: Floats, speed: SpeedSettings, *, keep_clean: bool,
    progress: Callable[[int], None] = lambda done: None,
) -> Substitution:  # fmt: skip
    """Draw a venue for every check-in of `chosen` (N,) that is 0; `uniform` (N,) is all the randomness.

    If the strict speed mask excludes every candidate of a check-in, the clean venue is kept if it is within the limit
    and `keep_clean` is set. It is not set for methods whose sets include the clean venue.
    """
    decided, chosen, emptied = chosen, chosen.copy(), np.zeros(len(chosen), bool)
    if not len(chosen):
        return Substitution(chosen, emptied)
    at = np.flatnonzero(free(trails, decided, speed))
    chosen[at] = draw_free(trails, at, uniform[at])
    progress(len(at))
    undecided = np.flatnonzero(chosen == 0)
    # Wave w holds the w-th undecided check-in of every trail, so that all earlier ones are decided.
    trail = trails.trail[undecided]
    wave = np.arange(len(undecided)) - np.searchsorted(trail, trail)
    by_wave = undecided[stable_order(wave)]
    for at in np.split(by_wave, np.cumsum(np.bincount(wave))[:-1]) if len(by_wave) else []:
        for part in np.split(at, range(TRAILS_AT_ONCE, len(at), TRAILS_AT_ONCE)):
            chosen[part], emptied[part] = draw_at(trails, part, (chosen, decided), uniform[part], speed, keep_clean)
        progress(len(at))
    return Substitution(chosen, emptied)


def draw_at(
    trails: Trails, at: Longs, around: tuple[Ints, Ints], uniform: Floats, speed: SpeedSettings, keep_clean: bool
) -> tuple[Ints, Bools]:
    """Draw check-ins (B,). `around` holds the venues that count for the next check-in, and for the one before."""
    anchor, sets = trails.anchor[at], trails.sets
    options = np.concatenate([sets.poi[anchor], anchor[:, None]], axis=1)  # (B, K+1), the anchor last
    real: Bools = options[:, :-1] > 0
    kmh: Floats = np.zeros(options.shape)  # NaN for padding
    for step, chosen in zip((-1, 1), around, strict=True):
        venue, gap_s = trails.neighbour(at, step, chosen)
        if venue.any():
            kmh = np.maximum(kmh, steps_kmh(trails.lat, trails.lon, venue, options, gap_s, speed.min_gap_s))
    feasible: Bools = real & (kmh[:, :-1] <= speed.limit_kmh)
    emptied: Bools = np.logical_and(real.any(axis=1), ~feasible.any(axis=1))
    if speed.empty == "ignore":
        feasible |= real & emptied[:, None]
    weight = sets.draw_weights(anchor, slot_of(trails.time[at]))
    row = np.arange(len(at))
    column = _column(feasible.astype(float) if weight is None else feasible * weight, row, uniform)
    drawn = np.where(feasible.any(axis=1), options[row, column], anchor)
    if speed.empty == "strict" and emptied.any():
        slowest = options[row, np.where(real, kmh[:, :-1], np.inf).argmin(axis=1)]
        keep = (kmh[:, -1] <= speed.limit_kmh) & keep_clean & ~sets.is_hidden[anchor]
        drawn = np.where(emptied, np.where(keep, anchor, slowest), drawn)
    return drawn.astype(np.int32), emptied
