"""Leaky and harmless columns of usual exports, made for a real city: what `protect` says about each.

Every column is made from the clean rows with a seeded generator, added alone, and tested as `protect` does.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ghostpoi import formats
from ghostpoi.columns.classify import Tests
from ghostpoi.columns.dependence import value_codes
from ghostpoi.columns.predictor import AREA, areas
from ghostpoi.columns.related import RelatedVenues
from ghostpoi.data.checkins import Checkins, Floats, Longs
from ghostpoi.formats import CheckinFile, Columns
from ghostpoi.formats.build import file_of_rows

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


def _letters(code: Any) -> list[str]:
    return [f"{chr(65 + c % 26)}{c // 26 or ''}" for c in np.asarray(code).tolist()]


LEAKY: dict[str, Make] = {
    # what follows from the kind of the place
    "trip_purpose": lambda c: _letters(c.noisy(c.numbers(c.category, 9), 0.02)),
    "purpose_keyword": lambda c: _letters(c.noisy(c.numbers(c.category, 6), 0.05)),
    "expense_type": lambda c: _letters(c.noisy(c.numbers(c.category, 20), 0.05)),
    "merchant_code": lambda c: 5000 + c.noisy(c.numbers(c.category, 60), 0.03),
    "mood": lambda c: _letters(c.noisy(c.numbers(c.category, 4), 0.2)),
    "playlist": lambda c: _letters(c.noisy(c.numbers(c.category, 8), 0.3)),
    "noise_db": lambda c: np.round(c.normal(40.0 + c.numbers(c.category, 45), 3)).astype(int),
    "light_level": lambda c: c.noisy(c.numbers(c.category, 5), 0.1),
    "activity": lambda c: c.of(c.category, ["sit", "walk", "run", "eat", "stand"]),
    "indoor": lambda c: c.noisy(c.numbers(c.category, 2), 0.03),
    "payment": lambda c: c.noisy(c.of(c.category, ["cash", "card", "phone", "none"]), 0.1),
    "party_size": lambda c: np.maximum(1, np.round(c.normal(1.0 + c.numbers(c.category, 6), 0.4))).astype(int),
    "dwell_bucket": lambda c: c.noisy(c.numbers(c.category, 7), 0.15),
    "dwell_minutes": lambda c: np.round(np.exp(c.normal(2 + c.numbers(c.category, 30) / 8, 0.15))).astype(int),
    "stars": lambda c: np.clip(np.round(c.normal(1.0 + c.numbers(c.category, 5), 0.4)), 1, 5).astype(int),
    "companions": lambda c: c.noisy(c.of(c.category, ["family", "friends", "colleagues", "alone"]), 0.1),
    "dress_code": lambda c: c.missing(c.of(c.category, ["casual", "sport", "formal"]), 0.3),
    "icon": lambda c: c.noisy(c.numbers(c.category, 12), 0.1),
    "calories": lambda c: np.maximum(0, np.round(c.normal(50.0 * c.numbers(c.category, 12), 30) / 10) * 10),
    "heart_rate": lambda c: np.round(c.normal(60.0 + 4 * c.numbers(c.category, 18), 3)).astype(int),
    "app_opened": lambda c: c.noisy(c.of(c.category, ["maps", "camera", "bank", "fitness", "chat", "music"]), 0.2),
    "budget_line": lambda c: c.texts("4{:02d}0", c.noisy(c.numbers(c.category, 25), 0.03)),
    "voice_keyword": lambda c: c.missing(_letters(c.numbers(c.category, 30)), 0.6),
    "screen_brightness": lambda c: np.clip(c.normal(10.0 * c.numbers(c.category, 10), 4), 0, 100).round(),
    "scene": lambda c: c.noisy(_letters(c.numbers(c.category, 16)), 0.25),
    "vat": lambda c: c.noisy(c.of(c.category, [0.0, 0.07, 0.19]), 0.02),
    "meal": lambda c: np.where(c.numbers(c.category, 3) == 0, c.some(["breakfast", "lunch", "dinner"]), "none"),
    "spend_class": lambda c: np.minimum(9, np.round(np.exp(c.normal(c.numbers(c.category, 10) / 4, 0.2)))),
    "spend": lambda c: np.round(np.exp(c.normal(1 + c.numbers(c.category, 20) / 5, 0.2)), 2),
    # what follows from the place
    "wifi": lambda c: c.texts("net-{:x}", c.numbers(c.venue, 16)),
    "loyalty_program": lambda c: c.noisy(c.numbers(c.venue, 7), 0.05),
    "terminal": lambda c: c.texts("T{:05d}", c.venue * 3 + c.some(3)),
    "cashier": lambda c: c.texts("c{}", c.numbers(c.venue, 40) * 4 + c.some(4)),
    "floor": lambda c: c.missing(c.numbers(c.venue, 6), 0.05),
    "rating": lambda c: np.clip(np.round(c.normal(1.0 + c.numbers(c.venue, 5), 0.6)), 1, 5).astype(int),
    "price_level": lambda c: c.noisy(1 + c.numbers(c.venue, 4), 0.1),
    "unit_price": lambda c: c.numbers(c.venue, 50) + c.some([0.49, 0.95, 0.99]),
    "router_octet": lambda c: c.texts("{:02x}", c.noisy(c.numbers(c.venue, 256), 0.1)),
    "tax_office": lambda c: c.missing(c.numbers(c.venue, 20), 0.3),
    "coupon": lambda c: c.texts("{}{:03d}", _letters(c.numbers(c.venue, 26)), c.some(1000)),
    "check_digit": lambda c: c.noisy(c.venue % 97, 0.02),
    "till_language": lambda c: c.noisy(c.of(c.venue, ["en", "es", "zh", "ru"]), 0.05),
    "receipt": lambda c: c.venue * 100_000 + c.place(c.venue * 0),
    "door_code": lambda c: c.noisy(c.numbers(c.venue, 100), 0.05),
    "background_music": lambda c: c.noisy(c.of(c.venue, ["pop", "jazz", "none", "rock", "news"]), 0.1),
    "crowding": lambda c: c.noisy(np.round(np.log2(np.bincount(c.venue)[c.venue])).astype(int), 0.2),
    "beacon": lambda c: c.noisy(c.numbers(c.venue, 50), 0.3),
    "parking": lambda c: c.noisy(c.numbers(c.venue, 2), 0.02),
    "table_zone": lambda c: c.texts("{}-{}", _letters(c.numbers(c.venue, 12)), c.some(9)),
    "locker": lambda c: c.missing(c.numbers(c.venue, 300), 0.7),
    "wifi_strength": lambda c: np.round(c.normal(-80.0 + 5 * c.numbers(c.venue, 10), 2)).astype(int),
    "queue_minutes": lambda c: np.maximum(0, np.round(c.normal(3.0 * c.numbers(c.venue, 10), 1.5))).astype(int),
    "opening_class": lambda c: c.noisy(c.numbers(c.venue, 12), 0.15),
    # what follows from where it is
    "grid_cell": lambda c: c.noisy(c.zone(0.5), 0.05),
    "tile": lambda c: c.texts("17/{}", c.noisy(c.zone(0.3), 0.1)),
    "near_station": lambda c: c.nearest(100),
    "cell_tower": lambda c: c.nearest(300, 0.1),
    "bus_stop": lambda c: c.nearest(400, 0.2),
    "air_station": lambda c: c.noisy(c.nearest(30), 0.1),
    "territory": lambda c: c.noisy(c.zone(2.0), 0.02),
    "downtown_km": lambda c: np.round(c.normal(np.hypot(
        (c.table.lat - np.median(c.table.lat)) * 111, (c.table.lon - np.median(c.table.lon)) * 84), 0.3), 1),
    "elevation": lambda c: np.round(c.normal((c.zone(0.4) * 37 % 120).astype(float), 2)).astype(int),
    "block": lambda c: c.missing(c.zone(0.2), 0.4),
    "sector": lambda c: c.noisy(c.zone(1.0) * 7 % 12, 0.05),
    "lat_band": lambda c: np.round(c.normal(c.table.lat, 0.003), 3),
    "pressure": lambda c: np.round(c.normal(1000 + (c.zone(0.5) * 13 % 30).astype(float), 0.5), 1),
    # what follows from other visits
    "came_from": lambda c: _letters(c.noisy(c.numbers(c.kind(c.before), 8), 0.05)),
    "next_purpose": lambda c: _letters(c.noisy(c.numbers(c.kind(c.after), 9), 0.05)),
    "next_code": lambda c: c.noisy(c.numbers(c.after, 16), 0.05),
    "from_zone": lambda c: c.noisy(c.zone(0.5, c.before), 0.05),
    "trip_km": lambda c: np.maximum(0, np.round(c.normal(c.away, 0.2), 1)),
    "travel_mode": lambda c: c.noisy(np.digitize(c.away, [0.05, 0.8, 3, 10]), 0.05),
    "heading": lambda c: c.noisy(c.compass, 0.1),
    "steps_walked": lambda c: np.maximum(0, np.round(c.normal(c.away * 1300, 60))).astype(int),
    "fare": lambda c: np.round(c.normal(2.5 + c.away * 1.6, 0.3), 2),
    "same_as_last": lambda c: (c.venue == c.before).astype(int),
    "visits_here": lambda c: c.visit,
    "first_time": lambda c: c.visit == 1,
    "favourite_rank": lambda c: np.minimum(c.favourite, 20),
    "at_usual": lambda c: c.noisy((c.venue == c.usual).astype(int), 0.02),
    "regular": lambda c: np.digitize(c.visit, [2, 5, 10]),
    "new_places": lambda c: c.seen,
    "returning_from": lambda c: c.noisy(c.numbers(c.before, 30), 0.05),
    # what texts and ids hold
    "comment": lambda c: c.sentences(c.numbers(c.category, 25)),
    "hashtags": lambda c: c.texts("#{} #{}", c.some(WORDS), _letters(c.numbers(c.category, 30))),
    "photo_file": lambda c: c.texts("IMG_{}_{:04d}.jpg", c.zone(1.0), c.some(10_000)),
    "meta": lambda c: [json.dumps({"v": 2, "g": int(g)}) for g in c.noisy(c.numbers(c.category, 15), 0.05)],
    "slug": lambda c: [hashlib.md5(f"x{v}".encode()).hexdigest()[:6] for v in c.venue.tolist()],
    "trip_id": lambda c: c.texts("{}-{}-{}", c.user, c.session(6), c.zone(1.0)),
    "order_number": lambda c: c.texts("{:03d}-{:05d}", c.numbers(c.venue, 900), c.some(100_000)),
    "row_code": lambda c: np.cumsum(1 + c.numbers(c.category, 9)),
    "logged_at": lambda c: c.stamps("%Y-%m-%d %H:%M:%S", c.local + 900 * c.numbers(c.category, 4)),
    "ticket": lambda c: c.texts("{:02d}", _counter(c) % 100),
    "barcode": lambda c: c.texts("{:04d}{:04d}", c.numbers(c.venue, 10_000), c.some(10_000)),
    # what is the same in all rows of a user
    "home_zone": lambda c: c.zone(1.0, c.usual),
    "visited_filter": lambda c: c.per_user(c.bloom),
    "visit_vector": lambda c: c.per_user(
        lambda rows: " ".join(map(str, np.bincount(c.category[rows] % 40, minlength=40)))),
    "radius_km": lambda c: c.per_user(c.radius),
    "number_of_venues": lambda c: c.per_user(lambda rows: len(np.unique(c.venue[rows]))),
    "favourite_kind": lambda c: _letters(c.numbers(c.kind(c.usual), 25)),
}  # fmt: skip


def _counter(c: City) -> Longs:
    """The number of each row among those of its venue, from a random start."""
    order, start = c.related.by_time, c.numbers(c.venue, 100)
    by_venue = order[np.argsort(c.venue[order], kind="stable")]
    first = np.flatnonzero(np.diff(c.venue[by_venue], prepend=-1))
    out = np.empty(len(c), np.int64)
    out[by_venue] = np.arange(len(c)) - np.repeat(first, np.diff(np.append(first, len(c))))
    return out + start


def _weather(c: City) -> Any:
    return c.of(c.day - c.day.min(), ["sun", "rain", "cloud", "snow"])


def _battery(c: City, least: int = 0) -> Longs:
    """Full in the morning, lower in the evening, with much noise."""
    return np.clip(np.round(c.normal(100.0 - 3.5 * c.hour, 18)), least, 100).astype(np.int64)


def _upgrade(c: City, versions: int) -> Longs:
    """A version that each user has from some day on."""
    share = (c.table.time - c.table.time.min()) / np.ptp(c.table.time)
    late = c.draw.random(int(c.user.max()) + 1)[c.user] * 0.3
    return np.floor(np.clip(share - late, 0, 0.999) * versions).astype(np.int64)


HARMLESS: dict[str, Make] = {
    # what follows from the time
    "hh_mm": lambda c: c.stamps("%H:%M"),
    "hh_mm_ss": lambda c: c.stamps("%H:%M:%S"),
    "am_pm": lambda c: c.stamps("%p"),
    "clock": lambda c: c.stamps("%I:%M %p"),
    "decimal_hour": lambda c: np.round(c.local % DAY / 3600, 2),
    "hour": lambda c: c.hour,
    "hour_of_week": lambda c: (c.local // 3600) % 168,
    "part_of_day": lambda c: np.array(["night", "morning", "afternoon", "evening"])[c.hour // 6],
    "weekend": lambda c: np.where((c.day + 3) % 7 >= 5, "weekend", "weekday"),
    "weekday": lambda c: c.stamps("%A"),
    "wochentag": lambda c: np.array(["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"])[(c.day + 3) % 7],
    "iso_week": lambda c: c.stamps("%G-W%V"),
    "week": lambda c: [int(week) for week in c.stamps("%V")],
    "iso_date": lambda c: c.stamps("%Y-%m-%d"),
    "date_eu": lambda c: c.stamps("%d/%m/%Y"),
    "date_us": lambda c: c.stamps("%m/%d/%Y"),
    "datetime_eu": lambda c: c.stamps("%d.%m.%Y %H:%M"),
    "long_date": lambda c: c.stamps("%A, %d %B %Y"),
    "month": lambda c: c.stamps("%B"),
    "quarter": lambda c: [f"Q{(int(m) + 2) // 3}" for m in c.stamps("%m")],
    "season": lambda c: [["winter", "spring", "summer", "autumn"][int(m) % 12 // 3] for m in c.stamps("%m")],
    "year": lambda c: [int(year) for year in c.stamps("%Y")],
    "day_of_year": lambda c: [int(day) for day in c.stamps("%j")],
    "days_since_start": lambda c: c.day - c.day.min(),
    "elapsed_days": lambda c: np.round((c.table.time - c.table.time.min()) / DAY, 3),
    "date32": lambda c: pl.Series(c.local * 1_000_000).cast(pl.Datetime("us")).dt.date(),
    "time32": lambda c: pl.Series(c.local * 1_000_000).cast(pl.Datetime("us")).dt.time(),
    "epoch_ms": lambda c: c.table.time * 1000,
    "local_iso": lambda c: c.stamps("%Y-%m-%dT%H:%M:%S-05:00"),
    "business_hours": lambda c: (c.hour >= 9) & (c.hour < 17) & ((c.day + 3) % 7 < 5),
    "rush_hour": lambda c: np.isin(c.hour, [7, 8, 9, 16, 17, 18]).astype(int),
    "time_slot": lambda c: c.local % DAY // 900,
    "minute": lambda c: c.local % 3600 // 60,
    "school_holiday": lambda c: np.isin((c.day - c.day.min()) // 7 % 12, [3, 4]).astype(int),
    "moon_age": lambda c: np.round(c.day % 29.53, 1),
    "weather": _weather,
    "temperature": lambda c: np.round(10 + c.numbers(c.day - c.day.min(), 20) + 5 * np.sin(c.hour / 4)).astype(int),
    "humidity": lambda c: 30 + c.numbers(c.local // 3600 - c.local.min() // 3600, 70),
    "traffic_index": lambda c: np.round(c.normal(50 + 20 * np.sin(c.hour / 3), 5)).astype(int),
    "tariff": lambda c: np.where((c.hour >= 8) & (c.hour < 20), "peak", "off-peak"),
    "shift_team": lambda c: np.array(["A", "B", "C", "D"])[(c.local // 28_800) % 4],
    "fiscal_period": lambda c: (c.day - c.day.min()) // 28,
    "week_parity": lambda c: (c.day + 3) // 7 % 2,
    # what belongs to the user
    "gender": lambda c: c.of(c.user, ["f", "m", "x"]),
    "age_group": lambda c: c.of(c.user, ["18-24", "25-34", "35-44", "45-54", "55+"]),
    "birth_year": lambda c: 1950 + c.numbers(c.user, 55),
    "language": lambda c: c.of(c.user, ["en", "en", "en", "es", "zh"]),
    "phone_os": lambda c: c.of(c.user, ["ios", "android"]),
    "plan": lambda c: c.of(c.user, ["free", "free", "plus", "pro"]),
    "user_name": lambda c: c.texts("user_{:06x}", c.numbers(c.user, 1 << 24)),
    "email": lambda c: c.texts("{:08x}@example.org", c.numbers(c.user, 1 << 32)),
    "account_uuid": lambda c: [hashlib.md5(f"{c.seed}{u}".encode()).hexdigest() for u in c.user.tolist()],
    "signup_date": lambda c: c.stamps("%Y-%m-%d", (14_000 + c.numbers(c.user, 1000)) * DAY),
    "referral": lambda c: c.of(c.user, ["friend", "ad", "store", "press"]),
    "cohort": lambda c: c.numbers(c.user, 12),
    "user_checkins": lambda c: np.bincount(c.user)[c.user],
    "height_cm": lambda c: 150 + c.numbers(c.user, 50),
    "customer_number": lambda c: 10_000_000 + c.user * 37,
    "first_seen": lambda c: c.per_user(lambda rows: c.stamps("%Y-%m-%d", c.local[rows[:1]])[0]),
    "device_model": lambda c: c.texts("SM-{}", c.numbers(c.user, 40)),
    "marketing": lambda c: c.numbers(c.user, 2).astype(bool),
    "ab_group": lambda c: c.of(c.user, ["control", "variant"]),
    "screen_size": lambda c: c.of(c.user, [4.7, 5.1, 5.5, 6.1]),
    "credit_score": lambda c: 300 + c.numbers(c.user, 550),
    # what belongs to the user's own sequence
    "row_id": lambda c: np.arange(len(c)),
    "entry": lambda c: 100_000 + 10 * np.arange(len(c)),
    "checkin_count": lambda c: c.place(c.venue * 0),
    "session_number": lambda c: c.session(24),
    "session_6h": lambda c: c.texts("{}-{}", c.user, c.session(6)),
    "session_8h": lambda c: c.session(8),
    "session_key": lambda c: [hashlib.md5(f"{u}s{s}".encode()).hexdigest()[:12]
                              for u, s in zip(c.user.tolist(), c.session(12).tolist(), strict=True)],
    "position_in_session": lambda c: c.place(c.session(24)),
    "position_in_day": lambda c: c.place(c.day),
    "session_start": lambda c: (c.place(c.session(24)) == 1).astype(int),
    "seconds_since_last": lambda c: np.nan_to_num(c.gap, nan=-1).astype(int),
    "minutes_since_last": lambda c: [None if g != g else round(g / 60) for g in c.gap.tolist()],
    "hours_since_last": lambda c: [None if g != g else round(g / 3600, 2) for g in c.gap.tolist()],
    "wait": lambda c: ["" if g != g else f"{int(g // 3600)}h {int(g % 3600 // 60)}m" for g in c.gap.tolist()],
    "user_day": lambda c: c.texts("{}_{}", c.user, c.day),
    # what nobody's visits decide
    "battery": lambda c: _battery(c),
    "battery_1": lambda c: _battery(c, 1),
    "signal_bars": lambda c: c.some(5),
    "network": lambda c: np.where(c.draw.random(len(c)) < 0.2 + 0.02 * c.hour, "wifi", "4g"),
    "app_version": lambda c: c.texts("5.{}", _upgrade(c, 12)),
    "os_version": lambda c: 8 + _upgrade(c, 4),
    "gps_accuracy": lambda c: 5 + c.some(46),
    "experiment": lambda c: c.some(["a", "b", "c"]),
    "upload_batch": lambda c: np.argsort(np.argsort(c.table.time, kind="stable"), kind="stable") // 500,
    "shard": lambda c: c.some(32),
    "sync_delay_s": lambda c: np.minimum(99, np.round(np.exp(c.normal(1.5, 0.8)))).astype(int),
    "has_photo": lambda c: c.draw.random(len(c)) < 0.15,
    "survey": lambda c: c.missing(c.some([1, 2, 3, 4, 5]), 0.9),
    "orientation": lambda c: c.some(["portrait", "landscape"], [0.9, 0.1]),
    "charging": lambda c: (c.draw.random(len(c)) < np.where(c.hour < 7, 0.7, 0.15)).astype(int),
    "dark_mode": lambda c: (c.hour >= 19) ^ (c.draw.random(len(c)) < 0.1),
    "volume": lambda c: c.some(16),
    "steps_today": lambda c: np.round(c.numbers(c.user * 7 % 997 + c.day - c.day.min(), 200) * 100.0).astype(int),
    "uuid": lambda c: c.hexes(16),
    "free_text": lambda c: c.sentences(),
    "amount": lambda c: np.round(np.exp(c.normal(2.5, 0.8)), 2),
}  # fmt: skip
BY_POLICY = ("uuid", "free_text", "amount")  # refused, because nothing shows that they are harmless

FILES = {"NYC": "dataset_TSMC2014_NYC.txt.xz", "California": "gowalla_california.csv.xz"}


@dataclass(frozen=True)
class _WithColumns:
    """The columns of a file and some more."""

    rows: Columns
    more: dict[str, pl.Series]

    @property
    def columns(self) -> list[str]:
        return [*self.rows.columns, *self.more]

    def get_column(self, name: str) -> pl.Series:
        return self.more[name] if name in self.more else self.rows.get_column(name)


def outcome(tests: Tests, name: str) -> str:
    """Return what `protect` does with a column: "refused", "refused by policy", "changes with the venue" or "kept"."""
    if tests.kind(name) == "change":
        return "changes with the venue"
    found = tests.finding(name, tests.sample([]))
    return "kept" if found is None else "refused" if found.share else "refused by policy"


def _most_common(key: Longs, venue: Longs, size: int) -> Longs:
    """Return the most common venue of each key, (size,); 0 for a key that does not occur."""
    pair, count = np.unique(key << 32 | venue, return_counts=True)
    order = np.argsort(count, kind="stable")
    out = np.zeros(size, np.int64)
    out[pair[order] >> 32] = pair[order] & 0xFFFFFFFF  # the last assignment, the largest count, wins
    return out


def recovered(city: City, column: pl.Series) -> tuple[float, float]:
    """Return the share of venues that an adversary names who knows the area of 48 venues, without and with a column.

    She learns the most common venue of each area and value from half of the rows, and predicts the other half.
    """
    area, code = areas(city.table.venues, AREA)[city.venue].astype(np.int64), value_codes(column)
    learn = np.random.default_rng(0).random(len(city)) < 0.5
    found = []
    for key in (area, area << 32 | code):
        number = np.unique(key, return_inverse=True)[1]
        found.append(_most_common(number[learn], city.venue[learn], int(number.max()) + 1)[number[~learn]])
    answer = np.where(found[1] > 0, found[1], found[0])
    return tuple(float((one == city.table.venue[~learn]).mean()) for one in (found[0], answer))  # type: ignore[return-value]


def read_city(path: Path, rows: int) -> CheckinFile:
    """Read the rows of random users of a city, up to this number."""
    file = formats.read(path)
    size, users = np.bincount(file.table.user), np.random.default_rng(0).permutation(len(file.table.user_ids))
    chosen = np.isin(file.table.user, users[np.cumsum(size[users]) <= rows])
    return file_of_rows(file.source, file.all_rows.take(np.flatnonzero(chosen)), file.format, file.mapping)


def columns(folder: Path, rows: int, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Test every column on each city, alone; return the outcomes, and what the kept leaky ones give away."""
    found: dict[str, Any] = {}
    for name, file_name in FILES.items():
        file = read_city(folder / file_name, rows)
        city = City(file.table, seed)
        families = {"leaky": LEAKY, "harmless": HARMLESS}
        made = {
            family: {column: pl.Series(column, make(city), strict=False) for column, make in makers.items()}
            for family, makers in families.items()
        }
        every = made["leaky"] | made["harmless"]
        tests = Tests(file.table, _WithColumns(file.rows, every), file.mapping)
        outcomes = {}
        for number, column in enumerate(every, 1):
            outcomes[column] = outcome(tests, column)
            tell(f"{name}: {number} of {len(every)} columns, {column} is {outcomes[column]}")
        accepted = [column for column in LEAKY if outcomes[column] == "kept"]
        found[name] = {
            "rows": len(file.table), "users": len(file.table.user_ids),
            **{family: dict(Counter(outcomes[column] for column in makers)) for family, makers in families.items()},
            "accepted": {column: recovered(city, every[column]) for column in accepted},
            "refused_harmless": [c for c in HARMLESS if "refused" in outcomes[c] and c not in BY_POLICY],
        }  # fmt: skip
    return found
