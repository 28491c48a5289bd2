"""croissant.json: it validates, its records are those of the file, and no column name can break it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from croissant_files import ODD, dataset, records, rewritten, rich, table
from small_city import SEED, called, city, release

from ghostpoi.errors import InputError
from ghostpoi.reports.dataset_card import croissant
from ghostpoi.reports.page import write_pages
from ghostpoi.reports.release_view import open_release


def write_croissant(folder: Path) -> Path:
    """Write the metadata of a release without its page."""
    path = folder / "croissant.json"
    path.write_text(croissant(open_release(folder)), "utf-8")
    return path


def fields(path: Path) -> dict[str, dict[str, Any]]:
    (records,) = json.loads(path.read_text())["recordSet"]
    return {field["name"]: field for field in records["field"]}


@pytest.mark.parametrize("kind", ["txt", "csv", "parquet"])
def test_it_validates_and_tells_of_the_file(kind: str, tmp_path: Path) -> None:
    made = release("random", kind)
    folder = rewritten(tmp_path, made)
    path = write_croissant(folder)
    assert path == folder / "croissant.json"
    dataset(path)
    found = json.loads(path.read_text())
    purposes = [rule["odrl:constraint"]["odrl:rightOperand"] for rule in found["usageInfo"]["odrl:prohibition"]]
    assert purposes == ["re-identification of people", "prediction of a person's next visit"]
    (file,) = found["distribution"]
    data = made.data.read_bytes()
    assert file["sha256"] == hashlib.sha256(data).hexdigest()
    assert file["contentSize"] == f"{len(data)} B"
    assert file["contentUrl"] == made.data.name
    columns = fields(path)
    assert all(field["description"].endswith(".") for field in columns.values())
    used = made.manifest["columns"]["fields"]
    assert set(used.values()) <= set(columns)
    assert columns[used["lat"]]["dataType"] == columns[used["lon"]]["dataType"] == "sc:Float"
    assert columns[used["time"]]["dataType"] == "sc:DateTime"
    assert columns[used["user"]]["dataType"] == "sc:Integer"
    assert "changes with the venue" in columns[used["poi"]]["description"]
    assert "as in the publisher's file" in columns[used["time"]]["description"]
    before = path.read_bytes()
    assert write_croissant(folder).read_bytes() == before
    assert called("verify", folder).returncode == 0


@pytest.mark.parametrize("kind", ["txt", "csv", "parquet"])
def test_no_value_of_the_data_and_no_seed(kind: str, tmp_path: Path) -> None:
    text = write_croissant(rewritten(tmp_path, release("random", kind))).read_text()
    assert all(form not in text for form in (str(SEED), f"{SEED:x}", f"{SEED:X}"))
    for line in city().read_text("latin-1").splitlines():
        assert not any(field in text for field in line.split("\t")[1:3])


def test_records_of_csv_are_those_of_the_file(tmp_path: Path) -> None:
    head, *rows = rich()
    found = records(write_croissant(rewritten(tmp_path, release("random", "csv"))))
    assert len(found) == len(rows)
    for record, row in zip(found, rows, strict=True):
        for name, text in zip(head, row, strict=True):
            value = record[f"checkins/{name}"]
            if name in ("lat", "lng", "Who"):
                assert value == float(text)
            elif name == "timestamp":
                assert value == pd.Timestamp(text)
            else:
                assert (value or b"").decode() == text


def test_records_of_parquet_are_those_of_the_file(tmp_path: Path) -> None:
    made = release("random", "parquet")
    frame = pl.read_parquet(made.data)
    found = records(write_croissant(rewritten(tmp_path, made)))
    for name in frame.columns:
        values = [record[f"checkins/{name}"] for record in found]
        assert [v.decode() if isinstance(v, bytes) else v for v in values] == frame[name].to_list()


def test_records_of_tsmc2014_are_those_of_the_file(tmp_path: Path) -> None:
    """No header: the fields are cut from lines. mlcroissant reads lines of UTF-8 without commas alone."""
    made = release("random")
    content = made.data.read_bytes().replace(b"\xe9", b"e").replace(b",", b" ")
    lines = content.decode("ascii").splitlines()
    found = records(write_croissant(rewritten(tmp_path, made, content)))
    assert len(found) == len(lines)
    for record, line in zip(found, lines, strict=True):
        user, venue, category, name, lat, lon, offset, time = line.split("\t")
        assert list(record.values()) == [
            int(user), venue.encode(), category.encode(), name.encode(), float(lat), float(lon), int(offset),
            pd.Timestamp(time),
        ]  # fmt: skip


def test_tabs(tmp_path: Path) -> None:
    folder = rewritten(tmp_path, release("random", "csv"), table(rich(), "\t").encode())
    path = write_croissant(folder)
    assert json.loads(path.read_text())["distribution"][0]["encodingFormat"] == "text/tab-separated-values"
    assert [r["checkins/title"].decode() for r in records(path)] == [row[0] for row in rich()[1:]]


@pytest.mark.parametrize(("delimiter", "word"), [(";", "semicolons"), ("|", "vertical bars")])
def test_other_delimiters_are_said_in_words(delimiter: str, word: str, tmp_path: Path) -> None:
    path = write_croissant(rewritten(tmp_path, release("random", "csv"), table(rich(), delimiter).encode()))
    dataset(path)
    assert word in json.loads(path.read_text())["distribution"][0]["description"]
    assert list(fields(path)) == rich()[0]


def test_odd_column_names(tmp_path: Path) -> None:
    head, *rows = rich()
    extra = [*ODD, "", " padded"]
    wide = [[*head, *extra], *([*row, *(f"v{i}" for i in range(len(extra)))] for row in rows)]
    written = write_croissant(rewritten(tmp_path, release("random", "csv"), table(wide).encode()))
    found = fields(written)
    assert [*ODD, "padded"] == [name for name in found if name in (*ODD, "padded")]
    ids = [field["@id"] for field in found.values()]
    assert len(set(ids)) == len(ids) == len(wide[0])
    first = records(written)[0]
    got = [first[i] for i in ids[len(head) :]]
    assert got == [
        f"v{i}".encode() if name else None for i, name in enumerate(extra)
    ]  # no name: it cannot be asked for


def test_types_of_text_columns(tmp_path: Path) -> None:
    head, *rows = rich()
    values = {
        "zeros": ["007", "12"], "whole": ["7", "-12"], "gaps": ["7", ""], "real": ["1e5", "-.5"],
        "flag": ["true", "False"], "none": ["", ""], "mixed": ["7", "x"], "huge": ["9" * 30, "1"],
    }  # fmt: skip
    wide = [[*head, *values], *([*row, *(v[i % 2] for v in values.values())] for i, row in enumerate(rows))]
    folder = rewritten(tmp_path, release("random", "csv"), table(wide).encode())
    found = fields(write_croissant(folder))
    assert {name: found[name]["dataType"].removeprefix("sc:") for name in values} == {
        "zeros": "Text", "whole": "Integer", "gaps": "Integer", "real": "Float", "flag": "Boolean", "none": "Text",
        "mixed": "Text", "huge": "Float",
    }  # fmt: skip
    rows_read = records(folder / "croissant.json")
    assert [r["checkins/gaps"] for r in rows_read[:2]] == [7, None]
    assert [r["checkins/flag"] for r in rows_read[:2]] == [True, False]


def test_types_of_parquet_columns(tmp_path: Path) -> None:
    made = release("random", "parquet")
    frame = pl.read_parquet(made.data)
    n = frame.height
    frame.with_columns(
        day=pl.Series([pd.Timestamp("2012-04-03").date()] * n),
        flag=pl.Series([True] * n),
        cat=pl.Series(["x"] * n, dtype=pl.Categorical),
        cost=pl.Series([1.5] * n).cast(pl.Float32),
        **{"two\nlines": pl.Series(["x"] * n)},
    ).write_parquet(tmp_path / "x.parquet")
    folder = rewritten(tmp_path, made, (tmp_path / "x.parquet").read_bytes())
    path = write_croissant(folder)
    dataset(path)
    kinds = {name: field["dataType"] for name, field in fields(path).items()}
    assert [kinds[name] for name in ("day", "flag", "cat", "cost", "spot")] == [
        "sc:Date", "sc:Boolean", "sc:Text", "sc:Float", "sc:Integer",
    ]  # fmt: skip


def test_no_release(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is neither a release folder nor a file"):
        write_croissant(tmp_path / "no")
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        write_croissant(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_release(tmp_path: Path) -> None:
    made = release("random")
    folder = rewritten(tmp_path, made, change=lambda m: m.pop("tool"))
    with pytest.raises(InputError, match=r"is not a manifest of ghostpoi .tool is missing"):
        write_croissant(folder)
    assert not (folder / "croissant.json").exists()
    folder = rewritten(tmp_path / "other", made)
    (folder / made.data.name).write_bytes(b"x")
    with pytest.raises(InputError, match=r"is damaged .* differs from the manifest"):
        write_croissant(folder)
    assert not (folder / "croissant.json").exists()


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = rewritten(tmp_path, release("random"))

    def full(*given: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match=r"cannot be written \(no space left on device\)"):
        write_pages(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["checkins.txt", "manifest.json"]  # edited, so unsigned
