"""Write synthetic cities and worlds as files: TSMC2014 (.txt) or tables, whole or in parts."""

import gzip
import io
import lzma
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import zstandard

from ghostpoi.data import synthetic as synth
from ghostpoi.data.checkins import Ints
from ghostpoi.data.synthetic_world import World
from ghostpoi.errors import InputError
from ghostpoi.files import extension, new_folder, replacing
from ghostpoi.options import option
from ghostpoi.progress import Report, no_report

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


WRITE: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": lambda frame, path: frame.write_parquet(path),
    "csv": lambda frame, path: with_text_times(frame).write_csv(path, quote_style="necessary"),
}
ROWS_PER_PART = 500_000
MAX_PARTS = 100_000  # names sort as numbers
FILES = (".txt", ".csv", ".tsv", ".parquet", ".gz", ".xz", ".zst")  # endings of -o without --cities


def write_world(
    folder: Path, world: World, rows_per_part: int = ROWS_PER_PART, format: str = "parquet", report: Report = no_report
) -> int:
    """Make a world, write it to a new folder and return the number of check-ins."""
    if format not in WRITE:
        raise InputError(f"{option('format', format)}: use {' or '.join(WRITE)}")
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
            WRITE[format](part, unfinished / f"part-{number:05d}.{format}")
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
    held: list[pl.DataFrame] = []
    missing = rows
    for frame in frames:
        begin = 0
        while frame.height - begin >= missing:
            yield pl.concat([*held, frame.slice(begin, missing)], rechunk=True)
            begin += missing
            held, missing = [], rows
        if begin < frame.height:
            held.append(frame.slice(begin))
            missing -= held[-1].height
        del frame
    if held:
        yield pl.concat(held, rechunk=True)
