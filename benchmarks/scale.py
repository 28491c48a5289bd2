"""How time and memory grow with the rows: `protect` and `verify` region by region, compared with polars alone.

The worlds are synthetic, with one city per 100,000 rows.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl

from benchmarks.measured import Cost, ghostpoi, measured
from ghostpoi import __version__
from ghostpoi.plugins import need

ROWS_PER_CITY = 100_000
ROWS_PER_USER = 70.4  # check-ins of a synthetic user in DAYS days
DAYS = 120
ROWS_PER_VENUE = 9  # as in TIST2015: 33 million check-ins at 3.7 million venues
CITY = "city"  # the column that names it

SIZES = (300_000, 1_000_000)
MILLION = 1_000_000  # time per row is compared with that at this size
MEMORY = "4GB"
POLARS = "import sys, polars as pl; pl.scan_parquet(sys.argv[1]).sort('user', 'utc_time').sink_parquet(sys.argv[2])"
Say = Callable[[str], None]


def scale(sizes: Sequence[int], workers: int, ghost: int, folder: Path | None, say: Say) -> dict[str, Any]:
    """Measure worlds of these sizes, and GHOST on `ghost` cities of the largest. Worlds in `folder` are kept.

    `ratio` is the time of `protect` over that of polars, which reads, sorts and writes the same rows, at the largest
    size. `growth` is the time per row there over that at the size nearest to 1 million.
    """
    if ghost:
        need("models")
    load = os.getloadavg()[0]
    engine = ["--engine", "dask", "--workers", str(workers)]
    if find_spec("distributed") is None:
        say("Dask is not installed: one process does all the work")
        engine, workers = ["--engine", "local"], 1
    engine += ["--memory", MEMORY]
    sizes = sorted(set(sizes))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as place:
        worlds = folder or Path(place)
        found = [_measure(rows, worlds, Path(place), engine, workers, say) for rows in sizes]
        sampled = _ghost(world_of(sizes[-1], worlds), Path(place), ghost, say) if ghost else None
    return {
        **summary(found), "sizes": found, "ghost": sampled and extrapolated(sampled, found),
        "rows_per_city": ROWS_PER_CITY, "engine": engine[1], "workers": workers, "memory": MEMORY,
        "peak_is": "all processes" if found[0]["protect"]["main_bytes"] is not None else "the largest process",
        "cores": os.cpu_count(), "load_before": load, "version": __version__,
    }  # fmt: skip


def _measure(rows: int, worlds: Path, place: Path, engine: list[str], workers: int, say: Say) -> dict[str, Any]:
    """Measure one size: polars, `protect`, `verify`."""
    say(f"{rows:,} rows: making the world, unless it is there")
    world = world_of(rows, worlds)
    say(f"{rows:,} rows: polars alone")
    # Polars gets as many cores as `protect`.
    sort = [sys.executable, "-c", POLARS, str(world), str(place / "sorted.parquet")]
    polars = measured(sort, {"POLARS_MAX_THREADS": str(workers)})
    (place / "sorted.parquet").unlink()
    say(f"{rows:,} rows: protect")
    out = place / "out"
    out.mkdir()
    release = out / "release"
    protect = measured(ghostpoi("protect", world, "-o", release, *engine), folder=out)
    say(f"{rows:,} rows: verify")
    verify = measured(ghostpoi("verify", release, "--against", world, *engine), folder=out)
    manifest = json.loads((release / "manifest.json").read_text("utf-8"))
    shutil.rmtree(out)
    size = sum(path.stat().st_size for path in world.iterdir())
    regions = manifest.get("regions", {"count": 1})["count"]
    found = figures(int(manifest["data"]["rows"]), regions, size, polars, protect, verify)
    costs = (f"{name} {found[name]['seconds']:,.1f} s" for name in ("polars", "protect", "verify"))
    say(f"{rows:,} rows: {', '.join(costs)}, at most {protect.peak_bytes / 1e9:.2f} GB")
    return found


def figures(rows: int, regions: int, size: int, polars: Cost, protect: Cost, verify: Cost) -> dict[str, Any]:
    """Return the figures of one size."""
    return {
        "rows": rows, "regions": regions, "bytes": size, "rows_per_second": rows / protect.seconds,
        "ratio": protect.seconds / polars.seconds, "verify_ratio": verify.seconds / polars.seconds,
        "cpu_ratio": protect.cpu_seconds / polars.cpu_seconds,
        "polars": polars._asdict(), "protect": protect._asdict(), "verify": verify._asdict(),
    }  # fmt: skip


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the ratio to polars at the largest size, and how the time per row grows up to it."""
    nearest, largest = min(found, key=lambda one: abs(one["rows"] - MILLION)), found[-1]
    growth = nearest["rows_per_second"] / largest["rows_per_second"] if largest is not nearest else None
    return {"ratio": largest["ratio"], "growth": growth, "growth_from": nearest["rows"]}


def _ghost(world: Path, place: Path, count: int, say: Say) -> dict[str, Any]:
    """Protect a sample of cities with GHOST on the CPU, one after the other."""
    every = rows_of_cities(world)
    cities = sample_of(every, count)
    rows = write_cities(world, cities, place / "cities.parquet")
    say(f"GHOST on {len(cities):,} of {len(every):,} cities, with {rows:,} rows")
    release = place / "ghost"
    cost = measured(
        ghostpoi("protect", place / "cities.parquet", "-o", release, "--method", "ghost", "--device", "cpu",
                 "--engine", "local")
    )  # fmt: skip
    return {"regions": len(cities), "of_regions": len(every), "rows": rows, **cost._asdict()}


def extrapolated(sampled: dict[str, Any], found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Add what all rows of each size would take GHOST, if each took as long as those of the sample."""
    per_row = sampled["seconds"] / sampled["rows"]
    guesses = [{"rows": one["rows"], "seconds": per_row * one["rows"]} for one in found]
    return sampled | {"seconds_per_row": per_row, "extrapolated": guesses}


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
