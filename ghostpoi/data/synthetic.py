"""A synthetic city: people with homes, jobs and habits who check in at clustered venues.

Everything is local: people visit places near home or work, and the area of the city grows with its venues. A large city
is therefore a small one with more districts, and measurements on a small city carry over.
"""

import tomllib
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.errors import InputError
from ghostpoi.options import option

DAY_S = 86_400
DAY_STARTS_H = 4  # local hour at which a simulated day starts, so that a night out stays within its day
START = 1_333_440_000  # 2012-04-03 08:00 UTC, a Tuesday, 4 a.m. in New York
KM_PER_DEGREE = 111.195

DENSITY = 40.0  # venues per square kilometre
VENUES_PER_DISTRICT = 50
MAX_DISTRICTS = 1500  # limits the table of distances between districts; a larger city has larger districts
USERS_PER_DISTRICT = 20  # minimum, so that most venues have regular visitors
SHARED_ADDRESS = 0.15  # share of venues at the address of another, as in malls and towers

TABLES = tomllib.loads(Path(__file__).with_name("synthetic.toml").read_text("utf-8"))
CATEGORIES: dict[str, dict[str, float]] = TABLES["categories"]
PURPOSES = list(CATEGORIES)


class Slot(NamedTuple):
    """One possible visit of a person's day."""

    purpose: str
    near: str  # "home" or "work"
    weekday_h: float  # local time
    weekend_h: float
    weekday: float  # probability
    weekend: float
    loyalty: float  # probability of a habitual place; otherwise the person explores
    reach_km: float  # typical distance of an explored place


SLOTS = [Slot(*row) for row in TABLES["slots"]]
SPELL_DAYS = 5  # people check in for spells of this many days
COMMUTE_KM = 3.0
HABIT_KM = 0.6
FAVOURITE = 0.75  # share of habitual visits that go to the first of two places
FOLLOW_UP = 0.25  # probability that a visit to a place next door follows


class Place(NamedTuple):
    """The centre of a city and its time zone."""

    lat: float
    lon: float
    tz_offset_min: int

    @property
    def start(self) -> int:
        """UTC second at which the first simulated day starts, at the same local time everywhere."""
        return START + (NEW_YORK.tz_offset_min - self.tz_offset_min) * 60


NEW_YORK = Place(40.7306, -73.9866, -240)


@dataclass(frozen=True)
class City:
    """Check-ins sorted by time, and the venues."""

    user: Ints  # (N,) codes from 0
    poi: Ints  # (N,) codes from 0
    time: Longs  # (N,) UTC seconds
    poi_lat: Floats  # (pois,)
    poi_lon: Floats  # (pois,)
    poi_category: Ints  # (pois,)
    category_name: list[str]
    tz_offset_min: int


def check_size(users: int, pois: int, days: int, seed: int, density: float) -> None:
    """Refuse a city that cannot be made."""
    for flag, value, low in (("users", users, 1), ("pois", pois, 1), ("days", days, 1), ("seed", seed, 0)):
        if value < low:
            raise InputError(f"--{flag} must be at least {low}, not {value}")
    if not density > 0:
        raise InputError(f"{option('density')} must be above 0, not {density:g}")


def make_city(users: int, pois: int, days: int, seed: int, density: float = DENSITY, place: Place = NEW_YORK) -> City:
    """Make a city. The same arguments give the same arrays."""
    check_size(users, pois, days, seed, density)
    rng = np.random.default_rng(seed)
    venues = _Venues(pois, density, rng)
    user, poi, since_start = _simulate(venues, users, days, rng)
    order = np.argsort(since_start, kind="stable")
    lat = np.round(place.lat + venues.y / KM_PER_DEGREE, 6)
    lon = np.round(place.lon + venues.x / (KM_PER_DEGREE * np.cos(np.radians(place.lat))), 6)
    names = [name for group in CATEGORIES.values() for name in group]
    time = place.start + since_start[order]
    return City(user[order], poi[order], time, lat, lon, venues.category, names, place.tz_offset_min)


def hex_ids(kind: str, count: int) -> list[str]:
    """Return ids that look like Foursquare's and reveal nothing, such as the order of venues."""
    return [blake2b(f"{kind} {code}".encode(), digest_size=12).hexdigest() for code in range(count)]


def _draw_columns(weight: Floats, row: Longs, rng: np.random.Generator) -> Longs:
    """For every entry of `row`, draw a column, with probabilities from that row of `weight` (R, C)."""
    cumulative = np.cumsum(weight, axis=1)
    cumulative /= cumulative[:, -1:]
    cumulative += np.arange(len(weight))[:, None]  # one ascending array, so that one search covers all rows
    found = np.searchsorted(cumulative.ravel(), row + rng.random(len(row)), side="right")
    return np.minimum(found - row * weight.shape[1], weight.shape[1] - 1)  # rounding may reach the next row


class _Venues:
    """The venues of a city, and draws of venues by purpose, popularity and distance."""

    def __init__(self, pois: int, density: float, rng: np.random.Generator) -> None:
        districts = min(max(pois // VENUES_PER_DISTRICT, 1), MAX_DISTRICTS)
        angle = rng.uniform(0, 2 * np.pi, districts)
        radius = np.sqrt(pois / density / np.pi) * rng.random(districts) ** 0.6  # 0.5 would be uniform
        self.centre = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)  # (D, 2) km
        size = rng.lognormal(0, 0.6, districts)
        self.district = _draw_columns(size[None, :], np.zeros(pois, np.int64), rng)  # (pois,)

        # All districts have the same density. Some venues share an address.
        spread = np.sqrt(np.bincount(self.district, minlength=districts) / (2 * np.pi * 2 * density))
        place = self.centre[self.district] + rng.normal(size=(pois, 2)) * spread[self.district, None]
        order = np.argsort(self.district, kind="stable")
        neighbour = np.arange(pois)
        neighbour[order[1:]] = order[:-1]
        shares = (rng.random(pois) < SHARED_ADDRESS) & (self.district[neighbour] == self.district)
        place[shares] = place[neighbour[shares]]
        self.x, self.y = place.T

        # Districts differ: offices cluster in some, bars in others.
        purpose_of = np.repeat(np.arange(len(PURPOSES)), [len(group) for group in CATEGORIES.values()])
        share = np.array([value for group in CATEGORIES.values() for value in group.values()])
        mix = rng.lognormal(0, 0.5, (districts, len(PURPOSES)))
        self.category = _draw_columns(share * mix[:, purpose_of], self.district, rng).astype(np.int32)
        popularity = 1 / (rng.random(pois) + 0.015)  # Zipf's law, the same in a part of the city as in the whole

        # Venues sorted by purpose and district, so that those of one purpose in one district are a slice.
        purpose = purpose_of[self.category]
        self._sorted = np.lexsort((self.district, purpose)).astype(np.int32)
        self._popularity_sum = np.concatenate([[0.0], np.cumsum(popularity[self._sorted])])
        group, groups = (purpose * districts + self.district)[self._sorted], np.arange(len(PURPOSES) * districts)
        self._begin = np.searchsorted(group, groups).reshape(len(PURPOSES), districts)
        self._end = np.searchsorted(group, groups, side="right").reshape(len(PURPOSES), districts)
        self._present = np.unique(purpose)

    def draw(self, purpose: str, near: Longs, reach_km: float, rng: np.random.Generator) -> Ints:
        """For every district in `near`, draw a venue for the purpose by popularity and distance."""
        kind = PURPOSES.index(purpose)
        if kind not in self._present:  # a small city may lack venues for a purpose
            kind = int(self._present[0])
        begin, end, total = self._begin[kind], self._end[kind], self._popularity_sum
        km = np.hypot(*(self.centre[:, None, k] - self.centre[None, :, k] for k in range(2)))  # (D, D)
        km = np.minimum(km, 600 * reach_km)  # otherwise all weights of a row might underflow to zero
        there = _draw_columns((total[end] - total[begin]) * np.exp(-km / reach_km), near, rng)
        low, high = begin[there], end[there]
        target = total[low] + rng.random(len(near)) * (total[high] - total[low])
        found = np.searchsorted(total, target, side="right") - 1
        return self._sorted[np.clip(found, low, high - 1)]


def _simulate(venues: _Venues, users: int, days: int, rng: np.random.Generator) -> tuple[Ints, Ints, Longs]:
    """Draw the check-ins of all users, slot by slot: user, venue, seconds since the first day started."""
    home, work = _homes_and_workplaces(venues, users, rng)
    anchor = {"home": venues.district[home], "work": venues.district[work]}
    next_door = _places_next_door(venues, rng)

    # People differ in how often they check in, and they do so in spells of days. That makes gaps of over 24 hours.
    activity = np.minimum(0.4 * rng.lognormal(0, 0.8, users), 1.0)
    spell = rng.random((users, -(-days // SPELL_DAYS)), np.float32) < 0.5
    active = rng.random((users, days), np.float32) < activity[:, None]
    active &= np.repeat(spell, SPELL_DAYS, axis=1)[:, :days]
    who, day = np.nonzero(active)
    recorded = rng.beta(5, 4, users)[who]  # share of visits that become check-ins
    shift_h = rng.normal(0, 0.7, users)[who]  # early and late risers; jitter per visit is smaller
    weekend = np.isin((day + 1) % 7, (5, 6))  # day 0 is a Tuesday

    habits: dict[tuple[str, str], list[Ints]] = {("home", "home"): [home, home], ("work", "work"): [work, work]}
    visits: list[tuple[Longs, Ints, Floats]] = []
    for slot in SLOTS:
        if (slot.purpose, slot.near) not in habits:
            places = [venues.draw(slot.purpose, anchor[slot.near], HABIT_KM, rng) for _ in range(2)]
            habits[slot.purpose, slot.near] = places
        first, second = habits[slot.purpose, slot.near]
        visit = np.flatnonzero(rng.random(len(who)) < np.where(weekend, slot.weekend, slot.weekday) * recorded)
        user = who[visit]
        poi = np.where(rng.random(len(visit)) < FAVOURITE, first[user], second[user])
        explores = rng.random(len(visit)) > slot.loyalty
        if slot.loyalty < 1:
            poi[explores] = venues.draw(slot.purpose, anchor[slot.near][user[explores]], slot.reach_km, rng)
        hour = np.where(weekend[visit], slot.weekend_h, slot.weekday_h) + shift_h[visit]
        visits.append((visit, poi, hour + rng.normal(0, 0.3, len(visit))))
    visit, poi, hour = (np.concatenate(column) for column in zip(*visits, strict=True))

    follows = np.flatnonzero((rng.random(len(visit)) < FOLLOW_UP) & (next_door[poi] != poi))
    later = hour[follows] + rng.uniform(0.1, 0.6, len(follows))
    visit, poi = np.append(visit, visit[follows]), np.append(poi, next_door[poi[follows]])
    second_of_day = (np.append(hour, later) - DAY_STARTS_H) * 3600
    since_start = day[visit] * DAY_S + np.clip(second_of_day, 0, DAY_S - 1).astype(np.int64)
    return who[visit].astype(np.int32), poi, since_start


def _homes_and_workplaces(venues: _Venues, users: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw a home and a workplace for every user. Few users live in the central districts, so they share venues."""
    inhabited = np.argsort(np.hypot(*venues.centre.T))[: -(-users // USERS_PER_DISTRICT)]
    size: Floats = np.bincount(venues.district, minlength=len(venues.centre))[inhabited] + np.float64(1)
    district = inhabited[_draw_columns(size[None, :], np.zeros(users, np.int64), rng)]
    home = venues.draw("home", district, HABIT_KM, rng)
    return home, venues.draw("work", venues.district[home], COMMUTE_KM, rng)


def _places_next_door(venues: _Venues, rng: np.random.Generator) -> Ints:
    """Draw for each venue the place that people visit after it, e.g. the coffee stand of a station."""
    found = np.zeros(len(venues.district), np.int32)
    kind = rng.integers(3, size=len(found))
    for k, purpose in enumerate(("coffee", "food", "shop")):
        found[kind == k] = venues.draw(purpose, venues.district[kind == k], HABIT_KM / 2, rng)
    return found
