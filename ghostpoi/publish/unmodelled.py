"""Rows outside sessions (rare venues, short sessions): drawn by the candidate rule alone, without scores.

They are drawn after the rows in sessions and fit between them: a draw must be reachable from the released check-in
before it and, if the one after it is decided already, leave enough time to reach that.
"""

import numpy as np

from ghostpoi.data.candidates import Candidates, speed_mask
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues
from ghostpoi.data.geo import haversine_km, speed_kmh
from ghostpoi.data.sessions import by_user_and_time
from ghostpoi.publish.substitution import Substitution
from ghostpoi.randomness import Seed
from ghostpoi.settings import SpeedSettings

Neighbour = tuple[Ints, Longs]  # the venue before or after a check-in (0: none or undecided), and the time gap


def draw(
    table: Checkins, sets: Candidates, released: Ints, seed: Seed, speed: SpeedSettings, *, may_keep: bool = True
) -> Substitution:
    """Decide the rows of `released` (N,) that are 0.

    Where the strict speed mask excludes every candidate, a clean venue that is slow enough is kept if `may_keep`; a
    method that hides the venue in its own set does not allow that.
    """
    order = by_user_and_time(table.user, table.time)  # (N,) rows
    user, time, anchor, chosen = table.user[order], table.time[order], table.venue[order], released[order]
    emptied = np.zeros(len(order), bool)
    uniform = seed.generator("outside").random(len(order))[order]
    undecided = np.flatnonzero(chosen == 0)
    # Wave w holds every user's w-th undecided check-in: those before it are decided by then.
    first = np.searchsorted(user[undecided], user[undecided])
    wave = np.arange(len(undecided)) - first
    by_wave = undecided[np.argsort(wave, kind="stable")]
    for at in np.split(by_wave, np.cumsum(np.bincount(wave))[:-1]) if len(by_wave) else []:
        before, after = np.maximum(at - 1, 0), np.minimum(at + 1, len(order) - 1)
        has_before = (at > 0) & (user[before] == user[at])
        has_after = (at + 1 < len(order)) & (user[after] == user[at])
        neighbours = [
            (np.where(has_before, chosen[before], 0), np.where(has_before, time[at] - time[before], 0)),
            (np.where(has_after, chosen[after], 0), np.where(has_after, time[after] - time[at], 0)),
        ]
        chosen[at], emptied[at] = _wave(table.venues, sets, anchor[at], neighbours, uniform[at], speed, may_keep)
    out, out_emptied = np.empty_like(chosen), np.empty_like(emptied)
    out[order], out_emptied[order] = chosen, emptied
    return Substitution(out, out_emptied)


def _wave(
    venues: Venues, sets: Candidates, anchor: Ints, neighbours: list[Neighbour],
    uniform: Floats, speed: SpeedSettings, may_keep: bool,
) -> tuple[Ints, Bools]:  # fmt: skip
    options = np.concatenate([sets.poi[anchor], anchor[:, None]], axis=1)  # (B, K+1), the anchor last
    allowed = np.logical_and.reduce(
        [speed_mask(venues.lat, venues.lon, n, options, gap, speed) for n, gap in neighbours]
    )
    real = options[:, :-1] > 0
    feasible = real & allowed[:, :-1]
    emptied = real.any(axis=1) & ~feasible.any(axis=1)
    if speed.empty == "ignore":
        feasible |= real & emptied[:, None]
    # Take the k-th feasible option, k drawn evenly.
    size = feasible.sum(axis=1)
    k = np.minimum((uniform * size).astype(np.int64), np.maximum(size - 1, 0))
    column = (np.cumsum(feasible, axis=1) <= k[:, None]).sum(axis=1)
    chosen = np.where(size > 0, options[np.arange(len(anchor)), np.minimum(column, options.shape[1] - 1)], anchor)
    if speed.empty == "strict" and emptied.any():
        kmh = np.max([_kmh(venues, n, options[:, :-1], gap, speed) for n, gap in neighbours], axis=0)
        slowest = options[np.arange(len(anchor)), np.where(real, kmh, np.inf).argmin(axis=1)]
        chosen = np.where(emptied, np.where(allowed[:, -1] & may_keep, anchor, slowest), chosen)
    return chosen.astype(np.int32), emptied


def _kmh(venues: Venues, neighbour: Ints, options: Ints, gap_s: Longs, speed: SpeedSettings) -> Floats:
    km = haversine_km(
        venues.lat[neighbour][:, None], venues.lon[neighbour][:, None], venues.lat[options], venues.lon[options]
    )
    return np.where(neighbour[:, None] > 0, speed_kmh(km, gap_s[:, None], speed.min_gap_s), 0.0)
