"""What the tests of columns share: the clean venues that a row could reveal, what a test found, and its thresholds."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, by_user_and_time
from ghostpoi.data.geo import haversine_km

TELLS = 0.01  # smallest share of rows, beyond chance, that counts
ERRORS = 4.0  # standard errors that a share must exceed, so that chance alone almost never refuses a column


@dataclass(frozen=True)
class Finding:
    """A column reveals something about clean venues."""

    share: float  # from 0 to 1, beyond chance; 0: nothing was found, but no rule recognises the column as harmless
    reason: str  # a verb phrase: "contains the id of the clean venue"
    of: str = "of rows"  # what the share is a share of

    def __str__(self) -> str:
        return f"{self.reason} ({self.share:.1%} {self.of})" if self.share else self.reason


def beyond_chance(hit: Bools, chance: Bools) -> float:
    """Return the share of hits beyond the share by chance; 0 if it is below the thresholds."""
    if not len(hit):
        return 0.0
    one, two = float(hit.mean()), float(chance.mean())
    error = float(np.sqrt((one + two) / len(hit)))
    return one - two if one - two > max(TELLS, ERRORS * error) else 0.0


def strongest(findings: list[Finding]) -> Finding | None:
    """Return the finding with the largest share, the first among equals."""
    return max((f for f in findings if f.share > 0), key=lambda f: f.share, default=None)


RELATIONS = {
    "own": "the clean venue",
    "previous": "the user's previous venue",
    "next": "the user's next venue",
    "usual": "the user's most visited venue",
}


@dataclass(frozen=True)
class RelatedVenues:
    """A table with its rows in time order per user."""

    table: Checkins

    @cached_property
    def order(self) -> Longs:
        """The rows by user and time, (N,)."""
        return by_user_and_time(self.table.user, self.table.time)

    @cached_property
    def by_time(self) -> Longs:
        """The rows by time, (N,)."""
        return np.argsort(self.table.time, kind="stable")

    @cached_property
    def previous_row(self) -> Longs:
        """The row before each row of the same user, (N,); -1 for the first."""
        order, same = self.order, np.diff(self.table.user[self.order]) == 0
        out = np.full(len(order), -1)
        out[order[1:][same]] = order[:-1][same]
        return out

    @cached_property
    def next_row(self) -> Longs:
        """The row after each row of the same user, (N,); -1 for the last."""
        out, rows = np.full(len(self.order), -1), np.flatnonzero(self.previous_row >= 0)
        out[self.previous_row[rows]] = rows
        return out

    @cached_property
    def usual_of_user(self) -> Ints:
        """The most visited venue of every user, (U,)."""
        key, count = np.unique(self.table.user.astype(np.int64) << 32 | self.table.venue, return_counts=True)
        best = np.lexsort((-count, key >> 32))
        first = np.flatnonzero(np.diff(key[best] >> 32, prepend=-1))
        usual: Ints = (key[best][first] & 0xFFFFFFFF).astype(np.int32)
        return usual

    @cached_property
    def venue(self) -> dict[str, Ints]:
        """The related venues of every row, (N,) each; 0 where there is none."""
        own = np.append(self.table.venue, np.int32(0))  # row -1 is none
        return {
            "own": self.table.venue,
            "previous": own[self.previous_row],
            "next": own[self.next_row],
            "usual": self.usual_of_user[self.table.user],
        }

    @cached_property
    def travel(self) -> dict[str, Floats]:
        """Distances and speeds of the steps of each user, (N,) each, NaN where there is no step."""
        v, own = self.table.venues, self.table.venue
        time = np.append(self.table.time.astype(float), np.nan)
        km = {
            name: haversine_km(v.lat[own], v.lon[own], v.lat[other], v.lon[other])
            for name, other in self.venue.items()
            if name != "own"
        }
        hours = {"previous": self.table.time - time[self.previous_row], "next": time[self.next_row] - self.table.time}
        speed = {name: km[name] / np.where(gap > 0, gap / 3600, np.nan) for name, gap in hours.items()}
        return {f"the distance to {RELATIONS[name]}": value for name, value in km.items()} | {
            f"the speed of the step to {RELATIONS[name]}": value for name, value in speed.items()
        }

    @cached_property
    def habits(self) -> dict[str, Floats]:
        """Whether a row repeats another of the user, (N,) each."""
        own, related = self.table.venue, self.venue
        return {
            "whether the user stays": (own == related["previous"]).astype(float),
            "whether the user is at the most visited venue": (own == related["usual"]).astype(float),
        }

    @cached_property
    def visit_number(self) -> Longs:
        """The number of the user's visit to the venue, from 1, (N,)."""
        pair = (self.table.user.astype(np.int64) << 32 | self.table.venue)[self.order]
        by_pair = np.argsort(pair, kind="stable")
        first = np.flatnonzero(np.diff(pair[by_pair], prepend=-1))
        out = np.empty(len(pair), np.int64)
        out[self.order[by_pair]] = np.arange(len(pair)) - np.repeat(first, np.diff(np.append(first, len(pair)))) + 1
        return out

    def of_rows(self, rows: Longs | Bools) -> dict[str, Ints]:
        """The related venues of some rows."""
        return {name: venue[rows] for name, venue in self.venue.items()}
