"""The small city as tables of SQLite and DuckDB files, with the rows in another order."""

import random
import sqlite3
from pathlib import Path

import polars as pl
from small_city import SIZE

from ghostpoi.data import synthetic as synth
from ghostpoi.data.synthetic_files import city_frame

OLDEST = pl.CompatLevel.oldest()
TIME = "%a %b %d %H:%M:%S %z %Y"


def typed_city() -> pl.DataFrame:
    """The city with numbers for users and times in UTC."""
    frame = city_frame(synth.make_city(*SIZE, 3), 3)
    return frame.with_columns(pl.col("user").cast(pl.Int64), pl.col("utc_time").str.to_datetime(TIME, time_zone="UTC"))


def shuffled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame[random.Random(1).sample(range(frame.height), frame.height)]


def as_sqlite(frame: pl.DataFrame, path: Path) -> Path:
    """Write a table `checkins`. SQLite has no times, so they are text."""
    plain = frame.with_columns(pl.col("utc_time").dt.to_string("%Y-%m-%dT%H:%M:%SZ"))
    kinds = {pl.Int64: "INTEGER", pl.Float64: "REAL"}
    columns = ", ".join(f"{name} {kinds.get(type(kind), 'TEXT')}" for name, kind in plain.schema.items())
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE checkins ({columns})")
        connection.executemany(f"INSERT INTO checkins VALUES ({', '.join('?' * plain.width)})", plain.rows())
    connection.close()
    return path


def as_duckdb(frame: pl.DataFrame, path: Path) -> Path:
    import duckdb

    rows = frame.to_arrow(compat_level=OLDEST)  # noqa: F841  # DuckDB finds it by its name
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE checkins AS SELECT * FROM rows")
    return path
