"""Synthetic worlds of a given number of rows, for `bench scale`: one city per 100,000 rows."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from ghostpoi.bench.measured import ghostpoi, measured

ROWS_PER_CITY = 100_000
ROWS_PER_USER = 70.4  # check-ins of a synthetic user in DAYS days
DAYS = 120
ROWS_PER_VENUE = 9  # as in TIST2015: 33 million check-ins at 3.7 million venues
CITY = "city"  # the column that names it


class Shape(NamedTuple):
    """The size of a world; users and venues are means per city."""

    cities: int
    users: int
    pois: int


def shape_of(rows: int) -> Shape:
    """Return the shape of a world of about so many rows."""
    cities = max(1, round(rows / ROWS_PER_CITY))
    return Shape(cities, max(1, round(rows / cities / ROWS_PER_USER)), max(2, round(rows / cities / ROWS_PER_VENUE)))


def world_of(rows: int, folder: Path) -> Path:
    """Return a world of about so many rows in the folder. It is made if it is not there."""
    place = folder / f"rows-{rows}"
    if not place.is_dir():  # it gets its name when it is complete
        cities, users, pois = shape_of(rows)
        size = ("--cities", cities, "--users", users, "--pois", pois, "--days", DAYS)
        measured(ghostpoi("synth", "-o", place, *size))
    return place


def rows_of_cities(world: Path) -> dict[str, int]:
    """Return the rows of each city, the smallest city first."""
    counted = pl.scan_parquet(world).group_by(CITY).len().sort("len", CITY).collect(engine="streaming")
    return dict(counted.iter_rows())


def sample_of(rows: dict[str, int], count: int) -> list[str]:
    """Choose cities at equal steps through the list, which begins with the smallest."""
    names, count = list(rows), min(count, len(rows))
    return [names[part * len(names) // count] for part in range(count)]


def write_cities(world: Path, cities: list[str], path: Path) -> int:
    """Write the rows of some cities to one file; return how many they are."""
    some = pl.scan_parquet(world).filter(pl.col(CITY).is_in(cities)).collect(engine="streaming")
    some.write_parquet(path)
    return some.height
