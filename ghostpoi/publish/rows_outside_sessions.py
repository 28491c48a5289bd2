"""Draw rows outside sessions (rare venues, short sessions) by the candidate rule, without scores.

They are drawn after the rows in sessions, and fit between them.
"""

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Checkins, Floats, Ints
from ghostpoi.data.ordering import by_user_and_time
from ghostpoi.data.places import of_table
from ghostpoi.publish.methods import AnyMethod, FreeDraw
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.trails import Trails
from ghostpoi.publish.weighted_walk import walk
from ghostpoi.publish.whole_table import WholeTable
from ghostpoi.randomness import Seed
from ghostpoi.settings import SpeedSettings


def release(whole: WholeTable, method: AnyMethod, released: Ints, seed: Seed, speed: SpeedSettings) -> Substitution:
    """Release a venue for every row of `released` (N,) that is 0, as the method does it outside sessions."""
    table = whole.table
    if not isinstance(method, FreeDraw):
        return draw(table, whole.venue_sets, released, seed, speed, keep_clean=not method.own_sets)
    out, rows = released.copy(), np.flatnonzero(released == 0)
    out[rows] = method.release_outside(of_table(table), table.venue[rows], seed)
    return Substitution(out, np.zeros(len(out), bool))


def draw(
    table: Checkins, sets: Candidates, released: Ints, seed: Seed, speed: SpeedSettings, *, keep_clean: bool = True
) -> Substitution:
    """Draw a venue for every row of `released` (N,) that is 0."""
    return draw_with(table, sets, released, seed.generator("outside").random(len(table)), speed, keep_clean=keep_clean)


def draw_with(
    table: Checkins, sets: Candidates, released: Ints, uniform: Floats, speed: SpeedSettings, *, keep_clean: bool
) -> Substitution:
    """Draw a venue for every row of `released` (N,) that is 0; `uniform` (N,) is all the randomness."""
    order = by_user_and_time(table.user, table.time)  # (N,) rows
    venues = table.venues
    trails = Trails(table.user[order], table.time[order], table.venue[order], venues.lat, venues.lon, sets)
    found = walk(trails, released[order], uniform[order], speed, keep_clean=keep_clean)
    out, emptied = np.empty_like(found.poi), np.empty_like(found.mask_emptied)
    out[order], emptied[order] = found.poi, found.mask_emptied
    return Substitution(out, emptied)
