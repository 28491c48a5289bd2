"""The speed limit: which released steps exceed it, and whether the publisher's rule allows them to.

A row keeps the limit unless its candidates, or the rule, leave it no choice. So a step over the limit is allowed in
these cases only: the row that had to keep the limit has no candidates; none of its candidates was within reach; it
starts a session; it repeats the draw of an earlier release. Each step has one such row: the later one, or the one that
is drawn last. Rows in sessions are drawn first, and repeated rows are not drawn at all.
"""

from typing import Any

import numpy as np

from ghostpoi.data.candidates import CHUNK, steps_kmh
from ghostpoi.data.checkins import Bools, Ints, Longs
from ghostpoi.data.geo import over_limit
from ghostpoi.data.ordering import by_user_and_time
from ghostpoi.options import option
from ghostpoi.publish.verify.check import Check
from ghostpoi.publish.whole_table import WholeTable
from ghostpoi.settings import SpeedSettings

ROUNDING = 1 + 1e-9  # a GPU may round a speed differently


def counted_speed(found: dict[str, float], manifest: dict[str, Any], last: bool) -> Check:
    """Compare the steps over the limit with the manifest's count."""
    counted = manifest["speed"]
    detail = f"{found['steps_over_limit']:,} of {found['steps']:,} steps over {found['limit_kmh']:g} km/h"
    limits = {key: manifest["settings"]["speed"].get(key) for key in ("limit_kmh", "min_gap_s")}
    same = found == counted and limits == {key: counted[key] for key in limits}
    more = f"; whether they are allowed takes {option('against', 'FILE')}" if same and last else ""
    return Check("speed", same, f"{detail}, {'as' if same else 'not as'} counted in the manifest{more}")


def allowed_speed(whole: WholeTable, released: Ints, emptied: Bools, rule: SpeedSettings) -> Check:
    """Check that every step over the limit is one that the rule allows; arguments are (N,), per row of the table."""
    table, decided, has = whole.table, whole.in_session | whole.repeated, whole.has_candidates
    if whole.venue_sets.everywhere:
        return Check("speed rule", True, "the method has no speed rule")
    starts = np.zeros(len(table), bool)
    starts[whole.data.all.row[whole.data.all.start[:-1]]] = True
    order = by_user_and_time(table.user, table.time)
    a, b = order[:-1], order[1:]
    same_user = table.user[a] == table.user[b]

    def over(venue: Ints, limit: float) -> Bools:
        lat, lon = table.venues.lat[venue[order]], table.venues.lon[venue[order]]
        fast: Bools = over_limit(lat, lon, table.time[order], limit, rule.min_gap_s) & same_user
        return fast

    row = np.where(decided[b] & ~decided[a], a, b)  # the one that had to keep the limit
    allowed = ~has[row] | emptied[row] | starts[row] | whole.repeated[row]
    fast = over(released, rule.limit_kmh * ROUNDING)
    wrong, clean = int((fast & ~allowed).sum()), int(over(table.venue, rule.limit_kmh).sum())
    if wrong:
        return Check("speed rule", False, f"{wrong:,} steps over the limit though a candidate was within it")
    return Check(
        "speed rule",
        True,
        f"over the limit only where no candidate was within it (steps over it in the clean file: {clean:,})",
    )


def emptied_sets(whole: WholeTable, released: Ints, rule: SpeedSettings) -> Bools:
    """Mark the rows whose candidates were all too far away, given the released venues (N,)."""
    table, sessions = whole.table, whole.data.all
    emptied = np.zeros(len(table), bool)
    # In sessions, a venue must be reachable from the position before.
    later = np.ones(sessions.positions, bool)
    later[sessions.start[:-1]] = False
    at = np.flatnonzero(later)
    row, before = sessions.row[at], sessions.row[at - 1]
    near = (released[before], table.time[row] - table.time[before])
    inside = whole.data.vocabulary.venue[whole.session_sets.poi]
    emptied[row] = _none_feasible(whole, inside, sessions.poi[at], [near], rule)
    # Outside, from the row before and, if it was decided earlier, to the row after.
    order = by_user_and_time(table.user, table.time)
    n, decided = len(order), whole.in_session | whole.repeated
    place = np.flatnonzero(~decided[order])
    row, before, after = order[place], order[np.maximum(place - 1, 0)], order[np.minimum(place + 1, n - 1)]
    has_before = (place > 0) & (table.user[before] == table.user[row])
    has_after = (place + 1 < n) & (table.user[after] == table.user[row]) & decided[after]
    neighbours = [
        (np.where(has_before, released[before], 0), np.where(has_before, table.time[row] - table.time[before], 0)),
        (np.where(has_after, released[after], 0), np.where(has_after, table.time[after] - table.time[row], 0)),
    ]
    emptied[row] = _none_feasible(whole, whole.venue_sets.poi, table.venue[row], neighbours, rule)
    return emptied


def _none_feasible(
    whole: WholeTable, sets: Ints, anchor: Ints, neighbours: list[tuple[Ints, Longs]], rule: SpeedSettings
) -> Bools:
    """Tell for which anchors (B,) the set is not empty but has no venue that keeps the limit to all neighbours."""
    venues, found = whole.table.venues, np.zeros(len(anchor), bool)
    for at in range(0, len(anchor), CHUNK):
        part = slice(at, at + CHUNK)
        options = sets[anchor[part]]  # (B, K)
        kmh = [
            steps_kmh(venues.lat, venues.lon, near[part], options, gap[part], rule.min_gap_s)
            for near, gap in neighbours
        ]  # fmt: skip
        feasible = (options > 0) & (np.max(kmh, axis=0) <= rule.limit_kmh)
        found[part] = (options > 0).any(axis=1) & ~feasible.any(axis=1)
    return found
