"""Write a synthetic city as TSMC2014 (.txt) or a table (.csv, .tsv, .parquet), compressed if the name says so."""

import gzip
import io
import lzma
from pathlib import Path

import numpy as np
import polars as pl
import zstandard

from ghostpoi.data import synthetic as synth
from ghostpoi.data.checkins import Ints
from ghostpoi.errors import InputError
from ghostpoi.files import extension, replacing
from ghostpoi.options import option

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
