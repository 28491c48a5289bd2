"""What it costs to protect a table of PostgreSQL, compared with a Parquet file of the same rows."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from benchmarks.measured import ghostpoi, measured
from benchmarks.scale import CITY, MEMORY, world_of
from ghostpoi.plugins import need

TABLE = "ghostpoi_benchmark"
BATCH = 500_000  # rows
Say = Callable[[str], None]


def database(rows: int, url: str, folder: Path | None, say: Say) -> dict[str, Any]:
    """Load a world of about so many rows into a table of the server, and protect it from there and from Parquet.

    `ratio` is the time from the server over that from the file. The release is the same, but for the types of columns.
    """
    need("databases")
    with TemporaryDirectory(dir=folder) as place:
        file = Path(place) / "world.parquet"
        say(f"about {rows:,} rows: making the world, unless it is there")
        made = pl.scan_parquet(world_of(rows, folder or Path(place))).drop(CITY).sort("utc_time", "user")
        made.sink_parquet(file, row_group_size=BATCH)
        count = load(file, url)
        say(f"{count:,} rows are in the table {TABLE}")
        sources: dict[str, list[object]] = {"parquet": [file], "postgresql": [url, "--table", TABLE]}
        out, found = Path(place) / "out", {}
        for name, words in sources.items():
            out.mkdir()
            cost = measured(ghostpoi("protect", *words, "-o", out / "release", "--memory", MEMORY), folder=out)
            found[name] = cost._asdict()
            say(f"{name}: {cost.seconds:,.1f} s, {cost.cpu_seconds:,.1f} s of CPU, {cost.peak_bytes / 1e9:.2f} GB")
            shutil.rmtree(out)
        _run(url, f"DROP TABLE {TABLE}")
    return {
        "rows": count, "ratio": found["postgresql"]["seconds"] / found["parquet"]["seconds"], **found,
        "memory": MEMORY, "load": os.getloadavg()[0],
    }  # fmt: skip


def load(file: Path, url: str) -> int:
    """Fill the table with the rows of a Parquet file; return how many they are."""
    import adbc_driver_postgresql.dbapi as dbapi
    import pyarrow.parquet as pq

    _run(url, f"DROP TABLE IF EXISTS {TABLE}")
    with pq.ParquetFile(file) as parquet, dbapi.connect(url) as connection, connection.cursor() as cursor:
        for number, batch in enumerate(parquet.iter_batches(BATCH)):
            cursor.adbc_ingest(TABLE, batch, mode="append" if number else "create")
        connection.commit()
        return int(parquet.metadata.num_rows)


def _run(url: str, sql: str) -> None:
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
