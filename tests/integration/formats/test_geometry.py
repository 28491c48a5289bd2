"""Positions as geometry: GeoParquet of every version, Parquet's own types, WKB, EWKB and WKT."""

import json
import struct
from functools import cache
from pathlib import Path

import duckdb
import geopandas
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from croissant_files import records
from database_files import typed_city
from geo_files import FORMS, OLDEST, Wkb, as_parquet, ewkb, geo, plain, points, table, wkb
from raw_points import WORDS, raw
from small_city import SEED, called, protect, scratch, sentence
from three_cities import SETS as CITIES
from three_cities import all_rows

ROWS = typed_city().height


@cache
def released(name: str) -> Path:
    return protect(as_parquet(name), scratch() / f"released-{name}", "--seed", SEED).data


@cache
def expected() -> pl.DataFrame:
    """The release of the same rows with latitude and longitude."""
    typed_city().write_parquet(path := scratch() / "degrees.parquet")
    return pl.read_parquet(protect(path, scratch() / "released-degrees", "--seed", SEED).data)


def places(path: Path) -> list[tuple[float, float]]:
    """The longitude and latitude of every row, read without the package."""
    column = pq.read_table(path, columns=["geometry"]).column(0)
    if pa.types.is_struct(column.type):
        return [(point["x"], point["y"]) for point in column.to_pylist()]
    found = []
    for point in column.to_pylist():
        order = "<" if point[0] else ">"
        found.append(struct.unpack_from(f"{order}dd", point, 5))
    return found


@pytest.mark.parametrize("name", FORMS)
def test_geometry_changes_with_the_venue(name: str) -> None:
    before, after = pq.read_table(as_parquet(name)), pq.read_table(released(name))
    assert after.schema.equals(before.schema)
    assert after.column("venue_id").to_pylist() == expected()["venue_id"].to_list()
    at = dict(zip(before.column("venue_id").to_pylist(), places(as_parquet(name)), strict=True))
    assert places(released(name)) == [at[venue] for venue in after.column("venue_id").to_pylist()]
    done = called("verify", released(name).parent, "--against", as_parquet(name))
    assert done.returncode == 0, done.stdout
    types = [pq.ParquetFile(path).schema.column(before.schema.get_field_index("geometry")).logical_type.type
             for path in (as_parquet(name), released(name))]  # fmt: skip
    assert types[0] == types[1]


@pytest.mark.parametrize("name", FORMS)
def test_what_is_said_of_the_geometry_is_made_anew(name: str) -> None:
    before, after = (pq.read_schema(path).metadata or {} for path in (as_parquet(name), released(name)))
    assert set(after) == {b"geo"} & set(before)
    if not after:
        return
    stated, found = json.loads(before[b"geo"]), json.loads(after[b"geo"])
    assert (found["version"], found["primary_column"]) == (stated["version"], "geometry")
    column, own = found["columns"]["geometry"], stated["columns"]["geometry"]
    assert column["encoding"] == own["encoding"]
    assert column["geometry_types"] == own["geometry_types"]
    assert column.get("covering") == own.get("covering")
    lon, lat = zip(*places(released(name)), strict=True)
    flat = own["geometry_types"] == ["Point"]
    assert column.get("bbox") == ([min(lon), min(lat), max(lon), max(lat)] if flat else None)


@pytest.mark.parametrize("name", FORMS)
def test_no_byte_of_a_venue_that_is_gone_survives(name: str) -> None:
    """Coordinates of venues that no released row shows: as numbers of either order, and as text of the metadata."""
    shown = set(places(released(name)))
    gone = {place for place in places(as_parquet(name)) if place not in shown}
    values = {value for place in gone for value in place} - {value for place in shown for value in place}
    assert len(values) > 20
    data, rows = released(name).read_bytes(), pq.read_table(released(name))
    pages = b"".join(buffer.to_pybytes() for column in rows.columns for chunk in column.chunks
                     for buffer in chunk.buffers() if buffer is not None)  # fmt: skip
    for value in values:
        for form in (struct.pack("<d", value), struct.pack(">d", value), repr(value).encode()):
            assert form not in data
            assert form not in pages
    for value in (-75.5, 39.5, -72.5, 41.5):  # what the notes of a file say
        assert str(value).encode() not in data


@pytest.mark.parametrize("name", ["geoparquet-1.0", "geoparquet-1.1-box", "geoparquet-1.1-point"])
def test_geopandas_reads_the_release(name: str) -> None:
    frame = geopandas.read_parquet(released(name))
    assert frame.crs == 4326
    assert list(zip(frame.geometry.x, frame.geometry.y, strict=True)) == places(released(name))
    if "bbox" in frame.columns:
        boxes = [(box["xmin"], box["ymin"]) for box in frame["bbox"]]
        assert boxes == [(box["xmax"], box["ymax"]) for box in frame["bbox"]] == places(released(name))


def test_duckdb_reads_the_native_type() -> None:
    rows = duckdb.sql(f"SELECT geometry::VARCHAR FROM '{released('geoparquet-2.0')}'").fetchall()
    assert [row[0] for row in rows] == [f"POINT ({lon} {lat})" for lon, lat in places(released("geoparquet-2.0"))]
    chunk = pq.ParquetFile(released("geoparquet-2.0")).metadata.row_group(0)
    box = next(chunk.column(n) for n in range(chunk.num_columns) if chunk.column(n).path_in_schema == "geometry")
    lon = [lon for lon, _ in places(released("geoparquet-2.0"))]
    assert (box.geo_statistics.xmin, box.geo_statistics.xmax) == (min(lon), max(lon))


def test_every_command_reads_geometry(tmp_path: Path) -> None:
    file, release = as_parquet("geoparquet-1.1-box"), released("geoparquet-1.1-box").parent
    found = json.loads(called("inspect", file, "--json").stdout)
    assert found["checkins"] == ROWS
    split = ["--set", "filters.train_share=0.5", "--set", "filters.val_share=0.25"]
    words = ["--adversaries", "none", "--victim", "markov", "--seeds", 1, "--no-naturalness"]
    done = called("audit", file, release, *words, *split)
    assert done.returncode == 0, done.stderr
    assert called("report", release).returncode == 0
    shown = [record["checkins/venue_id"].decode() for record in records(release / "croissant.json")]
    assert shown == pq.read_table(released("geoparquet-1.1-box")).column("venue_id").to_pylist()
    for month in (1, 2):
        words = ["protect", file, "-o", tmp_path / f"r{month}", "--series", tmp_path / "series"]
        done = called(*words)
        assert done.returncode == 0, done.stderr
    assert places(tmp_path / "r1" / "checkins.parquet") == places(tmp_path / "r2" / "checkins.parquet")
    assert called("verify", tmp_path / "r2", "--against", file).returncode == 0


@pytest.mark.parametrize("native", [False, True], ids=["box", "native"])
def test_region_by_region(native: bool, tmp_path: Path) -> None:
    """Three cities, which are three regions: the metadata cover all of them."""
    rows = all_rows().drop("latitude", "longitude").to_arrow(compat_level=OLDEST)
    lon, lat = (all_rows()[name].to_arrow() for name in ("longitude", "latitude"))
    places_of = pa.array([wkb(*place) for place in zip(lon.to_pylist(), lat.to_pylist(), strict=True)])
    if native:
        whole = rows.append_column("geometry", pa.ExtensionArray.from_storage(Wkb("{}"), places_of))
        whole = whole.replace_schema_metadata(geo("2.0.0"))
    else:
        box = pa.StructArray.from_arrays([lon, lat, lon, lat], ["xmin", "ymin", "xmax", "ymax"])
        whole = (
            rows.append_column("geometry", places_of).append_column("box", box).replace_schema_metadata(geo("1.1.0"))
        )
    pq.write_table(whole.sort_by("utc_time"), tmp_path / "cities.parquet", row_group_size=3000)
    done = called(
        "protect", tmp_path / "cities.parquet", "-o", tmp_path / "r", "--engine", "local", "--seed", SEED, *CITIES
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["regions"]["count"] == 3
    column = json.loads(pq.read_schema(tmp_path / "r" / "checkins.parquet").metadata[b"geo"])["columns"]["geometry"]
    lon, lat = zip(*places(tmp_path / "r" / "checkins.parquet"), strict=True)
    assert column["bbox"] == [min(lon), min(lat), max(lon), max(lat)]
    assert column["bbox"][2] - column["bbox"][0] > 9
    done = called("verify", tmp_path / "r", "--against", tmp_path / "cities.parquet", "--engine", "local")
    assert done.returncode == 0, done.stdout


TEXTS = {
    "wkt": lambda lon, lat: f"POINT ({lon} {lat})",
    "hex": lambda lon, lat: ewkb(lon, lat).hex().upper(),
    "bytea": lambda lon, lat: r"\x" + ewkb(lon, lat).hex(),
}


@pytest.mark.parametrize("form", TEXTS)
def test_points_in_text(form: str, tmp_path: Path) -> None:
    frame = typed_city()
    geom = [TEXTS[form](lon, lat) for lon, lat in frame.select("longitude", "latitude").iter_rows()]
    text = frame.drop("latitude", "longitude").with_columns(pl.col("utc_time").dt.to_string("iso:strict"))
    text.with_columns(geom=pl.Series(geom)).write_csv(tmp_path / "x.csv")
    data = pl.read_csv(protect(tmp_path / "x.csv", tmp_path / "r", "--seed", SEED, "--map", "point=geom").data)
    assert data["venue_id"].to_list() == expected()["venue_id"].to_list()
    rows = expected().select("longitude", "latitude").iter_rows()
    assert data["geom"].to_list() == [TEXTS[form](lon, lat) for lon, lat in rows]


def test_bytes_without_metadata_are_mapped(tmp_path: Path) -> None:
    pq.write_table(table(ewkb).rename_columns([*plain().column_names, "geom"]), tmp_path / "x.parquet")
    said = sentence(called("inspect", tmp_path / "x.parquet"))
    assert "name a column of WKT or WKB points with --map point=COLUMN" in said
    data = protect(tmp_path / "x.parquet", tmp_path / "r", "--seed", SEED, "--map", "point=geom").data
    assert pq.read_table(data).column("venue_id").to_pylist() == expected()["venue_id"].to_list()
    assert pq.read_schema(data).metadata is None


LINE = struct.pack("<BII4d", 1, 2, 2, 1.0, 2.0, 3.0, 4.0)
METRES = {"type": "ProjectedCRS", "name": "WGS 84 / Pseudo-Mercator", "id": {"authority": "EPSG", "code": 3857}}
REFUSED = {
    "line": (
        LINE,
        {},
        ", row 3: the geometry 'LINESTRING' is not a point in degrees of WGS 84; give points, not other",
    ),
    "metres": (struct.pack("<BIIdd", 1, 0x20000001, 3857, 1.0, 2.0), {}, ", row 3: the geometry 'POINT of SRID 3857'"),
    "cut": (b"\x01\x01", {}, ", row 3: the geometry 'unreadable WKB' is not a point"),
    "no text": (b"\xff" * 30, {}, ", row 3: the geometry 'unreadable WKB' is not a point"),
    "outside": (struct.pack("<BIdd", 1, 1, 1.0, 91.0), {}, ", row 3: the latitude 91.0 is outside the range -90 to 90"),
    "empty": (struct.pack("<BIdd", 1, 1, *[float("nan")] * 2), {}, ", row 3: the point is missing; fill it in"),
    "null": (None, {}, ", row 3: the point is missing; fill it in, or use --missing drop or --missing keep"),
    "system": (
        None, {"crs": METRES},
        ": the column 'geometry' has another coordinate system than WGS 84 (WGS 84 / Pseudo-Mercator); convert it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_a_point_is_refused(case: str, tmp_path: Path) -> None:
    value, about, says = REFUSED[case]
    rows = points().to_pylist()
    rows[2] = value
    whole = plain().append_column("geometry", pa.array(rows, pa.binary()))
    pq.write_table(whole.replace_schema_metadata(geo("1.1.0", **about)), tmp_path / "x.parquet")
    said = sentence(called("protect", tmp_path / "x.parquet", "-o", tmp_path / "r"))
    assert said.startswith(f"{tmp_path / 'x.parquet'}{says}")
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


@pytest.mark.parametrize("broken", ["{", "[]", '{"columns": 3}'])
def test_metadata_that_cannot_be_read(broken: str, tmp_path: Path) -> None:
    pq.write_table(table().replace_schema_metadata({"geo": broken}), tmp_path / "x.parquet")
    said = sentence(called("inspect", tmp_path / "x.parquet"))
    assert said == f"{tmp_path / 'x.parquet'}: its metadata on geometry (geo) cannot be read; write the file again"


def test_rows_without_a_point_are_kept(tmp_path: Path) -> None:
    rows = points().to_pylist()
    rows[2] = None
    whole = plain().append_column("geometry", pa.array(rows, pa.binary())).replace_schema_metadata(geo("1.1.0"))
    pq.write_table(whole, tmp_path / "x.parquet")
    data = protect(tmp_path / "x.parquet", tmp_path / "r", "--missing", "keep").data
    found = pq.read_table(data)
    assert found.slice(2, 1).equals(whole.slice(2, 1))
    assert json.loads(found.schema.metadata[b"geo"])["columns"]["geometry"]["geometry_types"] == ["Point"]


@pytest.mark.parametrize("name", ["geoparquet-1.1-box", "geoparquet-1.1-point", "hex"])
def test_raw_points_become_venues(name: str, tmp_path: Path) -> None:
    rows = pl.read_csv(raw()).rename({"lat": "y", "lng": "x"})
    frame = geopandas.GeoDataFrame(
        {"uid": rows["uid"].to_list(), "datetime": rows["datetime"].to_list()},
        geometry=geopandas.points_from_xy(rows["x"].to_numpy(), rows["y"].to_numpy()), crs="OGC:CRS84",
    )  # fmt: skip
    file, words = tmp_path / "raw.parquet", list(WORDS)
    if name == "hex":
        file, words = tmp_path / "raw.csv", [*WORDS, "--map", "point=geometry"]
        rows.select("uid", "datetime", geometry=pl.Series(frame.geometry.to_wkb(hex=True).tolist())).write_csv(file)
    else:
        encoding = {"geometry_encoding": "geoarrow"} if name.endswith("point") else {"write_covering_bbox": True}
        frame.to_parquet(file, schema_version="1.1.0", **encoding)
    data = protect(file, tmp_path / "r", *words).data
    assert called("verify", tmp_path / "r").returncode == 0
    raw_places = set(rows.select("x", "y").iter_rows())
    if name == "hex":
        shown = [struct.unpack_from("<dd", bytes.fromhex(wkb), 5) for wkb in pl.read_csv(data)["geometry"]]
    else:
        found = geopandas.read_parquet(data)
        assert found.crs == "OGC:CRS84"
        shown = list(zip(found.geometry.x, found.geometry.y, strict=True))
        boxes = found["bbox"].tolist() if "bbox" in found.columns else []
        assert [(box["xmin"], box["ymin"]) for box in boxes] == (shown if boxes else [])
    assert not raw_places & set(shown)
    assert all((round(lon, 4), round(lat, 4)) == (lon, lat) for lon, lat in shown)


@pytest.mark.parametrize("name", ["geoparquet-2.0", "native-geography"])
def test_a_library_may_have_registered_the_type(name: str, tmp_path: Path) -> None:
    """As geoarrow-pyarrow does when it is imported: pyarrow then reads columns of another type."""
    pa.register_extension_type(Wkb("{}"))
    try:
        data = protect(as_parquet(name), tmp_path / "r", "--seed", SEED).data
    finally:
        pa.unregister_extension_type("geoarrow.wkb")
    assert data.read_bytes() == released(name).read_bytes()


def test_other_shapes_of_a_venue_change_with_it(tmp_path: Path) -> None:
    """Footprints, whose box and types are left unsaid, and nothing that a careless writer put into the metadata."""
    square = "POLYGON (({0} {1}, {0} {2}, {3} {2}, {0} {1}))"
    places_of = typed_city().select("longitude", "latitude").rows()
    areas = geopandas.GeoSeries.from_wkt([square.format(x, y, y + 1e-4, x + 1e-4) for x, y in places_of]).to_wkb()
    said = geo("1.1.0")
    column = {"encoding": "WKB", "geometry_types": ["Polygon"], "bbox": [-75.5, 39.5, -72.5, 41.5], "note": "by ann"}
    about = json.loads(said["geo"])
    about["columns"] |= {"footprint": column | {"encoding": "by ann"}}
    whole = table().append_column("footprint", pa.array(areas.tolist(), pa.binary()))
    pq.write_table(whole.replace_schema_metadata({"geo": json.dumps(about)}), tmp_path / "x.parquet")
    data = protect(tmp_path / "x.parquet", tmp_path / "r", "--seed", SEED, "--keep-metadata").data
    found = json.loads(pq.read_schema(data).metadata[b"geo"])["columns"]["footprint"]
    assert found == {"encoding": "WKB", "geometry_types": []}
    frame = geopandas.read_parquet(data)
    assert frame.set_geometry("footprint").covers(frame.geometry).all()
    assert b"by ann" not in data.read_bytes()
    shown = called("inspect", tmp_path / "x.parquet").stdout
    assert "geometry" in shown
    assert "the file's geometry" in shown
