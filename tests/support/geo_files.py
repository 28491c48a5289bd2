"""The small city with its positions as geometry, in the forms that other tools write."""

import json
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from database_files import typed_city
from small_city import scratch

OLDEST = pl.CompatLevel.oldest()
WGS84 = {"crs": "OGC:CRS84"}


class Wkb(pa.ExtensionType):
    """What makes pyarrow write Parquet's own type of geometry."""

    def __init__(self, about: str) -> None:
        self.about = about
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.about.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, about: bytes) -> "Wkb":
        return cls(about.decode())


def wkb(lon: float, lat: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, lon, lat)


def big_endian(lon: float, lat: float) -> bytes:
    return struct.pack(">BIdd", 0, 1, lon, lat)


def ewkb(lon: float, lat: float) -> bytes:
    """As PostGIS stores a point of SRID 4326."""
    return struct.pack("<BIIdd", 1, 0x20000001, 4326, lon, lat)


def with_altitude(lon: float, lat: float) -> bytes:
    return struct.pack("<BIddd", 1, 1001, lon, lat, 12.5)


def plain() -> pa.Table:
    """The rows without positions."""
    return typed_city().drop("latitude", "longitude").to_arrow(compat_level=OLDEST)


def points(form: Callable[[float, float], bytes] = wkb) -> pa.Array:
    frame = typed_city()
    return pa.array([form(lon, lat) for lon, lat in frame.select("longitude", "latitude").iter_rows()])


def table(form: Callable[[float, float], bytes] = wkb) -> pa.Table:
    return plain().append_column("geometry", points(form))


def geo(version: str, **more: object) -> dict[str, str]:
    """GeoParquet's metadata, with what a careless writer may add."""
    column = {"encoding": "WKB", "geometry_types": ["Point"], **more}
    return {"geo": json.dumps({"version": version, "primary_column": "geometry", "columns": {"geometry": column}})}


@cache
def as_parquet(name: str) -> Path:
    """One of FORMS as a file."""
    path = scratch() / f"{name}.parquet"
    FORMS[name](path)
    return path


def _geopandas(path: Path, **options: object) -> None:
    import geopandas

    frame = typed_city()
    places = geopandas.points_from_xy(frame["longitude"].to_numpy(), frame["latitude"].to_numpy())
    plain_frame = plain().to_pandas()
    geopandas.GeoDataFrame(plain_frame, geometry=places, crs=4326).to_parquet(path, **options)


def _native(path: Path, metadata: dict[str, str] | None = None, about: str = json.dumps(WGS84)) -> None:
    own = pa.ExtensionArray.from_storage(Wkb(about), points())
    pq.write_table(plain().append_column("geometry", own).replace_schema_metadata(metadata), path)


FORMS: dict[str, Callable[[Path], None]] = {
    "geoparquet-1.0": lambda path: _geopandas(path, schema_version="1.0.0"),
    "geoparquet-1.1-box": lambda path: _geopandas(path, schema_version="1.1.0", write_covering_bbox=True),
    "geoparquet-1.1-point": lambda path: _geopandas(path, geometry_encoding="geoarrow"),
    "geoparquet-2.0": lambda path: _native(path, geo("2.0.0", bbox=[-75.5, 39.5, -72.5, 41.5])),
    "native": _native,
    "native-geography": lambda path: _native(path, None, json.dumps(WGS84 | {"edges": "spherical"})),
    "altitude": lambda path: pq.write_table(
        table(with_altitude).replace_schema_metadata(geo("1.1.0", geometry_types=["Point Z"])), path
    ),
    "big-endian": lambda path: pq.write_table(table(big_endian).replace_schema_metadata(geo("1.1.0")), path),
}
