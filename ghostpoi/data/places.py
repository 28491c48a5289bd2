"""Places: what a publisher may know of each venue when choosing which can replace each other, and which never appear.

How venues are used is learned from the check-ins alone: the hours of visits, and the time before and after other
visits. In files without categories, two venues of similar use count as the same kind of venue. Ids of users and of
neighbouring venues are ignored: venues share them because they are near each other, not because they are similar. The
embedding of the trajectory LM agrees less with categories (docs/rerun_venue_use.py compares both).
"""

import csv
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues
from ghostpoi.data.created import are_new
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.settings import HideSettings

HOURS, DAY_S = 24, 86_400
EPOCH_WEEKDAY = 3  # 1 January 1970 was a Thursday; Monday is 0
WAITS_S = (300, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 64_800, DAY_S)  # bounds; the last bin: a day or more
SPREAD_HOURS = 1.0  # standard deviation by which a visit is spread over the hours around it
PRIOR_VISITS = 5.0  # weight, in visits, of the mean of all venues in the shares of one venue
# The weight of each part. On NYC, the wait after a visit predicts the category better than the wait before it.
WEIGHTS = {"hours": 1.0, "before": 0.3, "after": 0.6}


def learn_use(venue: Ints, time: Longs, user: Ints, rows: int) -> Floats:
    """Describe venues (P+1 = rows) by visits (N,): unit vectors (rows, D); the cosine of two is their similarity.

    A vector holds, for every bin, the logarithm of the venue's share of visits divided by the share of all venues.
    """
    before, after = _waits(time, user)
    counts = {"hours": _hours(venue, time, rows), "before": _binned(venue, before, rows),
              "after": _binned(venue, after, rows)}  # fmt: skip
    parts = []
    for name, weight in WEIGHTS.items():
        part = _surprise(counts[name])
        length = np.linalg.norm(part[1:], axis=1).mean() if rows > 1 else 0.0
        parts.append(part * (weight / length if length else 0.0))
    use = np.concatenate(parts, axis=1)
    use[0] = 0
    return use / np.maximum(np.linalg.norm(use, axis=1, keepdims=True), 1e-12)


def _waits(time: Longs, user: Ints) -> tuple[Longs, Longs]:
    """Seconds since the user's previous and until the next visit at another time; DAY_S if more or if there is none."""
    order = np.lexsort((time, user))
    moment = np.ones(len(order), bool)  # the first visit of a user at a time
    moment[1:] = (np.diff(user[order]) != 0) | (np.diff(time[order]) != 0)
    first = order[moment]
    gap = np.where(np.diff(user[first]) == 0, np.minimum(np.diff(time[first]), DAY_S), DAY_S)
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(moment) - 1
    return np.append(DAY_S, gap)[place], np.append(gap, DAY_S)[place]


def _hours(venue: Ints, time: Longs, rows: int) -> Floats:
    """Visits (rows, 2 x HOURS) by hour of the day (UTC), on weekdays and at weekends, spread over the hours around."""
    weekend = (time // DAY_S + EPOCH_WEEKDAY) % 7 >= 5
    column = weekend * HOURS + time // 3600 % HOURS
    counts = np.bincount(venue.astype(np.int64) * 2 * HOURS + column, minlength=rows * 2 * HOURS)
    hour = np.arange(HOURS)
    apart = np.abs(hour[:, None] - hour)
    kernel = np.exp(-0.5 * (np.minimum(apart, HOURS - apart) / SPREAD_HOURS) ** 2)
    spread: Floats = counts.reshape(rows, 2, HOURS) @ (kernel / kernel.sum(axis=1, keepdims=True))
    return spread.reshape(rows, 2 * HOURS)


def _binned(venue: Ints, wait: Longs, rows: int) -> Floats:
    """Visits (rows, bins) by the length of a wait."""
    bins = len(WAITS_S) + 1
    column = np.searchsorted(WAITS_S, wait, side="right")
    return np.bincount(venue.astype(np.int64) * bins + column, minlength=rows * bins).reshape(rows, bins).astype(float)


def _surprise(counts: Floats) -> Floats:
    """The log ratio of a venue's smoothed shares to those of all venues, (rows, bins); 0 in bins without visits."""
    everywhere = counts.sum(axis=0) / max(counts.sum(), 1)
    empty = everywhere == 0
    share = (counts + PRIOR_VISITS * everywhere) / (counts.sum(axis=1, keepdims=True) + PRIOR_VISITS)
    return np.log(np.where(empty, 1, share) / np.where(empty, 1, everywhere))


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
    hidden: Bools | None = None  # (P+1,) those that are never released, whose visits do not count; None: there are none

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
            hidden=None if self.hidden is None else self.hidden[rows],
        )  # fmt: skip


def slot_of(time: Longs) -> Longs:
    """Return the slot of the week (UTC) of each time, 0 to SLOTS - 1."""
    return time // SLOT_S % SLOTS


def of_table(table: Checkins) -> Places:
    """Return all venues of a table."""
    return _places(table.venues, table.venue, table.time, len(table.category_ids))


def of_sessions(sessions: Sessions, v: Vocabulary) -> Places:
    """Return the venues of a vocabulary, with the visits of these sessions."""
    return _places(v, sessions.poi, sessions.time, int(v.category.max()) + 1)


def with_use(places: Places, visited: Checkins | Sessions) -> Places:
    """Return the same places with their use, learned from the visits that they were made from."""
    if isinstance(visited, Sessions):
        venue, user = visited.poi, np.repeat(visited.user, visited.length)
    else:
        venue, user = visited.venue, visited.user
    return replace(places, use=learn_use(venue, visited.time, user, len(places.lat)))


def _places(v: Venues | Vocabulary, visited: Ints, time: Longs, categories: int) -> Places:
    """Return venues by their visits. Every category is a group of its own."""
    visits, visited_kind = np.bincount(visited, minlength=len(v.lat)), v.category[visited].astype(np.int64)
    by_slot = np.bincount(visited_kind * SLOTS + slot_of(time), minlength=categories * SLOTS)
    group = np.arange(categories, dtype=np.int32)
    return Places(v.lat, v.lon, v.category, visits, by_slot.reshape(categories, SLOTS), group)


TAXONOMY = "give a CSV file with the header line category,group and one line per category"


def read_taxonomy(path: Path) -> dict[str, str]:
    """Read the group of every category, named as in the check-ins, from the columns of a CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"the taxonomy {path} cannot be read ({e}); {TAXONOMY}") from None
    groups: dict[str, str] = {}
    for line, row in enumerate(rows, 2):
        category, group = row.get("category"), row.get("group")
        if not category or not group:
            raise InputError(f"{path}, line {line}: the category or its group is missing; {TAXONOMY}")
        if groups.setdefault(category, group) != group:
            raise InputError(f"{path}, line {line}: {category!r} is in two groups; remove one of its lines")
    if not groups:
        raise InputError(f"the taxonomy {path} is empty; {TAXONOMY}")
    return groups


KNOWN_HOMES = tomllib.loads(Path(__file__).with_name("homes.toml").read_text("utf-8"))
HOMES: tuple[str, ...] = (*KNOWN_HOMES["names"], *KNOWN_HOMES["foursquare"])


def _plain(name: str) -> str:
    """Reduce a name to its words: letters and digits in lower case."""
    return " ".join(re.findall(r"[^\W_]+", name.lower()))


WORDS = frozenset(map(_plain, HOMES))


def is_hidden(called: Iterable[str], rule: HideSettings) -> bool:
    """Return whether venues of a category of this id and name are never released."""
    words = (WORDS if rule.homes else frozenset()) | {_plain(name) for name in rule.categories.split(";")} - {""}
    return bool(words & {_plain(text) for text in called})


def called(table: Checkins) -> list[tuple[str, str]]:
    """Return the id and the name of each category of a table, (C,); the name may be empty."""
    return [(i, table.category_names.get(i, "")) for i in table.category_ids.tolist()]


def hidden_venues(table: Checkins, rule: HideSettings) -> Bools:
    """Mark the venues of a table, (V+1,), that are never released. One row of a hidden category is enough."""
    of_category = np.array([*(is_hidden(texts, rule) for texts in called(table)), False])
    hidden = of_category[table.venues.category]  # row 0 has the category -1; some venues may have no row
    hidden[table.venue[of_category[table.category]]] = True
    if rule.min_visitors > 1:
        pairs = np.unique(table.venue.astype(np.int64) * len(table.user_ids) + table.user)
        visitors = np.bincount(pairs // max(1, len(table.user_ids)), minlength=len(hidden))
        hidden[1:] |= visitors[1:] < rule.min_visitors
    if rule.new:
        hidden[1:] |= are_new(table.venue_ids[1:].tolist(), table)
    return hidden
