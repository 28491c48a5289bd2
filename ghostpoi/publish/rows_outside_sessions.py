"""Draw rows outside sessions (rare venues, short sessions) by the candidate rule, without scores.

They are drawn after the rows in sessions. Each draw must be reachable from the released check-in before it and, if the
next check-in is already decided, leave enough time to reach that one.
"""

import numpy as np

from ghostpoi.data.candidates import Candidates, steps_kmh
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues
from ghostpoi.data.places import slot_of
from ghostpoi.data.sessions import by_user_and_time
from ghostpoi.publish.methods import AnyMethod, FreeDraw
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.whole_table import WholeTable, places_of
from ghostpoi.randomness import Seed
from ghostpoi.settings import SpeedSettings

Neighbour = tuple[Ints, Longs]  # the venue before or after a check-in (0: none or undecided), and the time gap


def release(whole: WholeTable, method: AnyMethod, released: Ints, seed: Seed, speed: SpeedSettings) -> Substitution:
    """Release a venue for every row of `released` (N,) that is 0, as the method does it outside sessions."""
    table = whole.table
    if not isinstance(method, FreeDraw):
        return draw(table, whole.venue_sets, released, seed, speed, keep_clean=not method.own_sets)
    out, rows = released.copy(), np.flatnonzero(released == 0)
    out[rows] = method.release_outside(places_of(table, method), table.venue[rows], seed)
    return Substitution(out, np.zeros(len(out), bool))


def draw(
    table: Checkins, sets: Candidates, released: Ints, seed: Seed, speed: SpeedSettings, *, keep_clean: bool = True
) -> Substitution:
    """Draw a venue for every row of `released` (N,) that is 0."""
    return draw_with(table, sets, released, seed.generator("outside").random(len(table)), speed, keep_clean=keep_clean)


def draw_with(
    table: Checkins, sets: Candidates, released: Ints, uniform: Floats, speed: SpeedSettings, *, keep_clean: bool
) -> Substitution:
    """Draw a venue for every row of `released` (N,) that is 0; `uniform` (N,) is all the randomness.

    If the strict speed mask excludes every candidate of a row, the clean venue is kept if it is within the limit and
    `keep_clean` is set. It is not set for methods whose sets include the clean venue.
    """
    order = by_user_and_time(table.user, table.time)  # (N,) rows
    user, time, anchor, chosen = table.user[order], table.time[order], table.venue[order], released[order]
    emptied = np.zeros(len(order), bool)
    uniform = uniform[order]
    undecided = np.flatnonzero(chosen == 0)
    # Wave w holds the w-th undecided check-in of every user, so that all earlier ones are decided.
    wave = np.arange(len(undecided)) - np.searchsorted(user[undecided], user[undecided])
    by_wave = undecided[np.argsort(wave, kind="stable")]
    for at in np.split(by_wave, np.cumsum(np.bincount(wave))[:-1]) if len(by_wave) else []:
        before, after = np.maximum(at - 1, 0), np.minimum(at + 1, len(order) - 1)
        has_before = (at > 0) & (user[before] == user[at])
        has_after = (at + 1 < len(order)) & (user[after] == user[at])
        neighbours = [
            (np.where(has_before, chosen[before], 0), np.where(has_before, time[at] - time[before], 0)),
            (np.where(has_after, chosen[after], 0), np.where(has_after, time[after] - time[at], 0)),
        ]
        weight = sets.draw_weights(anchor[at], slot_of(time[at]))
        chosen[at], emptied[at] = _wave(
            table.venues, sets, anchor[at], neighbours, weight, uniform[at], speed, keep_clean
        )
    out, out_emptied = np.empty_like(chosen), np.empty_like(emptied)
    out[order], out_emptied[order] = chosen, emptied
    return Substitution(out, out_emptied)


def _wave(
    venues: Venues, sets: Candidates, anchor: Ints, neighbours: list[Neighbour], weight: Floats | None,
    uniform: Floats, speed: SpeedSettings, keep_clean: bool,
) -> tuple[Ints, Bools]:  # fmt: skip
    options = np.concatenate([sets.poi[anchor], anchor[:, None]], axis=1)  # (B, K+1), the anchor last
    real = options[:, :-1] > 0
    speeds = [steps_kmh(venues.lat, venues.lon, n, options, gap, speed.min_gap_s) for n, gap in neighbours]
    kmh = np.max(speeds, axis=0)  # (B, K+1), NaN for padding
    feasible = real & (kmh[:, :-1] <= speed.limit_kmh)
    emptied = real.any(axis=1) & ~feasible.any(axis=1)
    if speed.empty == "ignore":
        feasible |= real & emptied[:, None]
    row, column = np.arange(len(anchor)), _drawn(feasible * (1.0 if weight is None else weight), uniform)
    chosen = np.where(feasible.any(axis=1), options[row, column], anchor)
    if speed.empty == "strict" and emptied.any():
        slowest = options[row, np.where(real, kmh[:, :-1], np.inf).argmin(axis=1)]
        keep = (kmh[:, -1] <= speed.limit_kmh) & keep_clean
        chosen = np.where(emptied, np.where(keep, anchor, slowest), chosen)
    return chosen.astype(np.int32), emptied


def _drawn(weight: Floats, uniform: Floats) -> Longs:
    """Draw a column (B,) with probability proportional to its weight (B, K)."""
    cumulative = np.cumsum(weight, axis=1)
    column: Longs = (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(axis=1)
    # Rounding may leave the last sum slightly below the draw. The draw then gets the last column with weight.
    last: Longs = weight.shape[1] - 1 - (weight[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(column, last)
