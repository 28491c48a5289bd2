"""Files that are not what their names say are read as what they are, and `inspect` says so."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from small_city import SEED, called, city, protect, sentence
from test_value_formats import file
from written_as import visits, zipped

from ghostpoi import formats

HEAD = "user,poi,category,lat,lon,time\n"


def csv() -> bytes:
    rows = (f"{v.user},{v.poi},{v.category},{v.lat},{v.lon},{v.time.isoformat()}\n" for v in visits())
    return (HEAD + "".join(rows)).encode()


def parquet(path: Path) -> bytes:
    pl.read_csv(csv()).write_parquet(path)
    return path.read_bytes()


def jsonl(_: Path) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in pl.read_csv(csv()).to_dicts())


def workbook(_: Path) -> bytes:
    return file("xlsx").read_bytes()


AND = "as its name says, and so will the release"
FILES: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "a.csv": (jsonl, f"a.csv holds JSON, not text {AND}"),
    "b.json": (lambda _: csv(), f"b.json holds text, not JSON {AND}"),
    "c.parquet": (lambda _: csv(), f"c.parquet holds text, not Parquet {AND}"),
    "d.xlsx": (lambda _: csv(), f"d.xlsx holds text, not an Excel workbook {AND}"),
    "e.csv": (parquet, f"e.csv holds Parquet, not text {AND}"),
    "f.csv": (workbook, f"f.csv holds an Excel workbook, not text {AND}"),
    "g.csv": (lambda _: gzip.compress(csv()), "g.csv is compressed as .gz, which its name does not say"),
    "h.csv.gz": (lambda _: csv(), "h.csv.gz is not compressed, although its name says so"),
    "i.csv.gz": (lambda _: bz2.compress(csv()), "i.csv.gz is compressed as .bz2, not .gz"),
    "j.csv": (
        lambda path: gzip.compress(jsonl(path)),
        f"j.csv is compressed as .gz, which its name does not say and holds JSON, not text {AND}",
    ),
    "k.csv": (lambda _: csv(), ""),
    "k.data": (lambda _: csv(), ""),
    "k.xlsx": (workbook, ""),
    "k.csv.zip": (lambda _: zipped(x=csv()), ""),
}


@pytest.mark.parametrize("name", FILES)
def test_inspect_says_what_a_file_is(name: str, tmp_path: Path) -> None:
    content, says = FILES[name]
    path = tmp_path / name
    path.write_bytes(content(tmp_path / "x"))
    assert json.loads(called("inspect", path, "--json").stdout)["misnamed"] == says
    notes = [line for line in called("inspect", path).stdout.replace("\n", " ").split("note: ") if name in line][1:]
    assert [" ".join(note.split()).startswith(says) for note in notes] == [True] * bool(says)
    table = formats.read(path).table
    assert table.venue_ids[table.venue].tolist() == [v.poi for v in visits()]


@pytest.mark.parametrize("name", ["a.csv", "e.csv", "h.csv.gz"])
def test_the_release_keeps_name_and_content(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name][0](tmp_path / "x"))
    made = protect(path, tmp_path / "r", "--seed", SEED)
    assert made.data.name == "checkins.csv"
    assert formats.read(made.data).kind == formats.read(path).kind
    assert called("verify", made.folder, "--against", path).returncode == 0
    assert called("report", made.folder).returncode == 0


def test_a_web_page_saved_as_csv_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "x.csv").write_text("<html><body>Sign in</body></html>")
    assert sentence(called("inspect", path)).startswith(f"{path} is a web page (HTML), not a table")


def test_by_regions_too(tmp_path: Path) -> None:
    path = tmp_path / "city.csv.gz"
    path.write_bytes(city().read_bytes())
    done = called("inspect", path, "--engine", "local", "--json")
    assert json.loads(done.stdout)["misnamed"] == "city.csv.gz is not compressed, although its name says so"
