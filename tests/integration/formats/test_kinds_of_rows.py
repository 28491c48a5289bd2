"""The same seed gives the same rows from every kind of file, database and frame, and a frame comes back as it was."""

import io
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import dask.dataframe
import duckdb
import geopandas
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from database_files import OLDEST, as_duckdb, as_sqlite, typed_city
from geo_files import as_parquet, table
from small_city import SEED, scratch

import ghostpoi

ROWS = typed_city().height


@cache
def expected() -> list[str]:
    """The released venues of a CSV file."""
    rows = typed_city().with_columns(pl.col("utc_time").dt.to_string("iso:strict"))
    rows.write_csv(path := scratch() / "kinds.csv")
    made = ghostpoi.protect(path, seed=SEED)
    assert made.counts["withheld"] == 0
    venues: list[str] = made.table["venue_id"].to_list()
    return venues


class TrajDataFrame(pd.DataFrame):
    """As scikit-mobility's: a subclass of pandas with names of its own, whose rows are made by a constructor."""

    _metadata = ["_parameters", "_crs"]  # noqa: RUF012

    @property
    def _constructor(self) -> type["TrajDataFrame"]:
        return TrajDataFrame


def trajectories() -> TrajDataFrame:
    names = {"user": "uid", "utc_time": "datetime", "latitude": "lat", "longitude": "lng"}
    frame = TrajDataFrame(typed_city().to_pandas().rename(columns=names))
    frame._parameters = {"from_file": "/home/ann/clean.csv"}
    return frame


def shapes() -> geopandas.GeoDataFrame:
    frame = typed_city().to_pandas()
    places = geopandas.points_from_xy(frame.pop("longitude"), frame.pop("latitude"))
    return geopandas.GeoDataFrame(frame, geometry=places, crs=4326)


def arrow() -> pa.Table:
    return typed_city().to_arrow(compat_level=OLDEST)


FRAMES: dict[str, Callable[[], Any]] = {
    "polars": typed_city,
    "polars, lazy": lambda: typed_city().lazy(),
    "pandas": lambda: typed_city().to_pandas(),
    "pandas on Arrow": lambda: typed_city().to_pandas(use_pyarrow_extension_array=True),
    "pyarrow": arrow,
    "pyarrow, WKB": lambda: table().replace_schema_metadata(pq.read_schema(as_parquet("big-endian")).metadata),
    "DuckDB": lambda: duckdb.from_arrow(arrow()),
    "DuckDB, geometry": lambda: duckdb.sql(f"SELECT * FROM '{as_parquet('geoparquet-2.0')}'"),
    "Dask": lambda: dask.dataframe.from_pandas(typed_city().to_pandas(), npartitions=3),
    "geopandas": shapes,
    "scikit-mobility": trajectories,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind: str) -> None:
    given = FRAMES[kind]()
    shown = ghostpoi.protect(given, seed=SEED).table
    assert type(shown) is type(given)
    assert columns_of(shown) == columns_of(given)
    found, clean = rows_of(shown), rows_of(given)
    assert found["venue_id"].to_list() == expected()
    assert found.schema == clean.schema
    changed = {"venue_id", "category_id", "category", "latitude", "longitude", "lat", "lng", "geometry"}
    kept = [name for name in clean.columns if name not in changed]
    assert found.select(kept).equals(clean.select(kept))
    place = [name for name in clean.columns if name in changed]
    key = [name for name in place if name != "geometry"]
    assert set(found.select(key).iter_rows()) <= set(clean.select(key).iter_rows())
    if "geometry" in place:
        at = dict(clean.select("venue_id", "geometry").iter_rows())
        assert found["geometry"].to_list() == [at[venue] for venue in found["venue_id"]]


def columns_of(frame: Any) -> Any:
    if isinstance(frame, pa.Table):
        return frame.schema.remove_metadata()
    if isinstance(frame, pl.LazyFrame):
        return frame.collect_schema()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return list(zip(frame.columns, map(str, frame.types), strict=True))
    return [(name, str(kind)) for name, kind in zip(frame.columns, frame.dtypes, strict=True)]


def rows_of(frame: Any) -> pl.DataFrame:
    if isinstance(frame, dask.dataframe.DataFrame):
        frame = frame.compute().reset_index(drop=True)
    if isinstance(frame, geopandas.GeoDataFrame):
        assert frame.crs == 4326
        frame = pd.DataFrame(frame.to_wkb())
    if isinstance(frame, pd.DataFrame):
        return pl.from_pandas(pd.DataFrame(frame))
    if isinstance(frame, duckdb.DuckDBPyRelation):
        out = io.BytesIO()  # polars reads no extension types of Arrow
        pq.write_table(frame.to_arrow_table(), out)
        return pl.DataFrame(pl.from_arrow(pq.read_table(out)))
    if isinstance(frame, pa.Table):
        return pl.DataFrame(pl.from_arrow(frame))
    return frame.lazy().collect()


def test_nothing_of_a_subclass_but_its_rows_comes_back() -> None:
    shown = ghostpoi.protect(trajectories(), seed=SEED).table
    assert "_parameters" not in vars(shown)
    assert list(shown.columns) == list(trajectories().columns)


def as_gpkg(path: Path) -> Path:
    shapes().to_file(path, driver="GPKG", layer="checkins")
    return path


FILES: dict[str, Callable[[Path], tuple[Path, dict[str, str]]]] = {
    "GeoParquet 1.1": lambda folder: (as_parquet("geoparquet-1.1-box"), {}),
    "GeoParquet 2.0": lambda folder: (as_parquet("geoparquet-2.0"), {}),
    "GeoPackage": lambda folder: (as_gpkg(folder / "x.gpkg"), {}),
    "SQLite": lambda folder: (as_sqlite(typed_city(), folder / "x.sqlite"), {"table": "checkins"}),
    "DuckDB": lambda folder: (as_duckdb(typed_city(), folder / "x.duckdb"), {"table": "checkins"}),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_and_databases(kind: str, tmp_path: Path) -> None:
    path, asked = FILES[kind](tmp_path)
    shown = ghostpoi.protect(path, seed=SEED, **asked).table
    order = typed_city()["utc_time"].is_sorted()
    venues = shown["venue_id"].to_list()
    assert venues == expected() if order or not asked else sorted(venues) == sorted(expected())


def test_pages_of_sqlite_are_not_taken_for_points(tmp_path: Path) -> None:
    """Bytes in a table are read as they are."""
    with sqlite3.connect(tmp_path / "x.sqlite") as connection:
        connection.execute("CREATE TABLE checkins (user, venue_id, category_id, category, utc_time, geom BLOB)")
        time = pl.col("utc_time").dt.to_string("iso:strict")
        rows = typed_city().select("user", "venue_id", "category_id", "category", time).rows()
        wkb = table().column("geometry").to_pylist()
        values = [(*row, point) for row, point in zip(rows, wkb, strict=True)]
        connection.executemany("INSERT INTO checkins VALUES (?, ?, ?, ?, ?, ?)", values)
    connection.close()
    made = ghostpoi.protect(tmp_path / "x.sqlite", seed=SEED, table="checkins", map={"point": "geom"})
    assert sorted(made.table["venue_id"]) == sorted(expected())
    assert set(made.table["geom"]) <= set(wkb)


def test_geometry_of_duckdb_is_written_back(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE checkins AS SELECT * FROM '{as_parquet('native')}'")
    words = {"table": "checkins", "to_table": "released", "output": tmp_path / "release"}
    made = ghostpoi.protect(path, seed=SEED, **words)
    with duckdb.connect(path) as connection:
        kinds = connection.execute("SELECT column_type FROM (DESCRIBE released) WHERE column_name = 'geometry'")
        assert kinds.fetchall()[0][0].startswith("GEOMETRY")
        rows = connection.execute("SELECT venue_id, geometry::VARCHAR FROM released").fetchall()
        clean = dict(connection.execute("SELECT venue_id, geometry::VARCHAR FROM checkins").fetchall())
    assert sorted(venue for venue, _ in rows) == sorted(expected()) == sorted(made.table["venue_id"])
    assert all(clean[venue] == point for venue, point in rows)
    shown = geopandas.read_parquet(tmp_path / "release" / "checkins.parquet")
    assert shown.crs == "OGC:CRS84"
