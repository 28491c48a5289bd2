"""Draw venues by the weights of their candidate sets, without models: one check-in of every trail after the other.

A draw must be reachable from the check-in before it and, if the next one is already decided, leave enough time to reach
that one. Check-ins that this cannot affect are drawn first. `session_walk` draws the same in sessions, with torch.
"""

from collections.abc import Callable

import numpy as np

from ghostpoi.data.candidates import steps_kmh
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.ordering import stable_order
from ghostpoi.data.places import slot_of
from ghostpoi.publish import free_draws
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.trails import Trails
from ghostpoi.settings import SpeedSettings

AT_ONCE = 4096  # draws: bounds the memory and fits caches


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
    at = np.flatnonzero(free_draws.free(trails, decided, speed))
    chosen[at] = free_draws.draw(trails, at, uniform[at])
    progress(len(at))
    undecided = np.flatnonzero(chosen == 0)
    # Wave w holds the w-th undecided check-in of every trail, so that all earlier ones are decided.
    trail = trails.trail[undecided]
    wave = np.arange(len(undecided)) - np.searchsorted(trail, trail)
    by_wave = undecided[stable_order(wave)]
    for at in np.split(by_wave, np.cumsum(np.bincount(wave))[:-1]) if len(by_wave) else []:
        for part in np.split(at, range(AT_ONCE, len(at), AT_ONCE)):
            chosen[part], emptied[part] = _draw(trails, part, (chosen, decided), uniform[part], speed, keep_clean)
        progress(len(at))
    return Substitution(chosen, emptied)


def _draw(
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
    column = _column(feasible.astype(float) if weight is None else feasible * weight, uniform)
    drawn = np.where(feasible.any(axis=1), options[row, column], anchor)
    if speed.empty == "strict" and emptied.any():
        slowest = options[row, np.where(real, kmh[:, :-1], np.inf).argmin(axis=1)]
        keep = (kmh[:, -1] <= speed.limit_kmh) & keep_clean
        drawn = np.where(emptied, np.where(keep, anchor, slowest), drawn)
    return drawn.astype(np.int32), emptied


def _column(weight: Floats, uniform: Floats) -> Longs:
    """Draw a column (B,) with probability proportional to its weight (B, K)."""
    cumulative = np.cumsum(weight, axis=1)
    column: Longs = (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(axis=1)
    # Rounding may leave the last sum slightly below the draw. The draw then gets the last column with weight.
    last: Longs = weight.shape[1] - 1 - (weight[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(column, last)
