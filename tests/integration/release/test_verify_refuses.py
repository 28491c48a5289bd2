"""verify follows no links, and of what nobody signed it accepts only what it computes again."""

import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest
from sample_releases import copied, put_manifest
from small_city import Release, called, city, protect, release, rich_frame, rich_parquet, scratch, sentence

Manifest = dict[str, Any]


def failed(folder: Path, *more: object) -> dict[str, str]:
    """The checks that fail, with what they say."""
    done = called("verify", folder, *more, "--json")
    assert done.returncode in (0, 1), done.stderr
    found = {c["check"]: c["detail"] for c in json.loads(done.stdout)["checks"] if not c["passed"]}
    assert done.returncode == bool(found)
    return found


@cache
def parts() -> Release:
    """The release of a folder with two parts."""
    folder = scratch() / "linked-parts"
    (folder / "in" / "a").mkdir(parents=True)
    frame = rich_frame().drop("mood", "checkin")
    frame.head(500).write_csv(folder / "in" / "a" / "one.csv")
    frame.slice(500).write_csv(folder / "in" / "two.csv")
    return protect(folder / "in", folder / "r", "--map", "user=Who", "--map", "poi=spot")


def relinked(path: Path, target: Path) -> None:
    """Put a link in place of a file or a folder, which becomes the target."""
    target.parent.mkdir(exist_ok=True)
    os.replace(path, target)
    path.symlink_to(target)


@pytest.mark.parametrize("name", ["checkins.txt", "manifest.json"])
def test_a_link_in_place_of_a_file_is_refused(name: str, tmp_path: Path) -> None:
    folder = copied(release("random"), tmp_path)
    relinked(folder / name, tmp_path / "release.private" / name)
    assert failed(folder)["data file"].startswith(f"{name} is a link, which may lead to private data; put the file")
    assert "is a link" in failed(folder, "--against", city())["data file"]


@pytest.mark.parametrize("name", ["checkins/two.csv", "checkins/a", "checkins"])
def test_a_link_in_place_of_a_part_or_a_folder_is_refused(name: str, tmp_path: Path) -> None:
    folder = copied(parts(), tmp_path)
    assert failed(folder, "--against", parts().file) == {}
    relinked(folder / name, tmp_path / "release.private" / "moved")
    assert failed(folder)["data file"].startswith(f"{name} is a link")


def test_a_link_in_place_of_the_release_is_refused(tmp_path: Path) -> None:
    folder = copied(release("random"), tmp_path)
    (tmp_path / "latest").symlink_to(folder)
    assert "found a link in place of the folder" in failed(tmp_path / "latest")["nothing private"]


def changed(made: Release, tmp_path: Path, change: Callable[[Manifest], object]) -> Path:
    """The release with another manifest, which is unsigned."""
    manifest = made.manifest
    change(manifest)
    folder = copied(made, tmp_path)
    put_manifest(folder, manifest)
    return folder


FORGED: dict[str, Callable[[Manifest], object]] = {
    "another disclosure": lambda m: m["disclosure"].update(category="any"),
    "no aggregates": lambda m: m["disclosure"].update(aggregates=["nothing"]),
    "groups": lambda m: m["disclosure"].update(category_groups=[["Bar", "food"]]),
    "fewer kept columns": lambda m: m["columns"].update(kept=[]),
    "more kept columns": lambda m: m["columns"]["kept"].append("mood"),
    "kept on request": lambda m: m["columns"].update(kept_on_request=["mood"]),
    "dropped": lambda m: m["columns"].update(dropped=["timezone_offset"]),
    "a changed column that is kept": lambda m: m["columns"]["changed_with_the_venue"].append("timezone_offset"),
    "a version": lambda m: m["tool"].update(version="9.9"),
    "another tool": lambda m: m["tool"].update(name="other"),
    "a protocol": lambda m: m.update(protocol="easy"),
    "a setting": lambda m: m["settings"]["rounds"].update(outer="many"),
    "a setting left out": lambda m: m["settings"]["rounds"].pop("outer"),
    "an unknown method": lambda m: m.update(method="best"),
    "rows": lambda m: m["data"].update(rows=77),
    "counts of rows": lambda m: m["rows"]["in_sessions"].update(rows=1),
}


@pytest.mark.parametrize("case", FORGED)
def test_what_does_not_follow_from_the_release_fails_without_the_clean_file(case: str, tmp_path: Path) -> None:
    assert "manifest" in failed(changed(release("random"), tmp_path, FORGED[case]))


@pytest.mark.parametrize("section", ["tool", "columns", "disclosure", "rows", "speed", "data", "plausibility"])
def test_a_key_that_no_release_has_could_hold_anything(section: str, tmp_path: Path) -> None:
    folder = changed(release("random"), tmp_path, lambda m: m[section].update(note="clean venues: 1, 2, 3"))
    assert f"found {section}.note" in failed(folder)["nothing private"]


@pytest.mark.parametrize("rows", ["x", None, -1, 1.5, True])
def test_a_number_of_rows_is_a_number(rows: object, tmp_path: Path) -> None:
    folder = changed(release("random"), tmp_path, lambda m: m["data"].update(rows=rows))
    assert "data.rows has the wrong type" in sentence(called("verify", folder))
    assert "data.rows has the wrong type" in sentence(called("verify", folder, "--against", city()))


def test_a_signature_vouches_for_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ghostpoi.release.verify.__version__", "9.9")
    folder = copied(release("random"), tmp_path)
    assert failed(folder) == {}
    (folder / "manifest.sig").unlink()
    assert failed(folder)["manifest"].endswith("only the version that made an unsigned release can check it")


def forged_data(made: Release, tmp_path: Path, change: Callable[[Path], object]) -> Path:
    """The release with other bytes in its data, whose hash an unsigned manifest states."""
    folder = copied(made, tmp_path)
    data = folder / made.data.name
    change(data)
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    put_manifest(folder, made.manifest | {"data": made.manifest["data"] | {"sha256": digest}})
    return folder


def with_note(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"note": "clean"}), path)


def with_column_note(path: Path) -> None:
    table = pq.read_table(path)
    schema = table.schema.set(0, table.schema.field(0).with_metadata({"note": "clean"}))
    pq.write_table(table.cast(schema), path)


def with_bytes_inside(path: Path) -> None:
    """Put bytes between the rows and the footer, which no reader looks at."""
    data = path.read_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:end] + b"clean venues" + data[end:])


@pytest.mark.parametrize("change", [with_note, with_column_note, with_bytes_inside])
def test_a_parquet_file_that_nobody_signed_holds_its_rows_only(
    change: Callable[[Path], object], tmp_path: Path
) -> None:  # fmt: skip
    made = release("random", "parquet")
    assert failed(forged_data(made, tmp_path / "same", lambda path: None)) == {}
    folder = forged_data(made, tmp_path / "other", change)
    said = "checkins.parquet holds more than its rows, and no signature vouches for that"
    assert failed(folder)["data file"] == said
    assert failed(folder, "--against", rich_parquet())["data file"] == said


def test_metadata_that_the_publisher_keeps_take_a_signature(tmp_path: Path) -> None:
    table = pq.read_table(rich_parquet())
    pq.write_table(table.replace_schema_metadata({"note": "mine"}), tmp_path / "noted.parquet")
    more = ("--map", "user=Who", "--map", "poi=spot", "--keep", "checkin", "--keep-metadata")
    made = protect(tmp_path / "noted.parquet", tmp_path / "r", *more)
    assert failed(made.folder, "--against", made.file) == {}
    (made.folder / "manifest.sig").unlink()
    assert "holds more than its rows" in failed(made.folder)["data file"]


def appended(text: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes() + text)


def test_blank_lines_after_the_rows_are_refused_if_nobody_signed_them(tmp_path: Path) -> None:
    made = release("random", "csv")
    assert "holds more than its rows" in failed(forged_data(made, tmp_path / "a", appended(b"\r\n\n\r\n")))["data file"]
    before = forged_data(made, tmp_path / "b", lambda path: path.write_bytes(b"\n\r\n" + path.read_bytes()))
    assert "holds more than its rows" in failed(before)["data file"]


def test_the_end_of_the_data_is_that_of_the_file(tmp_path: Path) -> None:
    made = release("random", "csv")
    folder = forged_data(made, tmp_path, lambda path: path.write_bytes(path.read_bytes().rstrip(b"\r\n")))
    assert failed(folder, "--against", made.file)["rows"] == "the header or the end of the data is not that of the file"


@pytest.mark.parametrize("ending", ["json", "geojson", "xlsx"])
def test_records_that_nobody_signed_are_written_again(ending: str, tmp_path: Path) -> None:
    frame = rich_frame().select("Who", "spot", "catid", "lat", "lng", "timestamp")
    file = tmp_path / f"in.{ending}"
    if ending == "xlsx":
        book = openpyxl.Workbook()
        for row in (frame.columns, *frame.rows()):
            book.active.append(row)
        book.save(file)
    elif ending == "json":
        frame.write_json(file)
    else:
        file.write_text(json.dumps({"type": "FeatureCollection", "features": [
            {"type": "Feature", "properties": {k: v for k, v in row.items() if k not in ("lat", "lng")},
             "geometry": {"type": "Point", "coordinates": [float(row["lng"]), float(row["lat"])]}}
            for row in frame.iter_rows(named=True)
        ]}))  # fmt: skip
    made = protect(file, tmp_path / "r", "--map", "user=Who", "--map", "poi=spot")
    (made.folder / "manifest.sig").unlink()
    assert failed(made.folder, "--against", file) == {}
    folder = forged_data(made, tmp_path / "x", appended(b"\0" if ending == "xlsx" else b"\n"))
    assert "holds more than its rows" in failed(folder)["data file"]


def test_columns_that_never_were_are_not_dropped(tmp_path: Path) -> None:
    folder = changed(release("random"), tmp_path, lambda m: m["columns"].update(dropped=["salary"]))
    assert "which the file does not have" in failed(folder, "--against", city())["rows"]


def test_learned_groups_are_learned_again(tmp_path: Path) -> None:
    made = release("crowd", "txt", "--set", "method.category=group")

    def swap(manifest: Manifest) -> None:
        groups = manifest["disclosure"]["category_groups"]
        first, other = groups[0], next(pair for pair in groups if pair[1] != groups[0][1])
        first[1], other[1] = other[1], first[1]

    assert failed(changed(made, tmp_path / "same", lambda m: None), "--against", city()) == {}
    found = failed(changed(made, tmp_path / "other", swap), "--against", city())
    assert found["category"] == "the manifest states other groups of categories than the file gives"
