"""Rows in an order that their content decides, and rows that are released at the same venue.

The order of a file must not decide draws. Rows are ordered by user, time and venue, by their ids.

Rows of one user and time whose venues draw from the same set are released at one venue: duplicates, and different
venues of a crowd. Several draws for one visit would reveal more than one draw. If only duplicates were released at one
venue, whether two venues differ would show.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data import sessions
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Checkins, Longs, Venues, by_user_and_time
from ghostpoi.data.sessions import Dataset, Sessions
from ghostpoi.draw.noise import plain
from ghostpoi.draw.walks import number_of_set
from ghostpoi.settings import FilterSettings


def user_order(table: Checkins) -> Longs:
    """Return the users of a table in the order of their ids, however these are written, (U,)."""
    return np.argsort(np.array([plain(str(name)) for name in table.user_ids], object), kind="stable")


def venue_order(ids: NDArray[np.object_]) -> Longs:
    """Return venues in the order of their ids, (V+1,). Row 0, which is padding, stays."""
    return np.append(0, np.argsort(ids[1:], kind="stable") + 1)


@dataclass(frozen=True)
class RowOrder:
    """The order of the rows of a table, and the row whose release each takes."""

    row: Longs  # (N,) rows by user, time, set and venue
    first: Longs  # (N,) of each row of the table: itself, or the one that decides for it

    @staticmethod
    def of(table: Checkins, sets: Candidates, decided: Bools) -> "RowOrder":
        """Order rows. `decided` (N,) marks those whose release is known before that of the others."""
        order = by_user_and_time(np.argsort(user_order(table)).astype(np.int32)[table.user], table.time)
        user, time = table.user[order], table.time[order]
        again = (user[1:] == user[:-1]) & (time[1:] == time[:-1])
        at = np.flatnonzero(np.append(again, False) | np.append(False, again))
        row, moment = order[at], np.cumsum(np.append(True, ~again))[at]
        venue_rank, category_rank = np.argsort(venue_order(table.venue_ids)), np.argsort(np.argsort(table.category_ids))
        place = venue_rank[number_of_set(sets)[table.venue[row]]]
        within = np.lexsort((
            category_rank[table.category[row]], table.lon[row], table.lat[row], venue_rank[table.venue[row]],
            ~decided[row], place, moment,
        ))  # fmt: skip
        order[at] = row = row[within]
        new = np.append(True, (np.diff(moment) != 0) | (np.diff(place[within]) != 0))[: len(row)]
        first = np.arange(len(order))
        first[row] = row[np.flatnonzero(new)][np.cumsum(new) - 1]
        return RowOrder(order, first)

    @property
    def leading(self) -> Longs:
        """The rows that take no other row's release, in order."""
        rows: Longs = self.row[self.first[self.row] == self.row]
        return rows

    def arranged(self, found: Sessions) -> Sessions:
        """Return sessions with check-ins of equal times in this order."""
        place = np.empty(len(self.row), np.int64)
        place[self.row] = np.arange(len(self.row))
        at = np.lexsort((place[found.row], found.session_of()))
        return replace(found, poi=found.poi[at], time=found.time[at], row=found.row[at])

    def without_followers(self, found: Sessions) -> Sessions:
        """Return sessions without the check-ins that take another row's release."""
        own = self.first[found.row] == found.row
        if own.all():
            return found
        length = np.bincount(found.session_of()[own], minlength=len(found))
        some = length > 0
        start = np.append(0, np.cumsum(length[some]))
        return Sessions(found.user[some], start, found.poi[own], found.time[own], found.row[own])


def sessions_of(table: Checkins, settings: FilterSettings, may_be_empty: bool) -> Dataset:
    """Build the sessions of a table with users and venues in the order of their ids, not of the file."""
    users, venues = user_order(table), venue_order(table.venue_ids)
    user, venue = (np.argsort(order).astype(np.int32) for order in (users, venues))
    v = table.venues
    places = Venues(v.lat[venues], v.lon[venues], v.category[venues])
    found = sessions.build(
        replace(table, user=user[table.user], venue=venue[table.venue], user_ids=table.user_ids[users],
                venue_ids=table.venue_ids[venues], places=places),
        settings, may_be_empty,
    )  # fmt: skip
    parts = {
        name: replace(part := getattr(found, name), user=users[part.user].astype(np.int32))
        for name in ("train", "val", "test", "all")
    }
    vocabulary = replace(found.vocabulary, venue=venues[found.vocabulary.venue].astype(np.int32))
    return replace(found, vocabulary=vocabulary, **parts)
