"""Places: what a publisher may know of each venue when choosing which venues can replace each other."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins, Floats, Ints, Longs
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.data.venue_use import learn_use

SLOT_S = 4 * 3600  # the week is divided into slots of four hours
SLOTS = 7 * 86_400 // SLOT_S


@dataclass(frozen=True)
class Places:
    """Venues of a table or vocabulary with position, category and number of visits. Row 0 is padding."""

    lat: Floats  # (P+1,)
    lon: Floats  # (P+1,)
    category: Ints  # (P+1,), -1 in row 0
    visits: Longs  # (P+1,)
    category_visits: Longs  # (categories, SLOTS) visits by slot of the week
    category_group: Ints  # (categories,) the group of each category
    use: Floats | None = None  # (P+1, D) how each place is used; None: not learned

    @property
    def group(self) -> Ints:
        """The group of each place's category, (P+1,), -1 in row 0."""
        return np.append(np.int32(-1), self.category_group[self.category[1:]]).astype(np.int32)

    def kind(self, category: Literal["exact", "group", "any"]) -> Ints:
        """Return what places must have in common to replace each other, (P+1,): category, group, or nothing."""
        return {"exact": self.category, "group": self.group, "any": 0 * self.category}[category]

    def take(self, rows: NDArray[np.integer]) -> "Places":
        """Return these places, in this order; the first must be row 0."""
        return replace(
            self, lat=self.lat[rows], lon=self.lon[rows], category=self.category[rows], visits=self.visits[rows],
            use=None if self.use is None else self.use[rows],
        )  # fmt: skip


def slot_of(time: Longs) -> Longs:
    """Return the slot of the week (UTC) of each time, 0 to SLOTS - 1."""
    return time // SLOT_S % SLOTS


def of_table(table: Checkins, category_group: Ints | None = None) -> Places:
    """Return all venues of a table. Without groups, every category is a group of its own."""
    v, categories = table.venues, len(table.category_ids)
    visits = np.bincount(table.venue, minlength=len(table.venue_ids))
    return _places(v.lat, v.lon, v.category, visits, v.category[table.venue], table.time, categories, category_group)


def of_sessions(sessions: Sessions, v: Vocabulary, category_group: Ints | None = None) -> Places:
    """Return the venues of a vocabulary, with the visits of these sessions."""
    visits, categories = np.bincount(sessions.poi, minlength=len(v)), int(v.category.max()) + 1
    return _places(
        v.lat, v.lon, v.category, visits, v.category[sessions.poi], sessions.time, categories, category_group
    )


def with_use(places: Places, visited: Checkins | Sessions) -> Places:
    """Return the same places with their use, learned from the visits that they were made from."""
    if isinstance(visited, Sessions):
        venue, user = visited.poi, np.repeat(visited.user, visited.length)
    else:
        venue, user = visited.venue, visited.user
    return replace(places, use=learn_use(venue, visited.time, user, len(places.lat)))


def _places(
    lat: Floats, lon: Floats, category: Ints, visits: Longs, visited: Ints, time: Longs, categories: int,
    group: Ints | None,
) -> Places:  # fmt: skip
    by_slot = np.bincount(visited.astype(np.int64) * SLOTS + slot_of(time), minlength=categories * SLOTS)
    own = np.arange(categories, dtype=np.int32) if group is None else group
    return Places(lat, lon, category, visits, by_slot.reshape(categories, SLOTS), own)
