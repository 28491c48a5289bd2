"""A clean city, and what columns of usual exports are made of: see `leaky` and `harmless`."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ghostpoi.columns.related import RelatedVenues
from ghostpoi.data.checkins import Checkins, Floats, Longs

Make = Callable[["City"], Any]
DAY = 86_400
WORDS = ("great", "busy", "quiet", "with Sam", "again", "finally", "so tired", "love this", "late", "quick stop")


@dataclass(frozen=True)
class City:
    """A clean table, and what columns are made of."""

    table: Checkins
    seed: int

    @cached_property
    def draw(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @cached_property
    def related(self) -> RelatedVenues:
        return RelatedVenues(self.table)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def venue(self) -> Longs:
        return self.table.venue.astype(np.int64)

    @property
    def category(self) -> Longs:
        return self.table.venues.category[self.table.venue].astype(np.int64)

    @property
    def user(self) -> Longs:
        return self.table.user.astype(np.int64)

    @cached_property
    def local(self) -> Longs:
        """The local time in seconds."""
        return self.table.time - 5 * 3600

    @property
    def hour(self) -> Longs:
        return self.local % DAY // 3600

    @property
    def day(self) -> Longs:
        return self.local // DAY

    @cached_property
    def gap(self) -> Floats:
        """Seconds since the user's previous check-in, NaN for the first."""
        before = self.related.previous_row
        return np.where(before >= 0, self.table.time - self.table.time[before], np.nan)

    @cached_property
    def away(self) -> Floats:
        """Kilometres from the user's previous venue, 0 for the first."""
        return np.nan_to_num(self.related.travel["the distance to the user's previous venue"])

    def session(self, hours: float) -> Longs:
        """The number of each row's session among those of the user, by gaps of so many hours."""
        order = self.related.order
        new = ~(self.gap[order] <= hours * 3600)
        first = np.flatnonzero(np.diff(self.user[order], prepend=-1))
        count = np.cumsum(new)
        out = np.empty(len(order), np.int64)
        out[order] = count - np.repeat(count[first], np.diff(np.append(first, len(order)))) + 1
        return out

    def place(self, group: Longs) -> Longs:
        """The place of each row, from 1, among the rows of its user and group in time order."""
        order = self.related.order
        key = (self.user << 32 | group)[order]
        by_key = np.argsort(key, kind="stable")
        first = np.flatnonzero(np.diff(key[by_key], prepend=-1))
        out = np.empty(len(key), np.int64)
        out[order[by_key]] = np.arange(len(key)) - np.repeat(first, np.diff(np.append(first, len(key)))) + 1
        return out

    def of(self, group: Longs, values: Any) -> Any:
        """A random one of the values for each group."""
        return np.asarray(values)[self.draw.integers(0, len(values), int(group.max()) + 1)][group]

    def kind(self, venue: Longs) -> Longs:
        """The category of some venues, from 1; 0 for no venue."""
        return self.table.venues.category[venue].astype(np.int64) + 1

    def numbers(self, group: Longs, most: int) -> Longs:
        """A random number below `most` for each group."""
        return self.draw.integers(0, most, int(group.max()) + 1)[group]

    def noisy(self, value: Any, share: float) -> Any:
        """Replace a share of the values by those of random rows."""
        value = np.asarray(value)
        return np.where(self.draw.random(len(value)) < share, value[self.draw.permutation(len(value))], value)

    def missing(self, value: Any, share: float) -> list[Any]:
        """Remove a share of the values."""
        gone = self.draw.random(len(self)) < share
        return [None if no else one for no, one in zip(gone.tolist(), np.asarray(value).tolist(), strict=True)]

    def normal(self, mean: Any = 0.0, width: float = 1.0) -> Floats:
        return mean + width * self.draw.standard_normal(len(self))

    def some(self, values: Any, chances: Any = None) -> Any:
        """Random values."""
        return self.draw.choice(np.asarray(values), len(self), p=chances)

    def zone(self, km: float, venue: Longs | None = None) -> Longs:
        """The number of the square of each row's venue."""
        v = self.table.venues
        at = np.nan_to_num(np.stack([v.lat, v.lon * np.cos(np.radians(np.nanmedian(v.lat)))])) * 111.0
        square = np.unique(np.floor(at / km), axis=1, return_inverse=True)[1].reshape(-1)
        return square[self.venue if venue is None else venue].astype(np.int64)

    def nearest(self, count: int, second: float = 0.0) -> Longs:
        """The nearest of some stations that stand at random venues; for a share of the rows, the second."""
        v = self.table.venues
        at = np.nan_to_num(np.stack([v.lat, v.lon * 0.76], axis=1))
        station = at[1 + self.draw.permutation(len(at) - 1)[:count]]
        rank = np.argpartition(((at[:, None] - station) ** 2).sum(axis=2), 1, axis=1)[:, :2]
        near = rank[self.venue]
        return np.where(self.draw.random(len(self)) < second, near[:, 1], near[:, 0]).astype(np.int64)

    @cached_property
    def before(self) -> Longs:
        """The user's previous venue, 0 for none."""
        return self.related.venue["previous"].astype(np.int64)

    @cached_property
    def after(self) -> Longs:
        return self.related.venue["next"].astype(np.int64)

    @cached_property
    def usual(self) -> Longs:
        return self.related.venue["usual"].astype(np.int64)

    @cached_property
    def visit(self) -> Longs:
        return self.related.visit_number

    @cached_property
    def compass(self) -> Longs:
        """The direction from the previous venue, in eighths."""
        v = self.table.venues
        y, x = v.lat[self.venue] - v.lat[self.before], v.lon[self.venue] - v.lon[self.before]
        return (np.nan_to_num(np.degrees(np.arctan2(x, y))) % 360 // 45).astype(np.int64)

    @cached_property
    def seen(self) -> Longs:
        """How many venues the user has visited until then."""
        order = self.related.order
        new = (self.visit[order] == 1).astype(np.int64)
        first = np.flatnonzero(np.diff(self.user[order], prepend=-1))
        count = np.cumsum(new)
        out = np.empty(len(order), np.int64)
        out[order] = count - np.repeat(count[first] - 1, np.diff(np.append(first, len(order))))
        return out

    @cached_property
    def favourite(self) -> Longs:
        """The rank of the venue among the user's, from 1."""
        pair, code, count = np.unique(self.user << 32 | self.venue, return_inverse=True, return_counts=True)
        order = np.lexsort((-count, pair >> 32))
        first = np.flatnonzero(np.diff(pair[order] >> 32, prepend=-1))
        rank = np.empty(len(pair), np.int64)
        rank[order] = np.arange(len(pair)) - np.repeat(first, np.diff(np.append(first, len(pair)))) + 1
        return rank[code]

    def per_user(self, summary: Callable[[Longs], Any]) -> Any:
        """A summary of each user's rows."""
        order = self.related.order
        parts = np.split(order, np.flatnonzero(np.diff(self.user[order])) + 1)
        found = {int(self.user[rows[0]]): summary(rows) for rows in parts}
        return [found[user] for user in self.user.tolist()]

    def bloom(self, rows: Longs) -> str:
        bits = 0
        for venue in np.unique(self.venue[rows]).tolist():
            digest = hashlib.sha256(str(venue).encode()).digest()
            for at in range(3):
                bits |= 1 << (int.from_bytes(digest[2 * at : 2 * at + 2], "big") % 1024)
        return f"{bits:0256x}"

    def radius(self, rows: Longs) -> float:
        at = np.stack([self.table.lat[rows] * 111, self.table.lon[rows] * 84])
        return round(float(np.sqrt(((at - at.mean(axis=1, keepdims=True)) ** 2).sum(axis=0).mean())), 3)

    def stamps(self, form: str, seconds: Longs | None = None) -> list[str]:
        time = pl.Series(self.local if seconds is None else seconds) * 1_000_000
        return time.cast(pl.Datetime("us")).dt.strftime(form).to_list()

    def texts(self, form: str, *values: Any) -> list[str]:
        """Write values into a form, row by row."""
        return [form.format(*row) for row in zip(*(np.asarray(v).tolist() for v in values), strict=True)]

    def hexes(self, size: int) -> list[str]:
        return [self.draw.bytes(size).hex() for _ in range(len(self))]

    def sentences(self, topic: Longs | None = None) -> list[str]:
        """Comments of three words; with a topic, one of them is often a word of it."""
        words = self.draw.choice(WORDS, (len(self), 3))
        if topic is None:
            return [" ".join(row) for row in words.tolist()]
        often = self.draw.random(len(self)) < 0.6
        return [
            " ".join([*row[:2], f"topic{t}" if on else row[2]])
            for row, t, on in zip(words.tolist(), topic.tolist(), often.tolist(), strict=True)
        ]
