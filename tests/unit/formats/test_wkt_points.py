"""Positions as WKT points: --map point=COLUMN."""

from pathlib import Path

import pytest
from small_city import called, protect, sentence
from written_as import visits, written

from ghostpoi import formats

HEADER = "user|poi|category|geom|time\n"
MAP = ["--map", "point=geom"]


def points() -> Path:
    return written("points.csv", lambda v: f"{v.user}|{v.poi}|{v.category}|POINT ({v.lon} {v.lat})|{v.time:%s}", HEADER)


def test_the_longitude_comes_first() -> None:
    table = formats.read(points(), {"point": "geom"}).table
    assert table.lat.tolist() == [v.lat for v in visits()]
    assert table.lon.tolist() == [v.lon for v in visits()]


def test_the_release_has_points(tmp_path: Path) -> None:
    release = protect(points(), tmp_path / "r", *MAP)
    clean, out = ([line.split("|") for line in path.read_text().splitlines()] for path in (points(), release.data))
    for at in (0, 4):
        assert [row[at] for row in out] == [row[at] for row in clean]
    assert {tuple(row[1:4]) for row in out} <= {tuple(row[1:4]) for row in clean}
    assert sum(a != b for a, b in zip(clean, out, strict=True)) > len(clean) / 2
    assert "geom" in release.manifest["columns"]["changed_with_the_venue"]
    done = called("verify", release.folder, "--against", points())
    assert done.returncode == 0, done.stdout
    assert called("report", release.folder).returncode == 0


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ("POINT (1 91)", "the latitude 91.0 is outside the range -90 to 90"),
        (
            "POINT (1,2)",
            "the point 'POINT (1,2)' is not of the form POINT (longitude latitude) or [longitude, latitude]; correct",
        ),
        ("LINESTRING (1 2, 3 4)", "the point 'LINESTRING (1 2, 3 4)' is not of the form POINT (longitude latitude)"),
        ("", "the point is missing; fill it in, or use --missing drop or --missing keep"),
        ("POINT EMPTY", "the point 'POINT EMPTY' stands for no value; fill it in, or use --missing drop"),
    ],
)
def test_what_is_no_point(point: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"{HEADER}u|p|c|srid=4326;point(1.5e0 2)|1\nu|p|c|{point}|1\n")
    assert sentence(called("inspect", path, *MAP)).startswith(f"{path}, line 3: {says}")
