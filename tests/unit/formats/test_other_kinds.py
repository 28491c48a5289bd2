"""Files that are not what they seem: one sentence says what they are and what to do."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest
from small_city import called, sentence


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, "user,poi\n")
    return out.getvalue()


VISIT = {"user": "a", "poi": "p", "lat": 1.0, "lon": 2.0, "time": 3}
KINDS = {
    "an empty JSON object": (b" {}\n", "is JSON without rows of check-ins; give one object per line"),
    "one JSON object": (
        json.dumps({"visits": [VISIT]}, indent=1).encode(),
        "is JSON without rows of check-ins; give one",
    ),
    "a web page": (b"\n<!DOCTYPE html>\n<html><p>a,b</p>", "is a web page (HTML), not a table; download the data"),
    "XML": (b"\xef\xbb\xbf<?xml version='1.0'?><gpx/>", "is XML, not a table; convert it to CSV"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "is an old Excel or Word file; export the"),
    "a 7z archive": (b"7z\xbc\xaf\x27\x1c" + bytes(99), "is a 7z archive; unpack it and give the file"),
    "a tar archive": (b"x.csv" + bytes(252) + b"ustar\x0000" + bytes(250), "is a tar archive; unpack it and give"),
    "a zip archive": (zipped("a.csv", "b.csv"), "is a zip archive"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["inspect", "protect"])
def test_a_file_that_is_no_table(command: str, kind: str, packed: bool, tmp_path: Path) -> None:
    content, says = KINDS[kind]
    path = tmp_path / "x.csv"
    path.write_bytes(gzip.compress(content) if packed else content)
    more = ["-o", tmp_path / "out"] if command == "protect" else []
    assert sentence(called(command, path, *more)).startswith(f"{path} {says}")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "header", ["[user],poi,cat,lat,lon,time", '"{user}",poi,cat,lat,lon,time', "<user>,poi,cat,lat,lon,time"]
)
def test_a_table_with_brackets_in_its_header_is_a_table(header: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\nu,v,c,1,2,3\n")
    assert "leaves nothing of 1 check-ins" in sentence(called("inspect", path))


def test_a_packed_database_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "city.gz"
    path.write_bytes(gzip.compress(b"SQLite format 3\x00" + bytes(99)))
    assert sentence(called("inspect", path)) == (f"{path} is an SQLite database; give the path of the database itself")
