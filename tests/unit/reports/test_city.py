"""The map of the whole city: hexagons, their counts, and outlines from a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_city
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.options import in_shell
from ghostpoi.reports.charts.city import _cells, city
from ghostpoi.reports.page_data import PageData, read_page_data


@pytest.fixture(scope="module")
def private() -> PageData:
    made = small_city.release("random")
    return read_page_data([Source(made.folder)], made.private)


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=1, max_size=30))
def test_a_place_lies_in_the_hexagon_of_the_nearest_centre(places: list[tuple[float, float]]) -> None:
    x, y = np.array(places).T
    cell, at = _cells(x, y)
    apart = np.hypot(x[:, None] - at[:, 0], y[:, None] - at[:, 1])
    assert apart[np.arange(len(x)), cell] == pytest.approx(apart.min(axis=1))
    assert apart.min(axis=1).max() <= 1 + 1e-9


def test_the_private_map_compares_both_sides_with_a_control(private: PageData) -> None:
    found = city(private)
    assert found
    assert [panel.title for panel in found.panels] == ["Before: clean data", "After: the release", "Difference"]
    assert found.changed is not None
    assert found.halves is not None
    assert 0 < found.changed < 1
    assert 0 < found.halves < 1
    same = city(PageData(**vars_of(private) | {"released": private.clean}))
    assert same
    assert same.changed == 0
    assert "up" not in same.panels[2].drawing


def vars_of(data: PageData) -> dict[str, Any]:
    return {name: getattr(data, name) for name in ("main", "others", "venues", "released", "compared", "clean")}


def test_the_public_map_counts_the_release_alone() -> None:
    data = read_page_data([Source(small_city.release("random").folder)], None)
    found = city(data)
    assert found
    assert [panel.title for panel in found.panels] == ["Visits in the release"]
    assert found.changed is None


def test_outlines_are_drawn_where_the_venues_are(private: PageData, tmp_path: Path) -> None:
    lat, lon = private.venues.centre
    ring = [[lon - 0.01, lat - 0.01], [lon + 0.01, lat - 0.01], [lon + 0.01, lat + 0.01], [lon - 0.01, lat - 0.01]]
    feature = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]}, "properties": {}}
    file = tmp_path / "district.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    found = city(private, file)
    assert found
    path = found.panels[0].drawing.split('class="outline" d="M')[1].split('"')[0]
    corners = [tuple(map(float, corner.split())) for corner in path.split("L")]
    assert corners[0] == corners[3]
    assert corners[1][0] > corners[0][0]  # east is right
    assert corners[2][1] < corners[1][1]  # north is up


@pytest.mark.parametrize("text", ["no json", "[]", '{"type": "Point"}', '{"type": "LineString", "coordinates": "x"}'])
def test_a_file_without_lines_is_refused(private: PageData, tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.geojson"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        city(private, file)
    assert in_shell(str(refused.value)).startswith(f"--outlines {file} ")
