"""Leaky columns of usual exports, made for a city: each follows the clean venue, or what the user does."""

import hashlib
import json
from typing import Any

import numpy as np

from benchmarks.city import WORDS, City, Make
from ghostpoi.data.checkins import Longs


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
    "activity": lambda c: c.of(c.category, ["sit", "walk", "run", "eat", "stand"]),
    "dwell_minutes": lambda c: np.round(np.exp(c.normal(2 + c.numbers(c.category, 30) / 8, 0.15))).astype(int),
    "stars": lambda c: np.clip(np.round(c.normal(1.0 + c.numbers(c.category, 5), 0.4)), 1, 5).astype(int),
    "dress_code": lambda c: c.missing(c.of(c.category, ["casual", "sport", "formal"]), 0.3),
    "icon": lambda c: c.noisy(c.numbers(c.category, 12), 0.1),
    "heart_rate": lambda c: np.round(c.normal(60.0 + 4 * c.numbers(c.category, 18), 3)).astype(int),
    "app_opened": lambda c: c.noisy(c.of(c.category, ["maps", "camera", "bank", "fitness", "chat", "music"]), 0.2),
    "voice_keyword": lambda c: c.missing(_letters(c.numbers(c.category, 30)), 0.6),
    "screen_brightness": lambda c: np.clip(c.normal(10.0 * c.numbers(c.category, 10), 4), 0, 100).round(),
    "scene": lambda c: c.noisy(_letters(c.numbers(c.category, 16)), 0.25),
    "meal": lambda c: np.where(c.numbers(c.category, 3) == 0, c.some(["breakfast", "lunch", "dinner"]), "none"),
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
    "ticket": lambda c: c.texts("{:02d}", (_place(c, c.venue) + c.numbers(c.venue, 100)) % 100),
    "barcode": lambda c: c.texts("{:04d}{:04d}", c.numbers(c.venue, 10_000), c.some(10_000)),
    # what the venue decides together with something else
    "check_digits": lambda c: (c.numbers(c.venue, 10_000) + np.arange(len(c))) % 97,
    "meter": lambda c: (c.numbers(c.venue, 10_000) + c.local // 60) % 60,
    "stamp_sum": lambda c: (c.numbers(c.venue, 10_000) + c.related.place_of_row) % 40,
    "day_code": lambda c: (c.numbers(c.venue, 10_000) + [int(day) for day in c.stamps("%d")]) % 31,
    "code_of_line_above": lambda c: c.numbers(np.append(0, c.venue[:-1]), 40),
    "even_level": lambda c: 2 * c.some(50) + c.numbers(c.venue, 2),
    "happy_hour": lambda c: c.numbers(c.venue * 24 + c.hour, 2),
    "photos": lambda c: c.draw.geometric(1 / (1 + c.numbers(c.category, 31) / 10)) - 1,
    "queue_number": lambda c: _place(c, c.venue << 32 | c.day),
    "others_here": lambda c: _others(c, 3),
    "lucky_draw": lambda c: c.numbers(c.venue, 2) ^ c.numbers(c.user, 2),
    # what is the same in all rows of a user
    "home_zone": lambda c: c.zone(1.0, c.usual),
    "visited_filter": lambda c: c.per_user(c.bloom),
    "visit_vector": lambda c: c.per_user(
        lambda rows: " ".join(map(str, np.bincount(c.category[rows] % 40, minlength=40)))),
    "radius_km": lambda c: c.per_user(c.radius),
    "number_of_venues": lambda c: c.per_user(lambda rows: len(np.unique(c.venue[rows]))),
    "favourite_kind": lambda c: _letters(c.numbers(c.kind(c.usual), 25)),
}  # fmt: skip


def _place(c: City, group: Longs) -> Longs:
    """The number of each row, from 0, among those of its group in the order of time."""
    order = c.related.by_time[np.argsort(group[c.related.by_time], kind="stable")]
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    out = np.empty(len(c), np.int64)
    out[order] = np.arange(len(c)) - np.repeat(first, np.diff(np.append(first, len(c))))
    return out


def _others(c: City, hours: int) -> Longs:
    """The number of check-ins at the venue in the last hours."""
    time = c.table.time - c.table.time.min()
    key = np.sort(c.venue << 40 | time)
    since = np.maximum(time - hours * 3600, 0)
    return np.searchsorted(key, c.venue << 40 | time) - np.searchsorted(key, c.venue << 40 | since)
