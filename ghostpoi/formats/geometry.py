"""Points in columns: as WKT, pairs, WKB and EWKB, or GeoArrow's structs; and what GeoParquet says about such columns.

Of what a file says, only what no row determines is kept: the version, the encodings, the coordinate system. Bounding
boxes and types are computed from the rows that are written. A GeoPackage has one layer of points, read and written by
pyogrio; a release is a new file, because the old one may keep deleted rows, styles and notes.
"""

import json
import re
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Floats
from ghostpoi.errors import InputError
from ghostpoi.plugins import installing

if TYPE_CHECKING:  # pyarrow is slow to import
    import pyarrow as pa

NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
START = r"^\s*(?i:SRID=4326;\s*)?(?i:POINT)\s*"
FORMS = (
    rf"{START}\(\s*{NUMBER}\s+{NUMBER}\s*\)\s*$",
    rf"^\s*\[\s*{NUMBER}\s*,\s*{NUMBER}\s*\]\s*$",
)
EMPTY = rf"{START}(?i:EMPTY|\(\s*nan\s+nan\s*\))\s*$"
HEX = r"^\s*(?:\\x)?(0[01][0-9A-Fa-f]{40,})\s*$"  # of WKB, as PostGIS exports it
HAS_SRID, HAS_Z = 0x20000000, 0x80000000  # flags of EWKB
SRIDS = (0, 4326)  # unknown, and WGS 84
WKB = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])  # a point; numpy packs the fields
NAMES = dict(enumerate(("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
                        "GEOMETRYCOLLECTION")))  # fmt: skip
BOX = ("xmin", "ymin", "xmax", "ymax")  # the fields of a column of bounding boxes


def positions(points: pl.Series) -> pl.DataFrame:
    """Return longitude and latitude, (N,) each: null where a value is not a point in degrees, NaN where it is empty."""
    point = pl.col("p")
    if points.dtype == pl.Struct:
        lon, lat = point.struct.field("x"), point.struct.field("y")
    elif points.dtype == pl.Binary:
        # A point, with or without an altitude, in degrees if it names a system.
        degrees = ~_has_srid(point) | _word(point, 5).is_in(list(SRIDS))
        is_point = ((_word(point, 1) & 0xFFFF) % 1000 == 1) & degrees
        starts = [pl.when(_has_srid(point)).then(9 + at).otherwise(5 + at) for at in (0, 8)]
        lon, lat = (pl.when(is_point).then(_read(point, at, 8, pl.Float64)) for at in starts)
    else:
        points = points.cast(pl.String)
        lon, lat = (pl.coalesce(point.str.extract(form, n) for form in FORMS).cast(pl.Float64) for n in (1, 2))
        if (coded := points.str.contains(HEX).fill_null(False)).any():
            found = positions(points.str.extract(HEX, 1).str.decode("hex", strict=False))
            return pl.DataFrame({"p": points, "coded": coded, **found.to_dict()}).select(
                pl.when("coded").then("lon").otherwise(lon).alias("lon"),
                pl.when("coded").then("lat").otherwise(lat).alias("lat"),
            )
    return points.alias("p").to_frame().select(lon.alias("lon"), lat.alias("lat"))


def is_pair(kind: pl.DataType) -> bool:
    """Return whether a column of this type holds points as GeoArrow does."""
    return isinstance(kind, pl.Struct) and {"x", "y"} <= {field.name for field in kind.fields}


def is_empty(points: pl.Series) -> pl.Series:
    """Mark the points (N,) that have no position, as POINT EMPTY of PostGIS and GeoPandas."""
    if points.dtype in (pl.Binary, pl.Struct):
        short = points.bin.size() == 0 if points.dtype == pl.Binary else points.struct.field("x").is_null()
        return short.fill_null(False) | positions(points)["lon"].is_nan().fill_null(False)
    return points.cast(pl.String).str.contains(EMPTY).fill_null(False)


def named(points: pl.Series) -> pl.Series:
    """Return how messages call each point: by its text or, of WKB, by its type."""
    if points.dtype == pl.Struct:
        return points.struct.json_encode()
    if points.dtype != pl.Binary:
        return points
    kind = ((_word(pl.col("p"), 1) & 0xFFFF) % 1000).replace_strict(NAMES, default=None, return_dtype=pl.String)
    other = pl.when(_has_srid(pl.col("p"))).then(pl.format("{} of SRID {}", kind, _word(pl.col("p"), 5)))
    return points.alias("p").to_frame().select(pl.coalesce(other, kind, pl.lit("unreadable WKB"))).to_series()


def _has_srid(wkb: pl.Expr) -> pl.Expr:
    return (_word(wkb, 1) & HAS_SRID) != 0


def _word(wkb: pl.Expr, at: int) -> pl.Expr:
    """Return the number of four bytes; null if there are fewer."""
    return _read(wkb, pl.lit(at), 4, pl.UInt32)


def _read(wkb: pl.Expr, at: pl.Expr, size: int, kind: type[pl.DataType]) -> pl.Expr:
    piece = wkb.bin.slice(at, size)
    little, big = (piece.bin.reinterpret(dtype=kind, endianness=order) for order in ("little", "big"))
    return pl.when(wkb.bin.slice(0, 1) == b"\x01").then(little).otherwise(big)


def wkb_points(lon: Floats, lat: Floats) -> list[bytes]:
    """Return points as WKB."""
    rows = np.empty(len(lon), WKB)
    rows["order"], rows["kind"], rows["x"], rows["y"] = 1, 1, lon, lat
    return [row.tobytes() for row in rows]


GEO = b"geo"  # the key of GeoParquet's metadata
LAYER = b"ghostpoi layer"  # the key of rows that are written as a GeoPackage with a layer of this name
NATIVE = "native"  # in what is kept of them: the type that Parquet itself gives a column
NAME, ABOUT = b"ARROW:extension:name", b"ARROW:extension:metadata"
ENCODINGS = {"geoarrow.wkb": "WKB", "ogc.wkb": "WKB", "geoarrow.point": "point"}
VERSIONS = ("1.0.0", "1.1.0", "2.0.0")
SHAPES = ("WKB", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon")
DEGREES = re.compile(r"WGS ?84|CRS ?84", re.IGNORECASE)
Geo = dict[str, Any]
EPSG_4326: Geo = tomllib.loads(Path(__file__).with_name("epsg_4326.toml").read_text("utf-8"))


def described(schema: "pa.Schema", place: str, native: Mapping[str, str]) -> "pa.Schema":
    """Return a schema that says of its columns of geometry only what no row determines.

    `native` names columns to which Parquet itself gives a type of geometry. Refuse another system than WGS 84.
    """
    metadata = {key: value for key, value in (schema.metadata or {}).items() if key != LAYER}
    try:
        stated = json.loads(metadata.pop(GEO, b"{}"))
        given = dict(stated.get("columns", {}))
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{place}: its metadata on geometry (geo) cannot be read; write the file again") from None
    columns: Geo = {}
    for at, field in enumerate(schema):
        kind, about = extension(field)
        if not (field.name in given or field.name in native or kind in ENCODINGS):
            continue
        found = given.get(field.name) or {}
        crs = found["crs"] if "crs" in found else about.get("crs", "OGC:CRS84")
        encoding = found.get("encoding", ENCODINGS.get(kind))
        one: Geo = {"encoding": encoding if encoding in SHAPES else "WKB"}
        one |= {"crs": _system(crs, f"{place}: the column {field.name!r}")} if "crs" in found or "crs" in about else {}
        if "spherical" in (found.get("edges"), about.get("edges")) or native.get(field.name) == "GEOGRAPHY":
            one["edges"] = "spherical"
        if box := _box_of(found.get("covering")):
            one["covering"] = {"bbox": {side: [box, side] for side in BOX}}
        columns[field.name] = one | ({NATIVE: native[field.name]} if field.name in native else {})
        if kind in ENCODINGS:
            known = json.dumps({key: one[key] for key in ("crs", "edges") if one.get(key)}).encode()
            plain = field.with_type(getattr(field.type, "storage_type", field.type))
            schema = schema.set(at, plain.with_metadata({**(field.metadata or {}), NAME: kind.encode(), ABOUT: known}))
    if columns:
        primary = stated.get("primary_column")
        version = next((v for v in VERSIONS if v[:3] == str(stated.get("version"))[:3]), "1.0.0") if given else ""
        own = {"version": version, "primary_column": primary if primary in columns else next(iter(columns))}
        metadata[GEO] = json.dumps(own | {"columns": columns}).encode()
    return schema.with_metadata(metadata or None)


def extension(field: "pa.Field") -> tuple[str, Geo]:
    """Return the name of a column's extension type and what that says."""
    kind, metadata = field.type, field.metadata or {}
    name = str(getattr(kind, "extension_name", metadata.get(NAME, b"").decode()))
    text = kind.__arrow_ext_serialize__() if hasattr(kind, "__arrow_ext_serialize__") else metadata.get(ABOUT, b"")
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        found = {}
    return name, found if isinstance(found, dict) else {}


def _box_of(covering: Any) -> str:
    """Return the column of bounding boxes that metadata name; "" if they name none."""
    box = covering.get("bbox") if isinstance(covering, dict) else None
    sides = [box.get(side) for side in BOX] if isinstance(box, dict) else []
    names = {side[0] for side in sides if isinstance(side, list) and len(side) == 2}
    return str(names.pop()) if len(names) == 1 else ""


def _system(crs: Any, column: str) -> Any:
    """Return the name of a coordinate system, without the notes that a file may add; None: it is not known."""
    if crs is None:
        return None
    own = crs.get("id") or {} if isinstance(crs, dict) else {}
    name = str(crs.get("name", "")) if isinstance(crs, dict) else str(crs)
    code = f"{own.get('authority')}:{own.get('code')}" if own else name
    geographic = not isinstance(crs, dict) or "Geographic" in str(crs.get("type"))
    if not geographic or not (code in ("EPSG:4326", "OGC:CRS84") or (not own and DEGREES.match(name))):
        raise InputError(f"{column} has another coordinate system than WGS 84 ({name[:80]}); convert it to degrees")
    return "OGC:CRS84" if "CRS84" in code.replace(" ", "") else "EPSG:4326"


def columns_of(schema: "pa.Schema") -> Geo:
    """Return what a schema says about its columns of geometry, the primary one first."""
    stated = json.loads((schema.metadata or {}).get(GEO, b"{}"))
    columns = {name: one for name, one in stated.get("columns", {}).items() if name in schema.names}
    return dict(sorted(columns.items(), key=lambda item: item[0] != stated["primary_column"]))


def boxes(schema: Any) -> list[str]:
    """Return the columns of bounding boxes, by the schema of a Parquet file."""
    structs = [field for field in schema or () if str(getattr(field, "type", "")).startswith("struct<")]
    return [one.name for one in structs if {one.type.field(n).name for n in range(one.type.num_fields)} == {*BOX}]


class Extent:
    """What GeoParquet's metadata say about rows, gathered while they are written."""

    def __init__(self, schema: "pa.Schema") -> None:
        self.names, self.columns = schema.names, columns_of(schema)
        self.version = json.loads((schema.metadata or {}).get(GEO, b"{}")).get("version", "")
        self.boxes: dict[str, list[list[float]]] = {name: [] for name in self.columns}
        self.types: dict[str, set[str]] = {name: set() for name in self.columns}

    def add(self, name: str, points: pl.Series) -> None:
        """Count the points of a column of some rows."""
        if points.dtype != pl.Binary and not is_pair(points.dtype):
            self.types[name].add("?")  # other shapes
            return
        found = positions(points).drop_nans()
        if found.null_count().row(0) != (points.null_count(),) * 2:
            self.types[name].add("?")
        if len(found := found.drop_nulls()):
            low, high = found.min().row(0), found.max().row(0)
            self.boxes[name].append([*low, *high])
        if isinstance(points.dtype, pl.Struct):
            has_z = pl.Series([any(field.name == "z" for field in points.dtype.fields)] * bool(len(points)))
        else:
            kind = points.drop_nulls().alias("p").to_frame().select(_word(pl.col("p"), 1)).to_series()
            has_z = ((kind & HAS_Z) != 0) | ((kind & 0xFFFF) // 1000).is_in([1, 3])
        self.types[name] |= {"Point Z" if one else "Point" for one in has_z.unique().drop_nulls()}

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata to write; none if the file had none."""
        if not self.columns or not self.version:
            return {}
        columns = {}
        for name, about in self.columns.items():
            one = {key: value for key, value in about.items() if key != NATIVE and value != "OGC:CRS84"}
            one |= {"crs": EPSG_4326} if one.get("crs") else {}
            if self.boxes[name] and self.types[name] == {"Point"}:
                boxes = np.array(self.boxes[name])
                one["bbox"] = [*boxes[:, :2].min(axis=0).tolist(), *boxes[:, 2:].max(axis=0).tolist()]
            if "covering" in one and one["covering"]["bbox"]["xmin"][0] not in self.names:
                del one["covering"]
            known = "?" not in self.types[name]
            columns[name] = one | {"geometry_types": sorted(self.types[name]) if known else []}
        own = {"version": self.version, "primary_column": next(iter(columns))}
        return {GEO.decode(): json.dumps(own | {"columns": columns})}


MADE = "1980-01-01T00:00:00Z"  # the date that a written file states, so that the same rows give the same bytes


def read_layer(place: str, data: bytes) -> "tuple[pa.Table, pa.Schema]":
    """Return the rows of the only layer with geometry, and a schema that names it."""
    gdal = _pyogrio(place)
    try:
        with warnings.catch_warnings(action="ignore"):  # GDAL misses the ending .gpkg
            layers = [str(name) for name, kind in gdal.list_layers(data) if kind is not None]
            _, table = gdal.read_arrow(data, layer=layers[0] if layers else None)
    except Exception as e:  # of GDAL, whose messages may quote values
        raise InputError(f"{place} is a damaged GeoPackage ({type(e).__name__}); write it again") from None
    if len(layers) != 1:
        named = f" ({', '.join(map(repr, layers))})" if layers else ""
        raise InputError(
            f"{place} has {len(layers) or 'no'} layers with geometry{named}; leave only that of the check-ins in it"
        )
    schema = described(table.schema.with_metadata(None), place, {})
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
                own = table.schema.field(at).with_metadata({NAME: b"geoarrow.wkb"})
                gdal.write_arrow(
                    table.cast(table.schema.set(at, own)), path, layer=layer, driver="GPKG", geometry_name=points,
                    geometry_type="Point", crs="EPSG:4326", append=path.exists(),
                )  # fmt: skip
            return path.read_bytes()
    finally:
        gdal.set_gdal_config_options({"OGR_CURRENT_DATE": None})


def _pyogrio(what: str) -> Any:
    try:
        import pyogrio
    except ImportError:
        raise InputError(f"{what} is read and written by pyogrio; install it with {installing('geo')}") from None
    return pyogrio
