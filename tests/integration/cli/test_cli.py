"""The command line: bad input gets one sentence, results go to stdout, everything else to stderr."""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import HEADER, ghostpoi
from small_city import Done, called

from ghostpoi.data.synthetic_files import COMPRESS, write_city

ROW = "u,v,c,40.7,-74,2012-04-03T18:00:09Z"
TSMC = "u\tv\tc\tname\t40.7\t-74.0\t-240\tTue Apr 03 18:00:09 +0000 2012"


def table(*rows: str, header: str = HEADER) -> bytes:
    return "\n".join([header, ROW, *rows, ROW]).encode() + b"\n"


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


@dataclass(frozen=True)
class Bad:
    """One kind of bad input: name and content of a file, arguments, and the expected sentence."""

    name: str
    content: bytes | None
    says: str  # a pattern; FILE stands for the path
    more: tuple[str, ...] = ()
    command: tuple[str, ...] = field(default=("inspect", "FILE"))


def parquet(columns: dict[str, list[str]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


PARQUET = parquet({c: ["1", "91"] for c in HEADER.split(",")})
SET = "filters.min_poi_checkins=1", "filters.min_user_checkins=1"
OPEN = ("--set", SET[0], "--set", SET[1])

BAD = {
    "missing file": Bad("x.csv", None, "FILE does not exist; check the path"),
    "empty file": Bad("x.csv", b"", "FILE is empty; give a file with at least one check-in"),
    "blank file": Bad("x.csv", b"\n\n", "FILE is empty; .+"),
    "header alone": Bad("x.csv", HEADER.encode() + b"\n", "FILE has columns but no check-ins; give .+"),
    "binary file": Bad("x.csv", bytes(range(256)) * 9, "FILE is a binary file; give a text table .+"),
    "binary file without zeros": Bad("x.csv", bytes(range(1, 256)) * 9, "FILE is a binary file; give a text table .+"),
    "UTF-16": Bad("x.csv", table().decode().encode("utf-16"), "FILE is UTF-16 text; save it as UTF-8"),
    "too few columns": Bad(
        "x.csv", table("u,v,c,1,2"), "FILE, line 3 has 5 columns, not 6; correct or remove that line"
    ),
    "too many columns": Bad("x.csv", table("u,v,c,1,2,3,4"), "FILE, line 3 has 7 columns, not 6; .+"),
    "blank line": Bad("x.csv", table(""), "FILE, line 3 is blank; correct or remove that line"),
    "TSMC with too few columns": Bad(
        "x.txt", f"{TSMC}\n{TSMC[2:]}\n{TSMC}".encode(), "FILE, line 2 has 7 columns, not 8; .+"
    ),
    "bad time": Bad(
        "x.csv", table("u,v,c,1,2,later"), "FILE, line 3: the time 'later' cannot be read; use ISO 8601 .+"
    ),
    "bad TSMC time": Bad(
        "x.txt",
        f"{TSMC}\n{TSMC.replace('Apr', 'Abr')}\n".encode(),
        "FILE, line 2: the time 'Tue Abr 03 18:00:09 .0000 2012' cannot be read; .+",
    ),
    "latitude 91": Bad(
        "x.csv", table("u,v,c,91,2,3"), "FILE, line 3: the latitude 91.0 is outside the range -90 to 90; correct .+"
    ),
    "longitude as text": Bad(
        "x.csv", table("u,v,c,1,west,3"), "FILE, line 3: the longitude 'west' is not a number; give .+"
    ),
    "NaN": Bad("x.csv", table("u,v,c,NaN,2,3"), "FILE, line 3: the latitude is missing; fill it in, or use .+"),
    "missing user": Bad(
        "x.csv",
        table(",v,c,1,2,3"),
        "FILE, line 3: the user is missing; fill it in, or use --missing drop .+",
    ),
    "no latitude column": Bad(
        "x.csv",
        table(header=HEADER.replace("lat", "north")),
        "FILE, line 1: no column looks like the latitude among user, poi, category, north.+; name it with --map lat=.+",
    ),
    "two columns for one field": Bad(
        "x.csv",
        table(header=HEADER.replace("category", "venue")),
        "FILE, line 1: columns 'poi' and 'venue' could both be the venue; choose one with --map poi=poi",
    ),
    "no header": Bad("x.csv", f"{ROW}\n{ROW}\n".encode(), "FILE, line 1: no column looks like the user among u, v, .+"),
    "control characters in the header": Bad(
        "x.csv", b"a\x1b[31m,b\x85\x0c\na,b\n" * 9, "FILE, line 1: no column looks .+"
    ),
    "all sessions too short": Bad(
        "x.csv",
        table(),
        "FILE: the filter 'min_session_length' leaves nothing of 2 check-ins .+; lower it with "
        "--set filters.min_session_length=2 or raise filters.session_gap_s",
        OPEN,
    ),
    "all venues too rare": Bad(
        "x.csv", table(), "FILE: the filter 'min_poi_checkins' leaves nothing .+ --set filters.min_poi.+"
    ),
    "directory": Bad("x.csv", None, "FOLDER holds no files; give one that does", (), ("inspect", "FOLDER")),
    "name too long": Bad("x" * 300, None, "FILE cannot be read: File name too long; .+"),
    "folder that is a file": Bad(
        "x.csv", b"x", "FILE/y cannot be read: Not a directory; .+", (), ("inspect", "FILE/y")
    ),
    **{
        f"truncated {suffix}": Bad(
            f"x.csv{suffix}", cut(COMPRESS[suffix](table())), "FILE is a damaged compressed file .+; download .+"
        )
        for suffix in COMPRESS
    },
    "damaged Parquet": Bad("x.parquet", cut(PARQUET), r"FILE is a damaged Parquet file \(.+\); write it again"),
    "Parquet with a bad value": Bad(
        "x.parquet", PARQUET, "FILE, row 2: the latitude '91' is outside the range -90 to 90; .+"
    ),
    "unknown option": Bad("x.csv", table(), "No such option: --nope.*; see ghostpoi --help", ("--nope",)),
    "unknown setting": Bad(
        "x.csv",
        table(),
        ".+has no setting 'radius'; did you mean candidates.radius_km.",
        ("--set", "candidates.radius=1"),
    ),
    "setting out of range": Bad(
        "x.csv", table(), ".+ must be at least 1, not 0", ("--set", "filters.min_poi_checkins=0")
    ),
    "setting without a value": Bad(
        "x.csv", table(), "--set 'x' is not of the form section.key=value, e.g. .+", ("--set", "x")
    ),
    "no such settings file": Bad(
        "x.csv", table(), "cannot read the settings file /none: no such file .+", ("--config", "/none")
    ),
    "unknown field": Bad(
        "x.csv", table(), "--map venue=poi: there is no field 'venue'; fields are user, .+", ("--map", "venue=poi")
    ),
    "unknown column": Bad(
        "x.csv", table(), "--map poi=pio: FILE, line 1 has no column 'pio'; did you mean 'poi'.", ("--map", "poi=pio")
    ),
    "no field": Bad("x.csv", table(), "--map 'poi' is not of the form field=column, e.g. .+", ("--map", "poi")),
    "unknown command": Bad("x.csv", None, "No such command 'inspekt'.*; see ghostpoi --help", (), ("inspekt", "FILE")),
    "no file": Bad("x.csv", None, "Missing argument '[A-Z]+'; see ghostpoi --help", (), ("inspect",)),
    "no command": Bad("x.csv", None, "name a command; see ghostpoi --help", (), ()),
    "synth into no folder": Bad(
        "x.csv",
        None,
        "-o FILE/x.csv: the folder FILE does not exist; create it first",
        (),
        ("synth", "-o", "FILE/x.csv"),
    ),
    "synth of an unknown kind": Bad(
        "x.xls", None, "-o FILE: unknown file type; end the name in .+", (), ("synth", "-o", "FILE")
    ),
    "synth over a folder": Bad(
        "x.csv",
        None,
        r"-o FOLDER/sub.csv: cannot be written \(Is a directory\); .+",
        ("--users", "5"),
        ("synth", "-o", "FOLDER/sub.csv"),
    ),
    "synth of nobody": Bad(
        "x.csv", None, "--users must be at least 1, not 0.*", ("--users", "0"), ("synth", "-o", "FILE")
    ),
    "synth without a name": Bad("x.csv", None, "Missing option .+; see ghostpoi --help", (), ("synth",)),
}


def one_sentence(done: Done) -> str:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("\n")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    sentence = done.stderr[:-1]
    assert sentence.isprintable()
    assert sentence.startswith("ghostpoi: ")
    return sentence.removeprefix("ghostpoi: ")


def tried(case: str, folder: Path, run: Callable[..., Done]) -> None:
    """Try a bad case in its own folder, with `run` as the command line."""
    bad, path = BAD[case], folder / BAD[case].name
    if bad.content is not None:
        path.write_bytes(bad.content)
    (folder / "sub.csv").mkdir()
    before = set(folder.iterdir())
    done = run(*(w.replace("FILE", str(path)).replace("FOLDER", str(folder)) for w in (*bad.command, *bad.more)))
    says = bad.says.replace("FILE", re.escape(str(path))).replace("FOLDER", re.escape(str(folder)))
    assert re.fullmatch(says, one_sentence(done)), done.stderr
    assert case == "no command" or not done.stdout
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence_with_place_and_remedy(case: str, tmp_path: Path) -> None:
    tried(case, tmp_path, called)


@pytest.mark.parametrize("case", ["bad time", "no command"])
def test_bad_input_in_a_process_of_its_own(case: str, tmp_path: Path) -> None:
    tried(case, tmp_path, ghostpoi)


DROP = """
import os, sys, rich.table
from ghostpoi import cli, settings
from ghostpoi import formats
from ghostpoi.data import synthetic_files
from ghostpoi.regions import describe
if os.geteuid() == 0:  # root may read everything, and other users may not be able to start this Python
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
cli.main()
"""


def test_no_permission() -> None:
    def run(*arguments: object) -> str:
        command = [sys.executable, "-c", DROP, *map(str, arguments)]
        return one_sentence(subprocess.run(command, capture_output=True, text=True, timeout=600))

    with tempfile.TemporaryDirectory() as name:  # not tmp_path, which other users cannot enter
        folder = Path(name) / "folder"
        folder.mkdir()
        path, target = folder / "x.csv", folder / "y.csv"
        refused = f"{path} cannot be read by this user; change its permissions or run as its owner"
        path.write_bytes(table())
        os.chmod(name, 0o755)
        path.chmod(0)
        try:
            assert run("inspect", path) == refused
            path.chmod(0o644)
            folder.chmod(0)
            assert run("inspect", path) == refused
            folder.chmod(0o555)
            said = run("synth", "-o", target, "--users", 3, "--pois", 9, "--days", 9)
            assert said == f"-o {target}: cannot be written (Permission denied); choose another folder"
        finally:
            folder.chmod(0o755)


# Good input.

KEYS = {
    "": "checkins users pois categories filters after_filters sessions positions candidates",
    "after_filters": "checkins users pois",
    "sessions": "train val test",
    "positions": "train val test",
    "candidates": "mean_size coverage widened min_candidates category_field",
}
SIZE = ("--users", 40, "--pois", 80, "--days", 40, "--seed", 5)


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    path = tmp_path_factory.mktemp("city") / "city.txt"
    return path, called("synth", "-o", path, *SIZE)


def inspected(path: Path, *more: object) -> dict[str, Any]:
    done = called("inspect", path, "--json", *more)
    assert (done.returncode, done.stderr) == (0, "")
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def test_synth_says_what_it_made_on_stderr(city: tuple[Path, Done]) -> None:
    path, done = city
    rows = len(path.read_bytes().splitlines())
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{path}: {rows:,} check-ins of 40 people at 80 venues over 40 days\n"


def test_inspect_prints_one_json_object_with_every_key(city: tuple[Path, Done]) -> None:
    path, _ = city
    summary = inspected(path)
    for section, keys in KEYS.items():
        assert set(keys.split()) <= set(summary[section] if section else summary)
    assert summary["checkins"] == len(path.read_bytes().splitlines())
    assert [set(step) for step in summary["filters"]] == [{"step", "rows_before", "rows_after", "why"}] * 3
    assert summary["candidates"]["category_field"] == "category_id"


def test_settings_and_maps_reach_the_figures(city: tuple[Path, Done], tmp_path: Path) -> None:
    path, _ = city
    (tmp_path / "s.toml").write_text("[candidates]\nmin_candidates = 3\n[filters]\nmin_poi_checkins = 2\n")
    more = ("--config", tmp_path / "s.toml", "--set", "candidates.min_candidates=2", "--map", "category=category")
    summary = inspected(path, *more)
    assert summary["candidates"]["min_candidates"] == 2
    assert summary["candidates"]["category_field"] == "category"
    assert "fewer than 2 " in summary["filters"][0]["why"]


def test_inspect_for_a_person(city: tuple[Path, Done]) -> None:
    done = called("inspect", city[0])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{city[0]}\n")
    assert "\x1b" not in done.stdout
    for word in ("min_session_length", "train", "session length", "of rows can be substituted with crowd", "60 km/h"):
        assert word in done.stdout


def test_a_single_user_and_duplicate_rows_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(table(*[ROW] * 8))
    assert inspected(path)["duplicates"] == 9
    done = called("inspect", path)
    assert done.returncode == 0
    assert "note: 9 rows repeat the user, venue and time of another" in done.stdout


FORMS = [form + end for form in (".txt", ".csv", ".tsv", ".parquet") for end in ("", ".gz", ".xz", ".zst")]


def test_synth_writes_every_form_and_all_read_back_alike(tmp_path: Path) -> None:
    from summaries import summarise

    from ghostpoi import formats
    from ghostpoi.settings import FilterSettings, Settings

    seen = []
    for form in FORMS:
        path = tmp_path / f"city{form}"
        write_city(path, 40, 80, 40, 5)
        seen.append(summarise(formats.read(path).table, Settings(filters=FilterSettings(min_poi_checkins=5))))
        write_city(again := tmp_path / f"again{form}", 40, 80, 40, 5)
        assert again.read_bytes() == path.read_bytes(), form
    assert all(summary == seen[0] for summary in seen)
    write_city(other := tmp_path / "other.txt", 40, 80, 40, 6)
    assert other.read_bytes() != (tmp_path / "city.txt").read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"other.txt", *(n + f for n in ("city", "again") for f in FORMS)}


def test_the_same_seed_gives_the_same_bytes_in_another_process(city: tuple[Path, Done], tmp_path: Path) -> None:
    assert ghostpoi("synth", "-o", tmp_path / "city.txt", *SIZE).returncode == 0
    assert (tmp_path / "city.txt").read_bytes() == city[0].read_bytes()


@pytest.mark.parametrize("command", [[], ["inspect"], ["synth"], ["demo"], ["study"], ["study", "run"]])
def test_help(command: list[str]) -> None:
    done = called(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(["Usage: ghostpoi", *command]) in done.stdout


def test_help_and_errors_import_nothing_slow() -> None:
    code = (
        "import sys\nfrom ghostpoi.cli import main\nsys.argv = ['ghostpoi', '--help']\n"
        "try: main()\nfinally: print([m for m in ('torch', 'polars', 'numpy', 'scipy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "[]"


def test_inspect_does_not_import_torch(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(table(*[ROW] * 8))
    code = (
        f"import sys\nfrom ghostpoi.cli import main\nsys.argv = ['ghostpoi', 'inspect', {str(path)!r}]\n"
        "try: main()\nfinally: print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "False")


def test_a_closed_pipe_is_no_traceback(city: tuple[Path, Done]) -> None:
    command = [sys.executable, "-c", "from ghostpoi.cli import main; main()", "inspect", str(city[0]), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141  # not 1, by which verify says no
