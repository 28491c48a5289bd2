"""GeoPackages: the same layer with points of the released venues, in a file of its own."""

import json
import sqlite3
import struct
import sys
from functools import cache
from pathlib import Path

import geopandas
import pyogrio
import pytest
import shapely
from database_files import typed_city
from small_city import SEED, called, protect, scratch, sentence
from three_cities import SETS as CITIES
from three_cities import all_rows

import ghostpoi


def shapes(frame: object = None) -> geopandas.GeoDataFrame:
    table = (typed_city() if frame is None else frame).to_pandas()
    places = geopandas.points_from_xy(table.pop("longitude"), table.pop("latitude"))
    return geopandas.GeoDataFrame(table, geometry=places, crs=4326)


@cache
def clean() -> Path:
    """A layer, with rows that were deleted: SQLite keeps their bytes."""
    path = scratch() / "city.gpkg"
    shapes().to_file(path, driver="GPKG", layer="visits", layer_options={"DESCRIPTION": "made by ann@example.org"})
    return path


@cache
def released() -> Path:
    return protect(clean(), scratch() / "released-gpkg", "--seed", SEED).data


def test_the_layer_has_the_points_of_released_venues() -> None:
    assert released().name == "checkins.gpkg"
    before, after = geopandas.read_file(clean()), geopandas.read_file(released())
    assert pyogrio.list_layers(released()).tolist() == [["visits", "Point"]]
    assert after.crs == before.crs == 4326
    assert after.dtypes.equals(before.dtypes)
    at = dict(zip(before["venue_id"], before.geometry, strict=True))
    assert after.geometry.tolist() == [at[venue] for venue in after["venue_id"]]
    kept = ["user", "timezone_offset", "utc_time"]
    assert after[kept].equals(before[kept])
    assert (after["venue_id"] != before["venue_id"]).mean() > 0.5
    with sqlite3.connect(released()) as connection:  # a spatial index of the released points, as QGIS wants one
        rows = connection.execute("SELECT minx FROM rtree_visits_geom").fetchall()
    connection.close()
    assert len(rows) == len(after)


def test_nothing_of_the_old_file_is_left(tmp_path: Path) -> None:
    data, before, after = released().read_bytes(), geopandas.read_file(clean()), geopandas.read_file(released())
    gone = set(before.geometry.x) | set(before.geometry.y)
    gone -= set(after.geometry.x) | set(after.geometry.y)
    assert len(gone) > 20
    assert not any(struct.pack(form, value) in data for value in gone for form in ("<d", ">d"))
    assert b"ann@example.org" not in data
    again = protect(clean(), tmp_path / "again", "--seed", SEED).data
    assert again.read_bytes() == data


def test_every_command_reads_it(tmp_path: Path) -> None:
    assert json.loads(called("inspect", clean(), "--json").stdout)["checkins"] == typed_city().height
    done = called("verify", released().parent, "--against", clean())
    assert done.returncode == 0, done.stdout
    assert called("verify", released().parent).returncode == 0
    assert called("report", released().parent).returncode == 0
    about = json.loads((released().parent / "croissant.json").read_text())
    assert about["distribution"][0]["encodingFormat"] == "application/geopackage+sqlite3"
    assert "a GeoPackage with one layer of points" in (released().parent / "card.md").read_text()
    for month in (1, 2):
        done = called("protect", clean(), "-o", tmp_path / f"r{month}", "--series", tmp_path / "series")
        assert done.returncode == 0, done.stderr
    one, two = (geopandas.read_file(tmp_path / f"r{month}" / "checkins.gpkg") for month in (1, 2))
    assert one.equals(two)
    split = ["--set", "filters.train_share=0.5", "--set", "filters.val_share=0.25"]
    words = ["--adversaries", "none", "--victim", "markov", "--seeds", 1, "--no-naturalness"]
    done = called("audit", clean(), released().parent, *words, *split)
    assert done.returncode == 0, done.stderr


def test_region_by_region(tmp_path: Path) -> None:
    shapes(all_rows()).to_file(tmp_path / "cities.gpkg", driver="GPKG", layer="visits")
    words = ["--engine", "local", "--order", "time", "--seed", SEED, *CITIES]
    done = called("protect", tmp_path / "cities.gpkg", "-o", tmp_path / "r", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["regions"]["count"] == 3
    found = geopandas.read_file(tmp_path / "r" / "checkins.gpkg")
    at = {venue: (lon, lat) for venue, lon, lat in all_rows().select("venue_id", "longitude", "latitude").iter_rows()}
    assert [at[venue] for venue in found["venue_id"]] == list(zip(found.geometry.x, found.geometry.y, strict=True))
    done = called("verify", tmp_path / "r", "--against", tmp_path / "cities.gpkg", "--engine", "local")
    assert done.returncode == 0, done.stdout


def test_other_layers_and_shapes_are_refused(tmp_path: Path) -> None:
    two, lines = tmp_path / "two.gpkg", tmp_path / "lines.gpkg"
    for layer in ("visits", "parks"):
        shapes().to_file(two, driver="GPKG", layer=layer)
    said = sentence(called("protect", two, "-o", tmp_path / "r"))
    assert said == f"{two} has 2 layers with geometry ('visits', 'parks'); leave only that of the check-ins in it"
    areas = geopandas.GeoSeries(shapely.buffer(shapes().geometry.values, 1e-3), crs=4326)
    shapes().set_geometry(areas).to_file(lines, driver="GPKG")
    said = sentence(called("protect", lines, "-o", tmp_path / "r"))
    assert said.startswith(f"{lines}, row 1: the geometry 'POLYGON' is not a point in degrees of WGS 84; give points")
    shapes().to_crs(3857).to_file(metres := tmp_path / "metres.gpkg", driver="GPKG")
    said = sentence(called("protect", metres, "-o", tmp_path / "r"))
    assert said.endswith("has another coordinate system than WGS 84 (WGS 84 / Pseudo-Mercator); convert it to degrees")
    (damaged := tmp_path / "damaged.gpkg").write_bytes(clean().read_bytes()[:5000])
    assert sentence(called("inspect", damaged)).startswith(f"{damaged} is a damaged GeoPackage (")
    assert not (tmp_path / "r").exists()


def test_without_pyogrio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    with pytest.raises(ghostpoi.InputError, match=r"is read and written by pyogrio; install it with .*\[geo\]"):
        ghostpoi.inspect(clean())
