"""A synthetic world: cities far apart, of different sizes, and people who travel between them.

The plan of the world, with all trips, is small and made first. Cities are then made one at a time: the residents
without their days away, and the visitors from other cities during their stay.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree
from scipy.special import ndtri

from ghostpoi.data import synthetic as synth
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.geo import chord, haversine_km, unit_sphere
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.randomness import Seed

MAX_CITIES = 5000
APART_KM = 100.0  # least distance between venues of two cities
MAX_LAT, MAX_LON = 60.0, 175.0  # of a centre; no city reaches the date line
MAX_REACH_KM = 250.0  # fits between MAX_LON and the date line at MAX_LAT
REACH = 4.25  # venues lie within this many radii of a city's centre: one radius, and 6.5 deviations of half a radius
SIZE_SPREAD = 0.8  # deviation of the logarithms of city sizes: the largest of 415 is 8 times the mean
GOLDEN = (5**0.5 - 1) / 2

TRAVELLERS = 0.02  # share of all people
STAY_DAYS = (2, 10)  # shortest and longest stay in another city
FLIGHT_KMH, AIRPORT_S = 800.0, 3 * 3600


@dataclass(frozen=True)
class Trips:
    """One entry per traveller, sorted by home city. Times are UTC seconds."""

    user: Longs  # number in the world
    home: Longs
    away: Longs
    leave: Longs  # last moment at home
    arrive: Longs
    depart: Longs
    back: Longs  # first moment at home again


@dataclass(frozen=True)
class World:
    """The plan of a world. Sizes of cities vary; `users` and `pois` are means per city."""

    cities: int
    users: int
    pois: int
    days: int
    seed: int
    density: float = synth.DENSITY
    travellers: float = TRAVELLERS

    def __post_init__(self) -> None:
        synth.check_size(self.users, self.pois, self.days, self.seed, self.density)
        if not 1 <= self.cities <= MAX_CITIES:
            raise InputError(f"{option('cities')} must be from 1 to {MAX_CITIES:,}, not {self.cities:,}")
        if not 0 <= self.travellers <= 1:
            raise InputError(f"{option('travellers')} must be a share from 0 to 1, not {self.travellers:g}")
        reach = REACH * float(np.sqrt(self.city_pois.max() / self.density / np.pi))
        if reach > MAX_REACH_KM or self._nearest_chord() < chord(APART_KM + 2 * reach):
            raise InputError(
                f"{self.cities:,} cities of up to {self.city_pois.max():,} venues cannot lie {APART_KM:g} km apart; "
                f"lower {option('cities')} or {option('pois')}, or raise {option('density')}"
            )

    @cached_property
    def places(self) -> list[synth.Place]:
        """Centres spread evenly over the globe by the golden ratio, in the time zones of their longitudes."""
        number = np.arange(self.cities)
        turn = (number * GOLDEN + self._generator("centres").random()) % 1
        lat = np.degrees(np.arcsin(np.sin(np.radians(MAX_LAT)) * (1 - (2 * number + 1) / self.cities)))
        lon = MAX_LON * (2 * turn - 1)
        return [synth.Place(*at, round(at[1] / 15) * 60) for at in zip(lat.tolist(), lon.tolist(), strict=True)]

    @cached_property
    def city_users(self) -> Longs:
        """Residents of each city."""
        return self._sizes(self.users)

    @cached_property
    def city_pois(self) -> Longs:
        """Venues of each city."""
        return self._sizes(self.pois)

    @cached_property
    def first_user(self) -> Longs:
        """Number in the world of each city's first resident."""
        first: Longs = np.cumsum(self.city_users) - self.city_users
        return first

    @cached_property
    def trips(self) -> Trips:
        """Every traveller makes one trip. Large cities attract more visitors."""
        if self.cities == 1:
            return Trips(*(np.empty(0, np.int64) for _ in range(7)))
        drawn = [self._trips_from(home) for home in range(self.cities)]
        user, home, away, day, stay = (np.concatenate(column) for column in zip(*drawn, strict=True))
        lat, lon = (np.array([place[k] for place in self.places]) for k in range(2))
        km = haversine_km(lat[home], lon[home], lat[away], lon[away])
        travel = AIRPORT_S + np.ceil(km / FLIGHT_KMH * 3600).astype(np.int64)
        arrive = np.array([place.start for place in self.places])[away] + day * synth.DAY_S
        depart = arrive + stay * synth.DAY_S
        return Trips(user, home, away, arrive - travel, arrive, depart, depart + travel)

    def city(self, number: int) -> synth.City:
        """Make one city. Its users carry their numbers in the world."""
        trips, residents = self.trips, int(self.city_users[number])
        visits, away = np.flatnonzero(trips.away == number), np.flatnonzero(trips.home == number)
        people = residents + len(visits)
        city = synth.make_city(
            people, int(self.city_pois[number]), self.days, Seed(self.seed).derive("city", number), self.density,
            self.places[number],
        )  # fmt: skip

        # From `begin` to `end`, a resident is absent and a visitor is present.
        person, begin, end = self.first_user[number] + np.arange(people), *np.zeros((2, people), np.int64)
        travels = trips.user[away] - self.first_user[number]
        begin[travels], end[travels] = trips.leave[away], trips.back[away]
        person[residents:] = trips.user[visits]
        begin[residents:], end[residents:] = trips.arrive[visits], trips.depart[visits]
        during = (city.time >= begin[city.user]) & (city.time < end[city.user])
        kept = during == (city.user >= residents)
        user = person[city.user[kept]].astype(np.int32)
        return replace(city, user=user, poi=city.poi[kept], time=city.time[kept])

    def _sizes(self, mean: int) -> Longs:
        """A lognormal distribution of sizes with this mean, in an order that the seed decides."""
        size = np.exp(SIZE_SPREAD * ndtri((np.arange(self.cities) + 0.5) / self.cities))
        order = self._generator("sizes").permutation(self.cities)
        found: Longs = np.maximum(np.round(mean * size / size.mean()), 1).astype(np.int64)[order]
        return found

    def _trips_from(self, home: int) -> tuple[Longs, Longs, Longs, Longs, Longs]:
        """Draw user, home, destination, first day and length of stay for the travellers of a city."""
        rng, users = self._generator("trips", home), int(self.city_users[home])
        count = rng.binomial(users, self.travellers)
        user: Longs = self.first_user[home] + rng.choice(users, count, replace=False)
        attraction: Floats = np.where(np.arange(self.cities) == home, 0, self.city_users).astype(np.float64)
        away = rng.choice(self.cities, count, p=attraction / attraction.sum())
        stay = rng.integers(*STAY_DAYS, count, endpoint=True)
        return user, np.full(count, home), away, rng.integers(self.days, size=count), stay

    def _nearest_chord(self) -> float:
        """The straight-line distance on the unit sphere between the two nearest centres."""
        at = np.array([place[:2] for place in self.places])
        distance, _ = KDTree(unit_sphere(*at.T)).query(unit_sphere(*at.T), k=2)
        return float(distance[:, 1].min())

    def _generator(self, *stage: object) -> np.random.Generator:
        return Seed(self.seed).generator("world", *stage)
