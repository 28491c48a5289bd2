"""What the tests of columns share: the clean venues that a row could reveal, what a test found, and its thresholds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote

import numpy as np

from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, by_user_and_time
from ghostpoi.data.geo import haversine_km
from ghostpoi.errors import InputError
from ghostpoi.options import option

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


def parts_of_date(time: Longs) -> list[Longs]:
    """Return the parts of a date as calendars number them."""
    day = time // 86_400
    date = day.astype("datetime64[D]")
    month, year = date.astype("datetime64[M]"), date.astype("datetime64[Y]")
    weekday = (day + 3) % 7  # Monday is 0
    found = [time % 86_400 // 3600, time % 3600 // 60, time % 60, time % 86_400]
    for first in (0, 1):
        found += [weekday + first, (weekday + 1) % 7 + first]
        found += [one.astype(np.int64) + first for one in (month - year, date - month, date - year)]
    return [*found, (weekday >= 5).astype(np.int64), year.astype(np.int64) + 1970]


def refused(path: Path | str, found: Mapping[str, object], one: str, several: str) -> InputError:
    """Return an error that names columns, what they reveal, and the remedies, in one sentence.

    `one` follows a single column; `several` says what many columns do.
    """
    listed, alone = ", ".join(f"{name!r} {what}" for name, what in found.items()), len(found) == 1
    what, them = (f"the column {listed}{one}", "it") if alone else (f"{len(found)} columns {several}: {listed}", "them")
    drops, keeps = (option(flag, *found, shown=quote) for flag in ("drop", "keep"))
    return InputError(f"{path}: {what}; leave {them} out with {drops}, or keep {them} at your own risk with {keeps}")


def _places(order: Longs, follows: Bools) -> Longs:
    """Return the place of each row in its run, from 0, (N,); a row that `follows` is in the run of the one before."""
    first = np.flatnonzero(~follows[order])
    out = np.empty(len(order), np.int64)
    out[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return out


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
        return (key[best][first] & 0xFFFFFFFF).astype(np.int32)

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
        found = {}
        for name, other in self.venue.items():
            if name != "own":
                km = haversine_km(v.lat[own], v.lon[own], v.lat[other], v.lon[other])
                found[f"the distance to {RELATIONS[name]}"] = km
        for name, pause in self.pauses.items():
            km = found[f"the distance to {RELATIONS[name]}"]
            found[f"the speed of the step to {RELATIONS[name]}"] = km / np.where(pause > 0, pause / 3600, np.nan)
        return found

    @cached_property
    def habits(self) -> dict[str, Floats]:
        """Whether a row repeats another of the user, (N,) each."""
        own, related = self.table.venue, self.venue
        return {
            "whether the user stays": (own == related["previous"]).astype(float),
            "whether the user is at the most visited venue": (own == related["usual"]).astype(float),
            "whether the user is at the venue for the first time": (self.visit_number == 1).astype(float),
        }

    @cached_property
    def pauses(self) -> dict[str, Longs]:
        """The seconds since the user's previous row and until the next, (N,) each; 0 where there is none."""
        time = self.table.time
        rows = {"previous": self.previous_row, "next": self.next_row}
        return {name: np.where(row >= 0, np.abs(time - time[row]), 0) for name, row in rows.items()}

    @cached_property
    def place_of_row(self) -> Longs:
        """The place of each row among the user's, from 0, (N,)."""
        return _places(self.order, self.previous_row >= 0)

    @property
    def parts_of_time(self) -> Iterator[Longs]:
        """Yield parts of the time of each row, (N,) each."""
        time = self.table.time
        for seconds in (900, 60, 1):
            yield time // seconds
        for period, slot in ((86_400, 900), (86_400, 60), (86_400, 1), (3600, 60), (3600, 1), (60, 1), (604_800, 900)):
            yield time % period // slot

    @property
    def parts_of_sequence(self) -> Iterator[Longs]:
        """Yield what the times of the user's other rows say of each row, (N,) each."""
        time, order, before, follows = self.table.time, self.order, self.pauses["previous"], self.previous_row >= 0
        yield self.place_of_row
        for pause, real in ((before, follows), (self.pauses["next"], self.next_row >= 0)):
            for seconds in (1, 60):
                yield np.where(real, pause // seconds + 1, 0)
        for hours in (24, 12, 8, 6, 4, 3, 2, 1):
            yield _places(order, follows & (before <= hours * 3600))
        for offset in range(-12 * 3600, 13 * 3600, 3600):
            day = (time + offset) // 86_400
            yield _places(order, follows & (day == day[self.previous_row]))

    @cached_property
    def of_users(self) -> dict[str, Floats]:
        """What summarises each user's visits, (U,) each: the part of a rank that their number does not explain."""
        table, users = self.table, len(self.table.user_ids)
        pair = np.unique(table.user.astype(np.int64) << 32 | table.venue)
        rows = np.bincount(table.user, minlength=users)
        variance = np.zeros(users)
        for axis in (table.lat, table.lon * np.cos(np.radians(np.median(table.lat)))):
            mean = np.bincount(table.user, axis, users) / rows
            variance += np.bincount(table.user, (axis - mean[table.user]) ** 2, users)
        found = {
            "the number of the user's venues": np.bincount(pair >> 32, minlength=users).astype(float),
            "the radius of the user's visits": variance / rows,
        }
        return {what: self.beyond_rows(value) for what, value in found.items()}

    def beyond_rows(self, value: Floats) -> Floats:
        """Return the part of the rank of a number per user, (U,), that the number of the user's rows does not explain.

        NaN where there is no number.
        """
        real = np.isfinite(value)
        if real.sum() < 2:
            return np.full(len(value), np.nan)
        rows = np.bincount(self.table.user, minlength=len(value))[real]
        number, rank = (one.argsort(kind="stable").argsort(kind="stable") / len(one) for one in (rows, value[real]))
        out = np.full(len(value), np.nan)
        out[real] = rank - np.polyval(np.polyfit(number, rank, 1), number)
        return out

    @cached_property
    def visit_number(self) -> Longs:
        """The number of the user's visit to the venue, from 1, (N,)."""
        pair = self.table.user.astype(np.int64) << 32 | self.table.venue
        order = self.order[np.argsort(pair[self.order], kind="stable")]
        again = np.zeros(len(order), bool)
        again[order[1:]] = np.diff(pair[order]) == 0
        return _places(order, again) + 1
