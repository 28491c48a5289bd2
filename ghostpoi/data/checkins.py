"""The check-in table: one row per check-in, in file order, with ids as numbers and validated values.

Orders of rows are stable: rows that compare equal keep their order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ghostpoi.errors import InputError

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

IDS = ("user", "poi", "category")
FIELDS = (*IDS, "lat", "lon", "time")
GROUP = "category_group"  # an optional field: the parent category
NAME = "category_name"  # not a field: what a file calls a category whose id is the field
DATE = "date"  # an optional field: the date, where the time is the time of day


@dataclass(frozen=True)
class Venues:
    """All venues of a table. Venue v is row v; row 0 means no venue."""

    lat: Floats  # (V+1,), NaN in row 0
    lon: Floats  # (V+1,)
    category: Ints  # (V+1,), -1 in row 0


@dataclass(frozen=True)
class Checkins:
    """Check-ins in file order. Venues are numbered from 1, users and categories from 0, by first appearance."""

    user: Ints  # (N,)
    venue: Ints  # (N,)
    category: Ints  # (N,)
    lat: Floats  # (N,) degrees
    lon: Floats  # (N,) degrees
    time: Longs  # (N,) UTC seconds
    user_ids: NDArray[np.object_]  # the id of each user, as text
    venue_ids: NDArray[np.object_]  # (V+1,), row 0 is ""
    category_ids: NDArray[np.object_]
    category_field: str = "category"  # the column that holds the category; "": there is none
    name: str = "the table"  # its name in messages, e.g. the path of the file
    category_groups: Mapping[str, str] = field(default_factory=dict)  # category -> group, from a taxonomy
    category_names: Mapping[str, str] = field(default_factory=dict)  # category -> its name, where the file has one
    crossing: Bools | None = None  # (N,) the user's row before, in time, lies in another region; None: one region
    places: Venues | None = None  # of all venues, if there are some that no row visits

    def __len__(self) -> int:
        return len(self.user)

    @cached_property
    def venues(self) -> Venues:
        """The position and category of each venue, taken from its first row in time order."""
        if self.places is not None:
            return self.places
        order = np.argsort(self.time, kind="stable")
        first = np.empty(len(self.venue_ids), np.int64)
        first[self.venue[order[::-1]]] = order[::-1]  # the last assignment, the earliest row, wins
        at = first[1:]
        category = np.append(np.int32(-1), self.category[at])
        return Venues(np.append(np.nan, self.lat[at]), np.append(np.nan, self.lon[at]), category)


def concatenated(tables: Sequence[Checkins], name: str) -> Checkins:
    """Return the rows of tables one after the other, with the numbers that one file with all rows would have."""
    groups = joined_groups((table.category_groups for table in tables), name)
    users, user = _numbered([(table.user_ids, table.user) for table in tables])
    venues, venue = _numbered([(table.venue_ids, table.venue) for table in tables])
    categories, category = _numbered([(table.category_ids, table.category) for table in tables])
    lat, lon = (np.concatenate([getattr(table, field) for table in tables]) for field in ("lat", "lon"))
    time = np.concatenate([table.time for table in tables])
    field, names = tables[0].category_field, {of: name for table in tables for of, name in table.category_names.items()}
    return Checkins(user, venue, category, lat, lon, time, users, venues, categories, field, name, groups, names)


def joined_groups(each: Iterable[Mapping[str, str]], name: str) -> dict[str, str]:
    """Return the groups of categories that tables state together."""
    groups: dict[str, str] = {}
    for one in each:
        for of, group in one.items():
            if groups.setdefault(of, group) != group:
                raise InputError(f"{name}: the category {of!r} has several groups; give each category one group")
    return groups


def _numbered(parts: Sequence[tuple[NDArray[np.object_], Ints]]) -> tuple[NDArray[np.object_], Ints]:
    """Return all ids in the order in which they come, and the numbers of all rows."""
    number: dict[str, int] = {}
    rows = []
    for ids, codes in parts:
        here = np.array([number.setdefault(one, len(number)) for one in ids.tolist()], np.int32)
        rows.append(here[codes])
    return np.array(list(number), object), np.concatenate(rows)


def duplicates(table: Checkins) -> int:
    """Count the rows that repeat an earlier row's user, venue and time."""
    import polars as pl  # studies do without

    return len(table) - pl.DataFrame({"user": table.user, "venue": table.venue, "time": table.time}).n_unique()


def renumber(
    raw: NDArray[np.integer], distinct: NDArray[np.integer], names: NDArray[np.object_]
) -> tuple[Ints, NDArray[np.object_]]:
    """Number integer codes from 0 by first appearance; return the numbers and the name of each number."""
    first = np.empty(int(distinct.max(initial=0)) + 1, np.int64)
    first[raw[::-1]] = np.arange(len(raw) - 1, -1, -1)  # the last assignment, the first row, wins
    order = np.argsort(first[distinct])
    number = np.empty(len(first), np.int32)
    number[distinct[order]] = np.arange(len(order), dtype=np.int32)
    return number[raw], names[order]


DIGIT = 16  # bits; numpy sorts numbers of this size by radix, several times as fast as larger ones


def stable_order(number: NDArray[np.integer]) -> Longs:
    """Return the order of numbers that are not negative, (N,), as `np.argsort(number, kind="stable")` does."""
    order: Longs = np.argsort((number & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(DIGIT, int(number.max(initial=0)).bit_length(), DIGIT):
        digit = (number[order] >> shift & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order


def by_user_and_time(user: Ints, time: Longs) -> Longs:
    """Return the order of rows by user, then time, (N,)."""
    if (time[1:] >= time[:-1]).all():
        return stable_order(user)
    by_time = stable_order(time - time.min())
    return by_time[stable_order(user[by_time])]
