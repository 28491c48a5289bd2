"""JSON lines, JSON arrays, GeoJSON and workbooks: read, protect, write back in the same format."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from croissant_files import records
from small_city import SEED, Release, called, protect, scratch, sentence
from written_as import Visit, visits, written

from ghostpoi import formats

Row = dict[str, Any]


def record(v: Visit) -> Row:
    """An object with an object inside it."""
    return {
        "who": {"user_id": int(v.user), "group": "=ab"[int(v.user) % 3]},
        "venue_id": v.poi, "category": v.category, "lat": v.lat, "lon": v.lon, "at": v.time.isoformat(),
    }  # fmt: skip


def feature(v: Visit) -> Row:
    properties = {"user": v.user, "poi": v.poi, "category": v.category, "time": int(v.time.timestamp())}
    return {
        "type": "Feature", "properties": properties, "geometry": {"type": "Point", "coordinates": [v.lon, v.lat]}
    }  # fmt: skip


def cells(v: Visit) -> list[Any]:
    return [int(v.user), v.poi, v.category, v.lat, v.lon, v.time.replace(tzinfo=None), f"={len(v.user)}"]


CELLS = ["user", "poi", "category", "lat", "lon", "time", "note"]


def workbook(path: Path, rows: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    for line in book.active.iter_rows(min_row=2):
        line[-1].data_type = "s" if isinstance(line[-1].value, str) else "n"  # text that looks like a formula
    book.create_sheet("empty")
    book.properties.creator = "Somebody"
    book.save(path)
    return path


@cache
def file(kind: str) -> Path:
    path = scratch() / f"values.{kind}"
    if kind == "jsonl":
        return written(path.name, lambda v: json.dumps(record(v)))
    if kind == "xlsx":
        return workbook(path, [CELLS, *map(cells, visits())])
    if kind == "json":
        path.write_text(json.dumps([record(v) for v in visits()], indent=1))
    else:
        listed = {"name": "secret", "bbox": [1, 2, 3, 4], "features": [feature(v) for v in visits()]}
        path.write_text(json.dumps({"type": "FeatureCollection", **listed}))
    return path


MAP = {"jsonl": ["--map", "user=who.user_id", "--map", "time=at"], "geojson": [], "xlsx": []}
MAP["json"] = MAP["jsonl"]


def rows_of(kind: str, path: Path) -> list[Row]:
    """What the tools of the format read."""
    if kind == "jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if kind == "json":
        return list(json.loads(path.read_text()))
    if kind == "geojson":
        return [
            f["properties"] | {"at": f["geometry"]["coordinates"]} for f in json.loads(path.read_text())["features"]
        ]
    rows = list(openpyxl.load_workbook(path)["checkins" if path.parent.name != scratch().name else "Sheet"].values)
    return [dict(zip(map(str, rows[0]), row, strict=True)) for row in rows[1:]]


@cache
def released(kind: str) -> Release:
    return protect(file(kind), scratch() / f"values-{kind}", "--seed", SEED, *MAP[kind])


VENUE: dict[str, Callable[[Row], Any]] = {
    "jsonl": lambda row: (row["venue_id"], row["category"], row["lat"], row["lon"]),
    "geojson": lambda row: (row["poi"], row["category"], *row["at"]),
    "xlsx": lambda row: (row["poi"], row["category"], row["lat"], row["lon"]),
}
VENUE["json"] = VENUE["jsonl"]
OTHER: dict[str, Callable[[Row], Any]] = {
    "jsonl": lambda row: (row["who"], row["at"]),
    "geojson": lambda row: (row["user"], row["time"]),
    "xlsx": lambda row: (row["user"], row["time"], row.get("note")),
}
OTHER["json"] = OTHER["jsonl"]
KINDS = list(VENUE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_is_that_of_the_visits(kind: str) -> None:
    table = formats.read(file(kind), {w.split("=")[0]: w.split("=")[1] for w in MAP[kind][1::2]}).table
    assert table.lat.tolist() == [v.lat for v in visits()]
    assert table.time.tolist() == [int(v.time.timestamp()) for v in visits()]
    assert table.venue_ids[table.venue].tolist() == [v.poi for v in visits()]


@pytest.mark.parametrize("kind", KINDS)
def test_the_release_has_the_format_of_the_file(kind: str) -> None:
    made = released(kind)
    assert made.data.name == f"checkins.{kind}"
    before, after = (rows_of(kind, path) for path in (file(kind), made.data))
    assert list(map(OTHER[kind], after)) == list(map(OTHER[kind], before))
    assert set(map(VENUE[kind], after)) <= set(map(VENUE[kind], before))
    assert sum(VENUE[kind](a) != VENUE[kind](b) for a, b in zip(before, after, strict=True)) > len(before) / 2
    done = called("verify", made.folder, "--against", file(kind), *MAP[kind])
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_bytes(kind: str, tmp_path: Path) -> None:
    again = protect(file(kind), tmp_path / "again", "--seed", SEED, *MAP[kind])
    assert again.data.read_bytes() == released(kind).data.read_bytes()


def test_notes_of_a_file_are_left_out() -> None:
    text = released("geojson").data.read_text()
    assert "secret" not in text
    assert "bbox" not in text
    book = openpyxl.load_workbook(released("xlsx").data)
    assert (book.sheetnames, book.properties.creator) == (["checkins"], "openpyxl")
    assert book.properties.modified == datetime(1980, 1, 1)


def test_metadata_is_kept_on_request(tmp_path: Path) -> None:
    made = protect(file("geojson"), tmp_path / "r", "--keep-metadata")
    assert json.loads(made.data.read_text())["name"] == "secret"


@pytest.mark.parametrize("kind", KINDS)
def test_pages_name_the_format_and_loaders_find_the_rows(kind: str) -> None:
    made = released(kind)
    assert called("report", made.folder).returncode == 0
    words = {"jsonl": "JSON lines", "json": "a JSON array", "geojson": "GeoJSON", "xlsx": "an Excel workbook"}[kind]
    assert f"`checkins.{kind}`: {words}" in (made.folder / "card.md").read_text()
    if kind == "xlsx":
        return
    meta = made.folder / "croissant.json"
    found = records(meta)[0]
    lat = {"geojson": "geometry.latitude"}.get(kind, "lat")
    names = {field["name"]: field["@id"] for field in json.loads(meta.read_text())["recordSet"][0]["field"]}
    assert float(found[names[lat]]) == VENUE[kind](rows_of(kind, made.data)[0])[3 if kind == "geojson" else 2]


def test_pseudonyms_keep_the_type_of_user_ids(tmp_path: Path) -> None:
    for kind, types, drop in (("jsonl", int, ["who.group"]), ("xlsx", int, ["note"]), ("geojson", str, [])):
        dropped = [word for name in drop for word in ("--drop", name)]
        made = protect(file(kind), tmp_path / kind, *MAP[kind], *dropped, "--pseudonyms", "week")
        users = [OTHER[kind](row)[0] for row in rows_of(kind, made.data)]
        assert {type(u["user_id"] if isinstance(u, dict) else u) for u in users} == {types}


def test_one_feature_per_line(tmp_path: Path) -> None:
    path = tmp_path / "x.geojsonl"
    path.write_text("".join(json.dumps(feature(v) | {"id": n}) + "\n" for n, v in enumerate(visits())))
    made = protect(path, tmp_path / "r")
    out = [json.loads(line) for line in made.data.read_text().splitlines()]
    assert [f["id"] for f in out] == list(range(len(visits())))
    assert [f["type"] for f in out] == ["Feature"] * len(out)


LINE = json.dumps({"user": 1, "poi": "p", "lat": 1, "lon": 2, "time": 3}) + "\n"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.jsonl", LINE + "{broken\n", ", line 2: this is not valid JSON (Expecting property name"),
        ("x.jsonl", LINE + "[1, 2]\n", ", line 2: this is not an object {...} with named values; correct it"),
        ("x.jsonl", LINE + LINE.replace("1", "null", 1), ", line 2: the user is missing; fill it in, or use --missing"),
        (
            "x.jsonl",
            LINE.replace('"poi"', '"spot"'),
            ": no column looks like the venue among user, spot, lat, lon, time",
        ),
        ("x.json", f"[{LINE}, 5]", ", row 2: this is not an object {...} with named values; correct it"),
        (
            "x.geojson",
            '{"type": "FeatureCollection", "features": []}',
            " is GeoJSON without features; give a file with",
        ),
        (
            "x.geojson",
            '{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": {"type": "LineString"}}]}',
            ", feature 1: its geometry is a LineString, not a point; give points",
        ),
        (
            "x.geojson",
            '{"type": "FeatureCollection", "crs": {"properties": {"name": "EPSG:3857"}}, "features": [1]}',
            " has another coordinate system than WGS 84 ({'properties': {'name': 'EPSG:3857'}}); convert it to degrees",
        ),
    ],
)
def test_what_is_wrong_is_named(name: str, content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert sentence(called("inspect", path)).startswith(f"{path}{says}")


def test_workbooks_that_are_refused(tmp_path: Path) -> None:
    def says(*rows: list[Any]) -> str:
        path = workbook(tmp_path / "x.xlsx", list(rows))
        return sentence(called("inspect", path)).removeprefix(str(path))

    assert says(["user", "poi"]) == " has columns but no check-ins; give a file with at least one row of data"
    assert says(["user", None, "lat"], [1, 2, 3]).startswith(", row 1: a column has no name; name all columns")
    assert says(["user", "user"], [1, 2]).startswith(", row 1: two columns have the same name; rename one")
    book = openpyxl.load_workbook(file("xlsx"))
    book["empty"].append(["x"])
    book.save(two := tmp_path / "two.xlsx")
    said = sentence(called("inspect", two))
    assert said == f"{two} has 2 sheets with data ('Sheet', 'empty'); leave only the sheet of check-ins in it"
    two.write_bytes(two.read_bytes()[:-300])
    assert sentence(called("inspect", two)).startswith(f"{two} is a damaged workbook (")


def test_without_openpyxl_one_sentence_names_the_extra(tmp_path: Path) -> None:
    code = "import sys; sys.modules['openpyxl'] = None; sys.argv = ['ghostpoi', 'inspect', sys.argv[1]]; "
    code += "from ghostpoi.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, str(file("xlsx"))], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"ghostpoi: .*values.xlsx is an Excel workbook, which needs openpyxl; install it with "
        r"pip install '/\S+\[excel\]', or export the sheet with the check-ins as CSV\n",
        done.stderr,
    )
