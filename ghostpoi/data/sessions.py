"""Turn check-ins into sessions: filters, segmentation at long gaps, vocabulary, split."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues, by_user_and_time
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.settings import FilterSettings


@dataclass(frozen=True)
class Vocabulary:
    """The venues that models know. The models' POI p is row p; row 0 is padding."""

    lat: Floats  # (P+1,)
    lon: Floats  # (P+1,)
    category: Ints  # (P+1,), -1 in row 0
    venue: Ints  # (P+1,) the venue in the check-in table, 0 in row 0

    def __len__(self) -> int:
        """Return the number of rows, padding included: the size of an embedding table."""
        return len(self.lat)


@dataclass(frozen=True)
class Sessions:
    """Sessions stored end to end. Session s holds the positions start[s] to start[s+1] - 1."""

    user: Ints  # (S,)
    start: Longs  # (S+1,)
    poi: Ints  # (N,) rows of the vocabulary, from 1
    time: Longs  # (N,) UTC seconds
    row: Longs  # (N,) row of the check-in table, from 0

    def __len__(self) -> int:
        return len(self.user)

    @property
    def positions(self) -> int:
        return len(self.poi)

    @property
    def length(self) -> Longs:
        return np.diff(self.start)  # (S,)

    def session_of(self) -> Longs:
        """Return the session of every position."""
        return np.repeat(np.arange(len(self)), self.length)  # (N,)

    def steps(self, lag: int = 1) -> Longs:
        """Return the positions whose session goes on for `lag` positions more, in order."""
        session = self.session_of()
        return np.flatnonzero(session[lag:] == session[:-lag])

    def take(self, which: Bools | Longs) -> "Sessions":
        """Return the sessions that `which` (S,) marks, or those with these numbers in this order."""
        length = self.length[which]
        at, start = spans(self.start[:-1][which], length), np.append(0, np.cumsum(length))
        return Sessions(self.user[which], start, self.poi[at], self.time[at], self.row[at])


def spans(start: Longs, length: Longs) -> Longs:
    """Return start[k], start[k] + 1 .. start[k] + length[k] - 1 for every k, end to end."""
    return np.repeat(start - (np.cumsum(length) - length), length) + np.arange(length.sum())


@dataclass(frozen=True)
class FilterStep:
    """The effect of one filter."""

    step: str
    rows_before: int
    rows_after: int
    why: str


@dataclass(frozen=True)
class Dataset:
    """Sessions over one vocabulary, split per user in time order."""

    vocabulary: Vocabulary
    train: Sessions
    val: Sessions
    test: Sessions
    steps: tuple[FilterStep, ...]
    kept: Bools  # (rows of the table,) after the venue and user filters, before the session-length filter
    all: Sessions  # train, val and test together, by user and time


def build(table: Checkins, settings: FilterSettings, may_be_empty: bool = False) -> Dataset:
    """Filter, segment and split a check-in table; refuse it if the filters leave nothing."""
    if settings.train_share + settings.val_share > 1:
        raise InputError(
            f"filters.train_share and filters.val_share add up to more than 1; lower one of them with {option('set')}"
        )
    steps: list[FilterStep] = []

    def record(name: str, dropped: str, before: int, after: int, sizes: Longs, remedy: str = "") -> None:
        minimum = getattr(settings, name)
        steps.append(FilterStep(name, before, after, dropped.format(minimum)))
        if after == 0 and not may_be_empty:
            lower = max(1, int(sizes.max()))
            raise InputError(
                f"{table.name}: the filter {name!r} leaves nothing of {before:,} check-ins ({steps[-1].why}); lower "
                f"it with {option('set', f'filters.{name}={lower}')}{remedy}"
            )

    visits = np.bincount(table.venue, minlength=len(table.venue_ids))
    kept = (visits >= settings.min_poi_checkins)[table.venue]
    record("min_poi_checkins", "venues with fewer than {} check-ins", len(table), int(kept.sum()), visits)
    before, checkins = int(kept.sum()), np.bincount(table.user[kept], minlength=len(table.user_ids))
    kept &= (checkins >= settings.min_user_checkins)[table.user]
    record("min_user_checkins", "users with fewer than {} check-ins left", before, int(kept.sum()), checkins)
    vocabulary, poi_of = vocabulary_of(table.venues, np.flatnonzero(np.bincount(table.venue[kept])))
    every = _segment(table, kept, poi_of, settings.session_gap_s)
    sessions = every.take(every.length >= settings.min_session_length)
    record(
        "min_session_length", "sessions with fewer than {} check-ins", every.positions, sessions.positions,
        every.length, " or raise filters.session_gap_s",
    )  # fmt: skip
    part = split(sessions.user, settings)
    train, val, test = (sessions.take(part == k) for k in range(3))
    return Dataset(vocabulary, train, val, test, tuple(steps), kept, sessions)


def vocabulary_of(venues: Venues, known: Longs) -> tuple[Vocabulary, Ints]:
    """Return a vocabulary of these venues (ascending), and the POI of every venue (0: not in the vocabulary)."""
    venue = np.append(0, known).astype(np.int32)
    poi_of = np.zeros(len(venues.lat), np.int32)
    poi_of[known] = np.arange(1, len(venue), dtype=np.int32)
    return Vocabulary(venues.lat[venue], venues.lon[venue], venues.category[venue], venue), poi_of


def _segment(table: Checkins, kept: Bools, poi_of: Ints, gap_s: int) -> Sessions:
    """Cut each user's kept rows, ordered by time and then by row, where the gap exceeds `gap_s` or a region ends."""
    row = np.flatnonzero(kept)
    row = row[by_user_and_time(table.user[row], table.time[row])]
    user, time = table.user[row], table.time[row]
    first = np.ones(len(row), bool)
    first[1:] = (user[1:] != user[:-1]) | (np.diff(time) > gap_s)
    if table.crossing is not None:  # also if the row that crosses was dropped
        order, crossed = by_user_and_time(table.user, table.time), np.empty(len(table), np.int64)
        crossed[order] = np.cumsum(table.crossing[order])
        first[1:] |= np.diff(crossed[row]) > 0
    start = np.flatnonzero(first)
    return Sessions(user[start], np.append(start, len(row)), poi_of[table.venue[row]], time, row)


def split(user: Ints, settings: FilterSettings, window: int = 0) -> NDArray[np.int8]:
    """Return 0 (train), 1 (validation), 2 (test) or 3 (left out) for every session, sorted by user and time.

    Window 0 tests the last sessions of each user. Each further window tests those before the sessions of the window
    before it and leaves out what follows; users without training sessions in a further window are left out.
    """
    n = np.bincount(user)[user]
    place = np.arange(len(user)) - np.searchsorted(user, user)  # number of the session among the user's sessions
    train = (n * settings.train_share).astype(np.int64)
    val = (n * settings.val_share).astype(np.int64)
    later = window * (n - train - val)
    part = sum((place >= end - later).astype(np.int8) for end in (train, train + val, n))
    return np.where((window > 0) & (train <= later), np.int8(3), part).astype(np.int8)
