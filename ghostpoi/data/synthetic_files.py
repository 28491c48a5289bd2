"""Synthetic worlds, and the files of synthetic cities and worlds: TSMC2014 (.txt) or tables, whole or in parts.

A world has cities far apart, of different sizes, and people who travel between them. The plan of the world, with all
trips, is small and made first. Cities are then made one at a time: the residents without their days away, and the
visitors from other cities during their stay.
"""

import gzip
import io
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import zstandard
from scipy.spatial import KDTree
from scipy.special import ndtri

from ghostpoi.data import synthetic as synth
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import chord, haversine_km, unit_sphere
from ghostpoi.errors import InputError
from ghostpoi.files import extension, new_folder, replacing
from ghostpoi.options import option
from ghostpoi.progress import Report, no_report
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
        centres = unit_sphere(*np.array([place[:2] for place in self.places]).T)
        apart = KDTree(centres).query(centres, k=2)[0][:, 1].min()  # by straight line, infinite for one city
        if reach > MAX_REACH_KM or apart < chord(APART_KM + 2 * reach):
            raise InputError(
                f"{self.cities:,} cities of up to {self.city_pois.max():,} venues cannot all be placed {APART_KM:g} km "
                f"apart; lower {option('cities')} or {option('pois')}, or raise {option('density')}"
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
        return np.cumsum(self.city_users) - self.city_users

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
        return np.maximum(np.round(mean * size / size.mean()), 1).astype(np.int64)[order]

    def _trips_from(self, home: int) -> tuple[Longs, Longs, Longs, Longs, Longs]:
        """Draw user, home, destination, first day and length of stay for the travellers of a city."""
        rng, users = self._generator("trips", home), int(self.city_users[home])
        count = rng.binomial(users, self.travellers)
        user: Longs = self.first_user[home] + rng.choice(users, count, replace=False)
        attraction: Floats = np.where(np.arange(self.cities) == home, 0, self.city_users).astype(np.float64)
        away = rng.choice(self.cities, count, p=attraction / attraction.sum())
        stay = rng.integers(*STAY_DAYS, count, endpoint=True)
        return user, np.full(count, home), away, rng.integers(self.days, size=count), stay

    def _generator(self, *stage: object) -> np.random.Generator:
        return Seed(self.seed).generator("world", *stage)


TSMC2014 = (
    "user", "venue_id", "category_id", "category", "latitude", "longitude", "timezone_offset", "utc_time",
)  # fmt: skip
COMPRESS = {
    ".gz": lambda data: gzip.compress(data, 6, mtime=0),
    ".xz": lambda data: lzma.compress(data, preset=2),
    ".zst": lambda data: zstandard.ZstdCompressor(level=6).compress(data),
}


def write_city(path: Path, users: int, pois: int, days: int, seed: int, density: float = synth.DENSITY) -> int:
    """Make a city, write it to a file and return the number of check-ins."""
    kind = extension(path).lower()
    if kind not in (".txt", ".csv", ".tsv", ".parquet"):
        raise InputError(
            f"{option('output', path)}: unknown file type; end the name in .txt (TSMC2014), .csv, .tsv or .parquet"
        )
    if not path.parent.is_dir():
        raise InputError(f"{option('output', path)}: the folder {path.parent} does not exist; create it first")
    frame = city_frame(synth.make_city(users, pois, days, seed, density), seed)
    if frame.height == 0:
        raise InputError(
            f"a city of {users} users and {days} days has no check-ins; raise {option('users')} or {option('days')}"
        )
    data = _bytes(frame, kind)
    compress = COMPRESS.get(path.suffix.lower())
    try:
        with replacing(path) as out:
            out.write(compress(data) if compress else data)
    except OSError as e:
        raise InputError(
            f"{option('output', path)}: cannot be written ({e.strerror or e}); choose another folder"
        ) from None
    return frame.height


def city_frame(city: synth.City, seed: int) -> pl.DataFrame:
    """Return the check-ins of a city in the eight columns of TSMC2014."""
    return with_text_times(typed_frame(city, f"venue {seed}"))


def typed_frame(city: synth.City, venues: str) -> pl.DataFrame:
    """Return the same columns with typed times. The ids of the venues depend on the name `venues`."""

    def named(codes: Ints, names: list[str]) -> pl.Series:
        return pl.Series(names, dtype=pl.String).gather(codes)

    category = city.poi_category[city.poi]
    columns = (
        pl.Series(city.user + 1).cast(pl.String),
        named(city.poi, synth.hex_ids(venues, len(city.poi_lat))),
        named(category, synth.hex_ids("category", len(city.category_name))),  # the same in every city
        named(category, city.category_name),
        pl.Series(city.poi_lat[city.poi]),
        pl.Series(city.poi_lon[city.poi]),
        pl.Series(np.full(len(city.poi), city.tz_offset_min)),
        (pl.Series(city.time).cast(pl.Int64) * 1000).cast(pl.Datetime("ms", "UTC")),
    )
    return pl.DataFrame(dict(zip(TSMC2014, columns, strict=True)))


def with_text_times(frame: pl.DataFrame) -> pl.DataFrame:
    """Write the times as TSMC2014 does."""
    return frame.with_columns(pl.col("utc_time").dt.strftime("%a %b %d %H:%M:%S +0000 %Y"))


def _bytes(frame: pl.DataFrame, kind: str) -> bytes:
    out = io.BytesIO()
    if kind == ".parquet":
        frame.write_parquet(out)
        return out.getvalue()
    separator = "," if kind == ".csv" else "\t"
    text = frame.write_csv(include_header=kind != ".txt", separator=separator, quote_style="necessary")
    return text.encode("latin-1" if kind == ".txt" else "utf-8")


FORMATS = ("parquet", "csv")  # of parts
ROWS_PER_PART = 500_000
MAX_PARTS = 100_000  # names sort as numbers
FILES = (".txt", ".csv", ".tsv", ".parquet", ".gz", ".xz", ".zst")  # endings of -o without --cities


def write_world(
    folder: Path, world: World, rows_per_part: int = ROWS_PER_PART, format: str = "parquet", report: Report = no_report
) -> int:
    """Make a world, write it to a new folder and return the number of check-ins."""
    if format not in FORMATS:
        raise InputError(f"{option('format', format)}: use {' or '.join(FORMATS)}")
    if rows_per_part < 1:
        raise InputError(f"{option('rows_per_part')} must be at least 1, not {rows_per_part}")
    if folder.suffix.lower() in FILES:
        raise InputError(
            f"{option('output', folder)}: {option('cities')} writes a folder of parts; leave out {folder.suffix}"
        )
    rows = 0
    with new_folder(folder) as unfinished:
        for number, part in enumerate(cut(city_frames(world, report), rows_per_part)):
            if number == MAX_PARTS:
                raise InputError(f"the world has more than {MAX_PARTS:,} parts; raise {option('rows_per_part')}")
            content = _bytes(part if format == "parquet" else with_text_times(part), f".{format}")
            (unfinished / f"part-{number:05d}.{format}").write_bytes(content)
            rows += part.height
        if rows == 0:
            raise InputError(
                f"the world has no check-ins; raise {option('cities')}, {option('users')} or {option('days')}"
            )
    return rows


def city_frames(world: World, report: Report = no_report) -> Iterator[pl.DataFrame]:
    """Make the tables of the cities one after another: the columns of TSMC2014, and the city."""
    for number in range(world.cities):
        frame = typed_frame(world.city(number), f"venue {world.seed} {number}")
        yield frame.with_columns(city=pl.lit(f"city-{number:03d}"))
        del frame  # before the next city is made
        report("making cities", 1)


def cut(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Cut the table that the frames make up into parts of `rows` rows. It holds one part and one frame."""
    held = pl.DataFrame()
    for frame in frames:
        held = pl.concat([held, frame]) if held.height else frame
        del frame
        while held.height >= rows:
            yield held.slice(0, rows).rechunk()
            held = held.slice(rows)
    if held.height:
        yield held.rechunk()
