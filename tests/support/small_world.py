"""A small world: three cities with travellers, in parts, and releases of it."""

import json
from functools import cache
from pathlib import Path

import polars as pl
from small_city import called, scratch

from ghostpoi.data.synthetic_files import World, write_world

SEED = ("--seed", str(3**60), "--keep", "timezone_offset")
# Neural methods on so few rows need little. A settings file may serve methods that do not read all of it.
FAST = """
[rounds]
outer = 2
inner = 1
[lm_training]
epochs = 1
[surrogate]
dim = 16
[lm]
dim = 16
"""


@cache
def rows() -> pl.DataFrame:
    """All rows, in order."""
    folder = scratch() / "small-world"
    write_world(folder, World(3, 40, 120, 50, 4, 40.0, 0.2), 10_000, "parquet", lambda label, units: None)
    return pl.concat([pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))])


def parts(folder: Path, count: int, frame: pl.DataFrame | None = None, ending: str = ".parquet") -> Path:
    """Write rows as a folder of this many parts of equal size."""
    frame = rows() if frame is None else frame
    folder.mkdir()
    for number in range(count):
        part = frame[number * frame.height // count : (number + 1) * frame.height // count]
        path = folder / f"part-{number:03}{ending}"
        part.write_parquet(path) if ending == ".parquet" else part.with_columns(
            pl.col("utc_time").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        ).write_csv(path)
    return folder


def protected(data: Path, release: Path, *words: object) -> Path:
    """Protect a dataset by regions; it must succeed."""
    done = called("protect", data, "-o", release, *SEED, *words)
    assert done.returncode == 0, done.stderr
    return release


def released(release: Path) -> pl.DataFrame:
    """All released rows, in order."""
    found = [pl.read_parquet(path) for path in sorted((release / "checkins").rglob("*.parquet"))]
    return pl.concat(found)


def manifest(release: Path) -> dict:
    found: dict = json.loads((release / "manifest.json").read_text())
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """The data of a release, part by part."""
    data = folder / "checkins"
    return {str(path.relative_to(data)): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}
