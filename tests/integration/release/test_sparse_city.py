"""In a sparse city, the next venue of the same category is far away. The default still protects all rows."""

from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree
from small_city import SEED, called, sentence

from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.geo import EARTH_RADIUS_KM, unit_sphere
from ghostpoi.release.manifest import read_manifest


def median_km_to_the_same_category(table: Checkins) -> float:
    v = table.venues
    point = unit_sphere(v.lat[1:], v.lon[1:])
    nearest = np.full(len(point), np.inf)
    for category in np.unique(v.category[1:]):
        members = np.flatnonzero(v.category[1:] == category)
        if len(members) > 1:
            chord = cKDTree(point[members]).query(point[members], k=2)[0][:, 1]
            nearest[members] = 2 * EARTH_RADIUS_KM * np.arcsin(chord / 2)
    return float(np.median(nearest))


NOTE = "note: many rows keep their venue, because crowds hold few venues; a method.reach_km above 2 moves more rows"


def test_the_default_leaves_no_rows_genuine_and_a_short_reach_moves_them_little(tmp_path: Path) -> None:
    city, release, near = tmp_path / "city.txt", tmp_path / "release", tmp_path / "near"
    size = ("--users", 300, "--pois", 1000, "--days", 60, "--seed", 1, "--density", 0.11)
    assert called("synth", "-o", city, *size).returncode == 0
    assert 7.5 < median_km_to_the_same_category(formats.read(city).table) < 8.5
    done = called("protect", city, "-o", release, "--seed", SEED)
    assert done.returncode == 0
    assert "note: many rows" not in done.stdout
    manifest = read_manifest(release)
    assert manifest["rows"]["drawn_own"]["share"] < 1 / 4
    assert manifest["rows"]["left_genuine"]["rows"] == 0
    assert 10 < manifest["plausibility"]["mean_km"] < 20
    done = called("protect", city, "-o", near, "--seed", SEED, "--set", "method.reach_km=2")
    assert NOTE in done.stdout
    manifest = read_manifest(near)
    rows = manifest["rows"]
    assert rows["drawn_own"]["share"] + rows["left_genuine"]["share"] > 1 / 3
    assert manifest["plausibility"]["mean_km"] < 3
    exact = tmp_path / "exact"  # with the category kept, the same reach leaves most rows as they are
    assert (
        called(
            "protect", city, "-o", exact, "--seed", SEED, "--set", "method.category=exact", "--set", "method.reach_km=2"
        ).returncode
        == 0
    )
    assert read_manifest(exact)["rows"]["left_genuine"]["share"] > 0.5


def test_a_city_needs_some_density(tmp_path: Path) -> None:
    said = sentence(called("synth", "-o", tmp_path / "city.txt", "--density", 0))
    assert said == "--density must be above 0, not 0"
