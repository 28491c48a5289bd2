"""Rows that lack a value: refused, dropped, or kept as they are and counted as genuine."""

import json
from functools import cache
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
from small_city import SETS, Release, called, protect, scratch, sentence
from written_as import Visit, visits, written

import ghostpoi
from ghostpoi import formats
from ghostpoi.formats import Reading
from ghostpoi.formats.fields import lacks_value

HEADER = "user,poi,category,lat,lon,time,note\n"
GAPS = {3: 0, 10: 1, 40: 2, 77: 3, 300: 4, 500: 5, 501: 3}  # row: the field that it lacks
NAN = 501
AT = "lines 5, 12, 42, 79, 302, …"


def fields(v: Visit) -> list[str]:
    return [v.user, v.poi, v.category, str(v.lat), str(v.lon), f"{v.time:%Y-%m-%d %H:%M:%S}", f"n{v.time.hour % 3}"]


@cache
def gappy() -> Path:
    """The city as a table in which seven rows lack a value."""
    rows = [fields(v) for v in visits()]
    for row, field in GAPS.items():
        rows[row][field] = "NaN" if row == NAN else " " if row == 10 else ""
    path = scratch() / "gappy.csv"
    path.write_text(HEADER + "".join(",".join(row) + "\n" for row in rows))
    return path


@cache
def released(choice: str, *more: str) -> Release:
    return protect(gappy(), scratch() / f"gappy-{choice}{len(more)}", "--missing", choice, "--keep", "note", *more)


def test_the_first_rows_that_lack_a_value_are_named() -> None:
    for more in ([], ["--missing", "refuse"]):
        said = sentence(called("inspect", gappy(), *more))
        assert said == (
            f"{gappy()}, line 5: the user is missing (7 rows lack a value: {AT}); fill it in, or use --missing "
            "drop or --missing keep"
        )
    assert sentence(called("inspect", gappy(), "--missing", "skip")) == "--missing skip: use keep, drop or refuse"


def test_inspect_counts_them() -> None:
    found = json.loads(called("inspect", gappy(), "--missing", "drop", "--json").stdout)
    assert found["missing"] == {"rows": 7, "first": AT}
    assert found["checkins"] == len(visits()) - 7
    text = " ".join(called("inspect", gappy(), "--missing", "keep").stdout.split())
    assert f"note: 7 rows lack a value ({AT}) and are not described below" in text


def test_dropped_rows_are_left_out_and_counted() -> None:
    release = released("drop")
    clean, out = (path.read_text().splitlines() for path in (gappy(), release.data))
    rest = [line for row, line in enumerate(clean, -1) if row not in GAPS]
    assert [line.split(",")[::5] for line in out] == [line.split(",")[::5] for line in rest]  # user and time
    assert f"warning: 7 rows with missing values ({AT}): left out of the release" in release.done.stderr
    assert release.manifest["rows"]["missing"] == {"dropped": 7}
    assert release.manifest["data"]["rows"] == len(visits()) - 7
    done = called("verify", release.folder, "--against", gappy())
    assert done.returncode == 0, done.stdout
    assert "pass  missing values   7 rows, left out" in done.stdout


@pytest.mark.parametrize("more", [(), ("--no-candidate", "withhold", "--set", "method.size=2", "--set",
                                       "method.reach_km=0.1", "--set", "method.draw=even")])  # fmt: skip
def test_kept_rows_stay_as_they_are_and_count_as_genuine(more: tuple[str, ...]) -> None:
    release = released("keep", *more)
    clean, out = (path.read_text().splitlines() for path in (gappy(), release.data))
    manifest = release.manifest
    withheld = manifest["rows"]["withheld"]
    assert (withheld > 0) == bool(more)
    assert len(out) == len(clean) - withheld == manifest["data"]["rows"] + 1
    kept = [clean[row + 1] for row in GAPS]
    assert [line for line in out if line in kept] == kept
    if not more:
        assert [out[row + 1] for row in GAPS] == kept
    assert manifest["rows"]["missing"] == {"kept": 7}
    genuine = manifest["rows"]["left_genuine"]
    in_table = sum(manifest["rows"][part]["rows"] for part in ("in_sessions", "outside_sessions"))
    assert in_table == len(visits()) - 7
    others = genuine["rows"] - 7
    assert others >= 0
    assert genuine["share"] == round(genuine["rows"] / manifest["data"]["rows"], 3)
    assert "kept as they are, so they show genuine visits; --missing drop leaves them out" in release.done.stderr
    done = called("verify", release.folder, "--against", gappy())
    assert done.returncode == 0, done.stdout
    assert "pass  missing values   7 rows, as they were" in done.stdout


def test_an_export_says_that_it_leaves_them_out(tmp_path: Path) -> None:
    done = called("export", released("keep").folder, "--to", "hf", "-o", tmp_path / "export")
    why = "left out of the export, because other tools need every value"
    assert done.stderr == f"warning: 7 rows with missing values: {why}\n"
    assert pl.read_parquet(tmp_path / "export" / "released.parquet").height == len(visits()) - 7
    with pytest.warns(UserWarning, match=f"^7 rows with missing values: {why}$"):
        ghostpoi.export(released("keep").folder, "hf", tmp_path / "other")
    assert called("export", released("drop").folder, "--to", "hf", "-o", tmp_path / "none").stderr == ""


def test_a_dry_run_counts_them_too(tmp_path: Path) -> None:
    words = ["protect", gappy(), "-o", tmp_path / "r", "--keep", "note", "--dry-run", "--json", *SETS]
    keep, drop = (json.loads(called(*words, "--missing", choice).stdout) for choice in ("keep", "drop"))
    assert (keep["rows"], drop["rows"]) == (len(visits()), len(visits()) - 7)
    assert keep["left_genuine"] * keep["rows"] == pytest.approx(drop["left_genuine"] * drop["rows"] + 7)


def test_genuine_rows_grow_by_the_kept_ones() -> None:
    kept, dropped = (released(choice).manifest["rows"]["left_genuine"]["rows"] for choice in ("keep", "drop"))
    assert kept == dropped + 7


def test_report_and_audit_name_kept_rows(tmp_path: Path) -> None:
    release = protect(gappy(), tmp_path / "r", "--missing", "keep", "--keep", "note")
    split = ["--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2", "--leak", "0.3"]
    quick = ["--victim", "markov", "--no-naturalness", "--seeds", "1", "--adversaries", "none"]
    done = called("audit", gappy(), release.folder, *quick, *split)
    assert done.returncode == 0, done.stderr
    total = len(visits())
    said = f"7 more rows ({7 / total:.1%} of the release) lack a value and were kept as they are: they are genuine"
    assert said in " ".join(done.stdout.split())
    found = json.loads(called("audit", gappy(), release.folder, *quick, *split, "--json").stdout)
    assert found["rows"] == {"audited": total - 7, "kept_genuine": 7}
    assert called("report", release.folder).returncode == 0
    page, card = ((release.folder / name).read_text() for name in ("report.html", "card.md"))
    assert "Rows with missing values, kept as they are: genuine</dt><dd>7</dd>" in page
    assert f"{len(visits()):,} rows</dd>" in page
    assert "7 rows with missing values are genuine: they were kept as they are." in card


def test_a_changed_kept_row_is_found(tmp_path: Path) -> None:
    release = protect(gappy(), tmp_path / "r", "--missing", "keep", "--keep", "note")
    lines = release.data.read_text().splitlines(keepends=True)
    assert lines[4].startswith(",")
    parts = lines[4].split(",")
    lines[4] = ",".join([parts[0], visits()[0].poi, *parts[2:]])
    other = tmp_path / "other.csv"
    other.write_text("".join(lines))
    manifest = release.manifest
    release.data.write_bytes(other.read_bytes())
    manifest["data"]["sha256"] = sha256(other.read_bytes()).hexdigest()
    (release.folder / "manifest.json").write_text(json.dumps(manifest))
    done = called("verify", release.folder, "--against", gappy())
    assert done.returncode == 1
    assert "FAIL  missing values   row 1 has a different poi" in done.stdout


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_kept_rows_would_keep_their_user_ids_beside_pseudonyms(more: list[str], tmp_path: Path) -> None:
    words = ["protect", gappy(), "-o", tmp_path / "r", "--keep", "note", "--pseudonyms", "week", *more]
    said = sentence(called(*words, "--missing", "keep"))
    assert said == (
        f"{gappy()}: pseudonyms replace all user ids, but 7 rows with missing values ({AT}) would keep theirs; "
        "drop these rows with --missing drop"
    )
    assert not list(tmp_path.iterdir())


def test_parquet_rows_are_kept_too(tmp_path: Path) -> None:
    rows = [fields(v) for v in visits()]
    frame = pl.DataFrame(rows, schema=HEADER.strip().split(","), orient="row")
    frame = frame.with_columns(pl.col("lat", "lon").cast(pl.Float64), pl.col("time").str.to_datetime())
    hole = pl.int_range(pl.len()).is_in([2, 9])
    frame = frame.with_columns(poi=pl.when(hole).then(None).otherwise("poi")).drop("note")
    path = tmp_path / "x.parquet"
    frame.write_parquet(path)
    release = protect(path, tmp_path / "r", "--missing", "keep")
    out = pl.read_parquet(release.data)
    assert out[[2, 9]].equals(frame[[2, 9]])
    assert release.manifest["rows"]["missing"] == {"kept": 2}
    assert called("verify", release.folder, "--against", path).returncode == 0


def test_a_file_in_which_every_row_lacks_a_value(tmp_path: Path) -> None:
    path = written("all-gaps.csv", lambda v: f"{v.user},,{v.lat},{v.lon},1", "user,poi,lat,lon,time\n")
    said = sentence(called("inspect", path, "--missing", "drop"))
    assert said == f"{path}: no row has a value in every mapped column; map other columns with --map FIELD=COLUMN"


@pytest.mark.parametrize("text", ["NA", "n/a", "null", "None", "NaN", "NaT", "<NA>", "#N/A", "\\N", " NA ", ""])
@pytest.mark.parametrize("field", ["user", "poi", "lat", "time", "date", "point", "timezone"])
@pytest.mark.parametrize("kind", [pl.String, pl.Categorical])
def test_words_for_no_value_are_missing_values(text: str, field: str, kind: type[pl.DataType]) -> None:
    frame = pl.DataFrame({field: ["Nandu", text, "annul"], "category": ["NA", "None", "x"]})
    assert lacks_value(frame.with_columns(pl.col(field).cast(kind)))[field].to_list() == [False, True, False]


def test_categories_may_be_called_so_but_not_by_databases() -> None:
    assert lacks_value(pl.DataFrame({"category": ["NA", "\\N", None]}))["category"].to_list() == [False, True, True]


ROW = "u,v,c,1,2,3\n"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("u,NA,c,1,2,3", "the venue 'NA' stands for no value; fill it in, rename it if it is an id, or use --missing"),
        (
            "null,v,c,1,2,3",
            "the user 'null' stands for no value; fill it in, rename it if it is an id, or use",
        ),
        ("u,v,c,NA,2,3", "the latitude 'NA' stands for no value; fill it in, or use --missing drop or --missing keep"),
        ("u,v,c,nan,2,3", "the latitude is missing; fill it in, or use --missing drop or --missing keep"),
        ("u,v,c,1,2,NA", "the time 'NA' stands for no value; fill it in, or use --missing drop or --missing keep"),
        (r"u,v,\N,1,2,3", r"the category '\N' stands for no value; fill it in, or use --missing drop"),
    ],
)
def test_a_word_for_no_value_names_the_option(row: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"user,poi,category,lat,lon,time\n{ROW}{row}\n{ROW}")
    assert sentence(called("inspect", path)).startswith(f"{path}, line 3: {says}")
    file = formats.read(formats.Source(path, Reading(missing="drop")))
    assert (len(file.table), file.missing.tolist(), file.missing_at) == (2, [1], "line 3")


def test_features_without_a_geometry(tmp_path: Path) -> None:
    kinds = {5: "null", 6: '{"type": "Point", "coordinates": []}', 8: '{"type": "Point", "coordinates": [1, 2, 3]}'}
    features = []
    for row, v in enumerate(visits()):
        at = kinds.get(row, f'{{"type": "Point", "coordinates": [{v.lon}, {v.lat}]}}')
        about = json.dumps({"user": v.user, "poi": v.poi if row != 8 else "alone", "time": v.time.isoformat()})
        features.append(f'{{"type": "Feature", "geometry": {at}, "properties": {about}}}')
    path = tmp_path / "x.geojson"
    path.write_text(f'{{"type": "FeatureCollection", "features": [{", ".join(features)}]}}')
    assert sentence(called("inspect", path)).startswith(
        f"{path}, feature 6: the latitude is missing (2 rows lack a value: "
    )
    release = protect(path, tmp_path / "r", "--missing", "keep", "--drop", "geometry.altitude")
    out = json.loads(release.data.read_text())["features"]
    clean = json.loads(path.read_text())["features"]
    assert [row for row, feature in enumerate(out) if feature["geometry"] is None] == [5, 6]
    assert [feature["properties"] for feature in out[5:7]] == [feature["properties"] for feature in clean[5:7]]
    assert all(len(f["geometry"]["coordinates"]) == 2 for f in out if f["geometry"])
    assert release.manifest["rows"]["missing"] == {"kept": 2}
    assert called("verify", release.folder, "--against", path).returncode == 0


def test_empty_points(tmp_path: Path) -> None:
    def line(v: Visit) -> str:
        return f"{v.user}|{v.poi}|POINT ({v.lon} {v.lat})|{v.time:%Y-%m-%dT%H:%M:%SZ}"

    empty = ["POINT EMPTY", "SRID=4326;point empty", "POINT (NaN NaN)"]
    lines = [line(v) for v in visits()]
    for row, point in enumerate(empty):
        lines[row] = lines[row].replace(lines[row].split("|")[2], point)
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["user|poi|geom|time", *lines]) + "\n")
    release = protect(path, tmp_path / "r", "--map", "point=geom", "--missing", "keep")
    assert release.data.read_text().splitlines()[1:4] == lines[:3]
    assert release.manifest["rows"]["missing"] == {"kept": 3}


def test_one_row_is_not_several(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = gappy().read_text().splitlines()
    path.write_text("\n".join(line for row, line in enumerate(lines, -1) if row not in GAPS or row == 3) + "\n")
    text = " ".join(called("inspect", path, "--missing", "keep").stdout.split())
    assert "note: 1 row lacks a value (line 5) and is not described below" in text
    release = protect(path, tmp_path / "r", "--missing", "keep", "--keep", "note")
    said = (
        "1 row with missing values (line 5): kept as it is, so it shows a genuine visit; --missing drop leaves it out"
    )
    assert said in release.done.stderr
    assert "pass  missing values   1 row, as it was" in called("verify", release.folder, "--against", path).stdout
    assert called("report", release.folder).returncode == 0
    assert "1 row with missing values is genuine: it was kept as it is." in (release.folder / "card.md").read_text()
