"""Run one mutated input through the commands and check what must hold."""

import contextlib
import csv
import io
import json
import re
import shutil
import sys
import traceback
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from fuzz.manifests import manifest
from fuzz.parquet_files import parquet_file
from fuzz.text_files import text_file
from ghostpoi.cli import main
from ghostpoi.cli.app import FAULT
from ghostpoi.formats import Source
from ghostpoi.formats.content import load

SEED = 0xC0FFEE00112233445566778899AABBCC
LOOSE = [
    word
    for name in ("min_poi_checkins", "min_user_checkins", "min_session_length")
    for word in ("--set", f"filters.{name}=1")
]
KINDS = ("text", "text", "text", "parquet", "parquet", "manifest")


def run(*words: object) -> tuple[int, str, str]:
    """Run the command line in this process. A traceback is an error of this function."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["ghostpoi", *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as e:
        code = e.code
    finally:
        sys.argv = before
    assert code in (0, 1, 2), f"exit code {code}"
    assert FAULT not in err.getvalue(), err.getvalue()
    assert all(c.isprintable() for text in (out, err) for c in text.getvalue().replace("\n", "")), (
        "raw control characters"
    )
    if code == 2:
        lines = [line for line in err.getvalue().splitlines() if not line.startswith("warning: ")]
        assert len(lines) == 1, f"not one sentence: {err.getvalue()}"
        assert re.fullmatch("ghostpoi: .+", lines[0])
        assert "memory is not enough" not in lines[0], "too much memory"
    return int(code or 0), out.getvalue(), err.getvalue()


def try_case(index: int, seed: int, folder: Path, release: Path, clean: Path) -> str:
    """Make the input of this index, run it, and return what came of it: a few words, or a complaint with a colon."""
    draw = Random(f"{seed}:{index}")
    here = folder / f"case-{index}"
    here.mkdir()
    try:
        kind = draw.choice(KINDS)
        if kind == "manifest":
            result = _manifest(draw, here, release, clean)
        else:
            name, data = text_file(draw) if kind == "text" else parquet_file(draw)
            (here / name).write_bytes(data)
            result = _file(draw, here, here / name)
    except BaseException as e:  # polars panics with one that is no Exception
        if isinstance(e, KeyboardInterrupt):
            raise
        return f"case {index}: {type(e).__name__}: {e}\n{traceback.format_exc(limit=-6)}"
    shutil.rmtree(here)
    return f"{kind} {result}"


def _manifest(draw: Random, here: Path, release: Path, clean: Path) -> str:
    copy = here / "release"
    shutil.copytree(release, copy)
    text = (copy / "manifest.json").read_text("utf-8")
    (copy / "manifest.json").write_bytes(manifest(draw, text))
    if draw.random() < 0.5:  # without a seal, which would give every change away
        for path in set(copy.iterdir()) - {copy / "manifest.json", copy / "checkins.txt"}:
            path.unlink()
    before = set(copy.iterdir())
    code = run("verify", copy, *(["--against", clean] if draw.random() < 0.7 else []))[0]
    assert set(copy.iterdir()) == before
    return ("passed", "failed", "refused")[code]


def _file(draw: Random, here: Path, file: Path) -> str:
    json_flag = ["--json"] if draw.random() < 0.3 else []
    readable = run("inspect", file, *LOOSE, *json_flag)[0] == 0
    release = here / "release"
    keep = ["--keep", "kept"] if b"kept" in file.read_bytes() else []
    more = draw.choice(([], [], ["--no-candidate", "withhold"], ["--keep-metadata"]))
    method = draw.choice(("random", "crowd"))
    words = ("protect", file, "-o", release, "--method", method, "--seed", SEED, *LOOSE, *keep, *more, *json_flag)
    made = run(*words)[0]
    left = {p.name for p in here.iterdir()}
    if made == 2:
        assert left <= {file.name, "release.private"}, f"left behind: {left}"
        return "refused"
    assert made == 0
    assert readable, "protect accepts what inspect refuses"
    assert left == {file.name, "release", "release.private"}
    found = json.loads((release / "manifest.json").read_text("utf-8"))
    if not found["rows"]["withheld"]:
        _same_other_fields(file, release / found["data"]["file"], found)
        code, out, err = run("verify", release, "--against", file)
        failed = [line for line in out.splitlines() if line.startswith("FAIL")]
        risky = bool(keep) and all(line.startswith("FAIL  kept columns") for line in failed)  # kept on request
        assert code == (1 if failed else 0), out + err
        assert not failed or risky, out + err
    return "released"


def _same_other_fields(file: Path, written: Path, found: dict) -> None:
    changed = set(found["columns"]["changed_with_the_venue"])
    before, after = load(Source(file)), load(Source(written))
    tsmc = found["data"]["format"] == "tsmc2014"
    if before.startswith(b"PAR1") and not tsmc:
        one, two = (pq.ParquetFile(io.BytesIO(data)).read() for data in (before, after))
        assert one.schema.equals(two.schema), "the schema differs"
        for name in set(one.column_names) - changed:
            a, b = one.column(name), two.column(name)
            assert a.equals(b) or str(a.to_pylist()) == str(b.to_pylist()), f"the column {name!r} differs"
        return
    first = before.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").split(b"\n", 1)[0]
    delimiter = b"\t" if tsmc else max((b",", b"\t", b";", b"|"), key=first.count)
    one, two = (fields(data, delimiter, quotes=not tsmc) for data in (before, after))
    assert len(one) == len(two), "the number of rows differs"
    if tsmc:
        kept = {0, 7} if "timezone_offset" in changed else {0, 6, 7}
    else:
        assert one[0] == two[0], "the header differs"
        header = first.decode("utf-8" if _is_utf8(before) else "latin-1").rstrip("\r")
        names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter.decode()))]
        kept = {at for at, name in enumerate(names) if name not in changed}
    for number, (a, b) in enumerate(zip(one, two, strict=True)):
        assert len(a) == len(b), f"row {number} has {len(b)} fields, not {len(a)}"
        assert all(a[at] == b[at] for at in kept), f"row {number} differs: {a} {b}"


def fields(data: bytes, delimiter: bytes, quotes: bool) -> list[list[bytes]]:
    """Split a file into raw fields. A field is quoted if its first and last characters are quotes."""
    data = data.removeprefix(b"\xef\xbb\xbf").strip(b"\r\n")
    edge = re.escape(delimiter)
    quoted = rb'"(?>[^"]*(?:""[^"]*)*)"(?=\r?(?:%b|\n|\Z))|' % edge if quotes else b""
    field = re.compile(quoted + rb"[^%b\n]*" % edge)
    rows: list[list[bytes]] = [[]]
    at = 0
    while True:
        match = field.match(data, at)
        assert match
        end = match.end() + data.startswith(b"\r", match.end())
        rows[-1].append(data[at:end].rstrip(b"\r"))
        if end >= len(data):
            return rows
        if data[end : end + 1] == b"\n":
            rows.append([])
        at = end + 1


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
