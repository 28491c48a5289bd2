"""Zip archives of one file, bz2 files, and check-ins on standard input."""

import bz2
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import openpyxl
import polars as pl
import pytest
from small_city import SEED, SETS, called, city, protect, release, sentence
from written_as import visits, zipped

from ghostpoi import formats
from ghostpoi.formats import Source
from ghostpoi.formats.content import ending

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".bz2": bz2.compress,
    ".zip": lambda data: zipped(city=data),
}


@pytest.mark.parametrize("suffix", PACK)
def test_a_packed_file_gives_the_release_of_its_content(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"city.txt{suffix}"
    path.write_bytes(PACK[suffix](city().read_bytes()))
    made = protect(path, tmp_path / "r", "--method", "random", "--seed", SEED)
    assert made.data.name == "checkins.txt"
    assert made.data.read_bytes() == release().data.read_bytes()
    done = called("verify", made.folder, "--against", path)
    assert done.returncode == 0, done.stdout


def test_several_bz2_streams_are_one_file(tmp_path: Path) -> None:
    path, data = tmp_path / "x.bz2", city().read_bytes()
    path.write_bytes(bz2.compress(data[:5000]) + bz2.compress(data[5000:]))
    found, plain = (json.loads(called("inspect", p, "--json").stdout) for p in (path, city()))
    assert found == plain


@pytest.mark.parametrize("suffix", PACK)
def test_a_cut_file_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.txt{suffix}"
    data = PACK[suffix](city().read_bytes())
    path.write_bytes(data[: len(data) // 2])
    assert sentence(called("inspect", path)).startswith(f"{path} is a damaged compressed file (")


def test_folders_and_mac_files_of_an_archive_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(**{"data/": b"", "data/city.txt": city().read_bytes(), "__MACOSX/._city.txt": b"x"}))
    assert called("inspect", path).returncode == 0


def test_an_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(a=b"1", b=b"2"))
    said = sentence(called("inspect", path))
    assert said == f"{path} is a zip archive of 2 files; unpack it and give the file of check-ins inside it"


def test_an_encrypted_archive_is_not_called_damaged(tmp_path: Path) -> None:
    data = bytearray(zipped(city=city().read_bytes()))
    data[6] |= 1  # the flag in the header of the file, and in the directory of the archive
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    said = sentence(called("inspect", path))
    assert said == f"{path} is an encrypted zip archive; decrypt it and give the file inside it"


@pytest.mark.parametrize("suffix", PACK)
def test_a_bomb_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.csv{suffix}"
    # bzip2 is slow on repetitions; its streams may follow each other in a file.
    times = 100 if suffix == ".bz2" else 1
    path.write_bytes(PACK[suffix](b"u,p\n" * ((25 << 20) // times)) * times)
    assert "expands to more than 200 times its size" in sentence(called("inspect", path))


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_check_ins_on_standard_input(more: list[str], tmp_path: Path) -> None:
    words = ["protect", "-", "-o", str(tmp_path / "r"), "--method", "random", "--seed", str(SEED), *SETS, *more]
    with city().open("rb") as file:
        done = subprocess.run([sys.executable, "-m", "ghostpoi", *words], stdin=file, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if not more:
        assert (tmp_path / "r" / "checkins.txt").read_bytes() == release().data.read_bytes()
        assert called("verify", tmp_path / "r", "--against", city()).returncode == 0


CSV = ["user,venue_id,category,lat,lon,time", *(f"{v.user},{v.poi},c,{v.lat},{v.lon},{v.time}" for v in visits())]


@pytest.mark.parametrize("engine", [[], ["--engine", "local"]])
def test_an_archive_without_a_suffix_is_named_by_its_content(engine: list[str], tmp_path: Path) -> None:
    """All steps take the release."""
    path, folder = tmp_path / "x.zip", tmp_path / "r"
    path.write_bytes(zipped(inside="\n".join(CSV).encode()))
    made = protect(path, folder, *engine)
    assert made.data.name == "checkins.csv"
    quick = ["--adversaries", "none", "--victim", "markov", "--seeds", 1, "--no-naturalness",
             "--set", "filters.train_share=0.4", "--set", "filters.val_share=0.3"]  # fmt: skip
    for words in (
        ["verify", folder, "--against", path], ["audit", path, folder, *quick, "--cache", tmp_path / "cache"],
        ["report", folder], ["export", folder, "--to", "skmob", "-o", tmp_path / "city"],
    ):  # fmt: skip
        done = called(*words, *(engine if words[0] in ("verify", "audit") else []))
        assert done.returncode == 0, done.stderr + done.stdout


def _parquet() -> bytes:
    pl.DataFrame({"user": [1]}).write_parquet(out := io.BytesIO())
    return out.getvalue()


def _workbook() -> bytes:
    (book := openpyxl.Workbook()).active.append(["user"])
    book.save(out := io.BytesIO())
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (b"user,poi", ".csv"),
        (b"user;poi", ".csv"),
        (b"\xef\xbb\xbfuser\tpoi", ".tsv"),
        (_parquet(), ".parquet"),
        (b"1\tv\tc\tBar\t40.5\t-74.0\t-240\tTue Apr 03 18:00:09 +0000 2012", ".txt"),
        (b' [{"user": 1}]', ".json"),
        (b'{"user": 1}', ".jsonl"),
        (b'{"type": "Feature", "geometry": null}', ".geojson"),
        (_workbook(), ".xlsx"),
    ],
)
def test_suffixes_of_contents(content: bytes, suffix: str) -> None:
    kind = formats.decoded(Source(Path("x")), content)[1].kind
    assert ending(Source(Path("-")), kind) == suffix
    assert ending(Source(Path("x.zip")), kind) == suffix
    assert ending(Source(Path("x.dat.zip")), kind) == ".dat"
    assert ending(Source(Path("x")), kind) == ""


def test_nothing_on_standard_input() -> None:
    words = [sys.executable, "-m", "ghostpoi", "inspect", "-"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "ghostpoi: - is empty; give a file with at least one check-in\n")
