"""GeoPackages: one layer of points, read and written by pyogrio and held like a Parquet table in between.

A release is a new file: the old one may keep deleted rows, styles and notes.
"""

import warnings
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ghostpoi.errors import InputError
from ghostpoi.formats import geometry
from ghostpoi.formats.geometry import LAYER
from ghostpoi.formats.source import Source
from ghostpoi.plugins import installing

if TYPE_CHECKING:  # pyarrow is slow to import
    import pyarrow as pa

MADE = "1980-01-01T00:00:00Z"  # the date that a written file states, so that the same rows give the same bytes


def read_layer(source: Source, data: bytes) -> "tuple[pa.Table, pa.Schema]":
    """Return the rows of the only layer with geometry, and a schema that names it."""
    gdal = _pyogrio(str(source))
    try:
        with warnings.catch_warnings(action="ignore"):  # GDAL misses the ending .gpkg
            layers = [str(name) for name, kind in gdal.list_layers(data) if kind is not None]
            _, table = gdal.read_arrow(data, layer=layers[0] if layers else None)
    except Exception as e:  # of GDAL, whose messages may quote values
        raise InputError(f"{source} is a damaged GeoPackage ({type(e).__name__}); write it again") from None
    if len(layers) != 1:
        named = f" ({', '.join(map(repr, layers))})" if layers else ""
        raise InputError(
            f"{source} has {len(layers) or 'no'} layers with geometry{named}; leave only that of the check-ins in it"
        )
    schema = geometry.described(table.schema.with_metadata(None), str(source), {})
    return table, schema.with_metadata({**(schema.metadata or {}), LAYER: layers[0].encode()})


def written(layers: "dict[str, tuple[pa.Table, str]]") -> bytes:
    """Return a GeoPackage of these layers: the rows of each, and its column of points."""
    gdal = _pyogrio("a GeoPackage")
    gdal.set_gdal_config_options({"OGR_CURRENT_DATE": MADE})
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "layers.gpkg"
            for layer, (table, points) in layers.items():
                at = table.schema.get_field_index(points)
                own = table.schema.field(at).with_metadata({geometry.NAME: b"geoarrow.wkb"})
                gdal.write_arrow(
                    table.cast(table.schema.set(at, own)), path, layer=layer, driver="GPKG", geometry_name=points,
                    geometry_type="Point", crs="EPSG:4326", append=path.exists(),
                )  # fmt: skip
            return path.read_bytes()
    finally:
        gdal.set_gdal_config_options({"OGR_CURRENT_DATE": None})


def one_layer(tables: "Iterable[pa.Table]", schema: "pa.Schema") -> bytes:
    """Return a GeoPackage of the layer that a schema names."""
    import pyarrow as pa

    table = pa.concat_tables([schema.empty_table(), *tables])
    return written({schema.metadata[LAYER].decode(): (table, next(iter(geometry.columns_of(schema))))})


def _pyogrio(what: str) -> Any:
    try:
        import pyogrio
    except ImportError:
        raise InputError(f"{what} is read and written by pyogrio; install it with {installing('geo')}") from None
    return pyogrio
