"""Check-ins that no model covers (rare venues, short sessions): drawn by the same candidate rule over all venues.

They are drawn after the covered ones, without scores, and fit between them: a draw must be reachable from the released
check-in before it and, where the one after it is decided already, leave time to reach that.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.candidates import Candidates, speed_mask
from ghostpoi.data.checkins import Checkins, Ints, Longs, Places
from ghostpoi.data.geo import haversine_km, speed_kmh
from ghostpoi.data.sessions import by_user_and_time
from ghostpoi.randomness import Seed
from ghostpoi.settings import SpeedSettings


@dataclass(frozen=True)
class Venues:
    """All venues of a table as rows from 1, so that 0 can stand for none."""

    lat: NDArray[np.float64]  # (pois+1,)
    lon: NDArray[np.float64]
    category: Ints

    @staticmethod
    def of(places: Places) -> "Venues":
        lat, lon = (np.concatenate([[np.nan], a]) for a in (places.lat, places.lon))
        return Venues(lat, lon, np.concatenate([[-1], places.category]).astype(np.int32))


def draw(
    table: Checkins, venues: Venues, sets: Candidates, released: Ints, seed: Seed, speed: SpeedSettings,
    keeps: bool = True,
) -> tuple[Ints, NDArray[np.bool_]]:  # fmt: skip
    """Decide the rows of `released` (N,) that are -1; returns POI codes and where the speed mask left nothing.

    There the strict mask `keeps` a venue that is slow enough; a method that hides it among its set does not.
    """
    order = by_user_and_time(table.user, table.time)  # (N,) rows
    user, time = table.user[order], table.time[order]
    anchor, chosen = table.poi[order] + 1, released[order] + 1  # venues count from 1; 0: undecided
    forced = np.zeros(len(order), bool)
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
        chosen[at], forced[at] = _wave(venues, sets, anchor[at], neighbours, uniform[at], speed, keeps)
    out, out_forced = np.empty_like(chosen), np.empty_like(forced)
    out[order], out_forced[order] = chosen - 1, forced
    return out, out_forced


def _wave(
    venues: Venues, sets: Candidates, anchor: Ints, neighbours: list[tuple[Ints, Longs]],
    uniform: NDArray[np.float64], speed: SpeedSettings, keeps: bool,
) -> tuple[Ints, NDArray[np.bool_]]:  # fmt: skip
    options = np.concatenate([sets.poi[anchor], anchor[:, None]], axis=1)  # (B, K+1), the anchor last
    allowed = np.logical_and.reduce(
        [speed_mask(venues.lat, venues.lon, n, options, gap, speed) for n, gap in neighbours]
    )
    real = options[:, :-1] > 0
    feasible = real & allowed[:, :-1]
    emptied = real.any(axis=1) & ~feasible.any(axis=1)
    if speed.empty == "ignore":
        feasible |= real & emptied[:, None]
    # The k-th of the feasible options, k drawn evenly.
    size = feasible.sum(axis=1)
    k = np.minimum((uniform * size).astype(np.int64), np.maximum(size - 1, 0))
    column = (np.cumsum(feasible, axis=1) <= k[:, None]).sum(axis=1)
    chosen = np.where(size > 0, options[np.arange(len(anchor)), np.minimum(column, options.shape[1] - 1)], anchor)
    if speed.empty == "strict" and emptied.any():
        kmh = np.max([_kmh(venues, n, options[:, :-1], gap, speed) for n, gap in neighbours], axis=0)
        slowest = options[np.arange(len(anchor)), np.where(real, kmh, np.inf).argmin(axis=1)]
        chosen = np.where(emptied, np.where(allowed[:, -1] & keeps, anchor, slowest), chosen)
    return chosen.astype(np.int32), emptied


def _kmh(venues: Venues, neighbour: Ints, options: Ints, gap_s: Longs, speed: SpeedSettings) -> NDArray[np.float64]:
    km = haversine_km(
        venues.lat[neighbour][:, None], venues.lon[neighbour][:, None], venues.lat[options], venues.lon[options]
    )
    return np.where(neighbour[:, None] > 0, speed_kmh(km, gap_s[:, None], speed.min_gap_s), 0.0)
