"""When venues were created, as far as their ids say so: many services put a time into each id."""

import re
from collections.abc import Callable, Sequence
from re import Match

import numpy as np

from ghostpoi.data.checkins import Bools, Checkins, Floats

SOON_S = 60  # people create a venue and check in at once
MOST = 0.95  # share of the ids that must hold a time from OLDEST to the end of the file, so that they count as dated
OLDEST, DAY_S = 946_684_800, 86_400  # the year 2000
SAMPLE = 20  # ids
GREGORIAN_S, TICKS = 12_219_292_800, 10**7  # a UUID of version 1 counts ticks from 1582
UUID = r"([0-9a-f]{8})-?([0-9a-f]{4})-?%d([0-9a-f]{3})-?[0-9a-f]{4}-?[0-9a-f]{12}"

READINGS: tuple[tuple[str, Callable[[Match[str]], float]], ...] = (
    (r"([0-9a-f]{8})[0-9a-f]{16}", lambda one: int(one[1], 16)),  # ObjectId, as of Foursquare
    (UUID % 7, lambda one: int(one[1] + one[2], 16) / 1000),
    (UUID % 1, lambda one: int(one[3] + one[2] + one[1], 16) / TICKS - GREGORIAN_S),
    (r"(\d{10})(\d{3})*(\.0)?", lambda one: int(one[1])),  # seconds, milliseconds and so on
)


def creation_times(ids: Sequence[str], end: float) -> Floats:
    """Return when venues with these ids, (V,), were created, in UTC seconds; NaN where the id does not say so.

    `end` is the time of the latest check-in.
    """
    named = [str(one).strip(' "').lower() for one in ids]
    for pattern, read in READINGS:
        form = re.compile(pattern)
        if any(map(form.fullmatch, named[:SAMPLE])):
            found = (form.fullmatch(one) for one in named)
            made = np.array([np.nan if one is None else read(one) for one in found], float)
            made[~((made >= OLDEST) & (made <= end + DAY_S))] = np.nan
            if np.isfinite(made).mean() >= MOST:
                return made
    return np.full(len(named), np.nan)


def are_new(ids: Sequence[str], table: Checkins) -> Bools:
    """Mark the ids, (V,), of venues that were created in the period of a table or on the day before."""
    start, end = table.time.min(initial=np.iinfo(np.int64).max), table.time.max(initial=0)
    marked: Bools = creation_times(ids, end) >= start - DAY_S
    return marked


def made_on_creation(table: Checkins) -> Bools:
    """Mark the rows, (N,), that were made within SOON_S seconds of the creation of their venue."""
    made = np.append(np.nan, creation_times(table.venue_ids[1:].tolist(), table.time.max(initial=0)))
    after = table.time - np.floor(made)[table.venue]
    marked: Bools = (after >= 0) & (after <= SOON_S)
    return marked
