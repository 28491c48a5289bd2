"""Terminal escapes in file names, venue ids and column names are shown, never sent to the terminal."""

import io
import json
from pathlib import Path

import pytest
from small_city import SEED, SETS, called, city, release, sentence

from ghostpoi.cli.output import console, printable

RED, BELL, FLIP = "\x1b[31m", "\x07", "\u202e"
HOME = f"h{RED}\x9b2J{FLIP}"
SHOWN = "h\\x1b[31m\\x9b2J\\u202e"


def harmless(text: str) -> None:
    assert all(line.isprintable() for line in text.splitlines()), text


@pytest.fixture
def odd_city(tmp_path: Path) -> Path:
    """The city with escapes in its name, in its venue ids and in the header."""
    path = tmp_path / f"c{RED}\n{BELL}.tsv"
    header = "user\tpoi\tcat{RED}\tcategory name\tlat\tlon\toffset\ttime\n".replace("{RED}", RED)
    rows = [line.split("\t") for line in city().read_text("latin-1").splitlines()]
    lines = ("\t".join([row[0], HOME + row[1], *row[2:]]) for row in rows)
    path.write_text(header + "\n".join(lines) + "\n", newline="")
    return path


def test_inspect_protect_and_verify(odd_city: Path, tmp_path: Path) -> None:
    which = ["--map", f"category=cat{RED}"]
    name = str(odd_city).replace(odd_city.name, "c\\x1b[31m\\n\\x07.tsv")
    done = called("inspect", odd_city, *which, *SETS[-2:])
    harmless(done.stdout)
    assert done.stdout.splitlines()[0] == name
    assert "(category: cat\\x1b[31m)" in done.stdout.replace("\n", " ")
    out = tmp_path / f"r{RED}\n"
    done = called("protect", odd_city, "-o", out, "--method", "random", "--seed", SEED, *SETS, *which)
    assert done.returncode == 0, done.stderr
    harmless(done.stdout)
    assert done.stdout.splitlines()[1].startswith(f"{tmp_path}/r\\x1b[31m\\n: ")
    done = called("verify", out, "--against", odd_city)
    assert done.returncode == 0
    harmless(done.stdout)
    assert "poi, cat\\x1b[31m, lat, lon, category name" in done.stdout.replace("\n", " ")


def test_a_venue_id_in_a_failed_check(odd_city: Path, tmp_path: Path) -> None:
    """The clean file lacks the venue that the release shows."""
    which = ["--map", f"category=cat{RED}"]
    out = tmp_path / "r"
    assert called("protect", odd_city, "-o", out, "--method", "random", "--seed", SEED, *SETS, *which).returncode == 0
    other = tmp_path / "other.tsv"
    other.write_text(odd_city.read_text().replace(HOME, "x"), newline="")
    done = called("verify", out, "--against", other)
    assert done.returncode == 1
    harmless(done.stdout)
    assert f"the venue {SHOWN}" in done.stdout


def test_json_escapes_what_a_terminal_would_obey(odd_city: Path) -> None:
    column = f"cat{RED}"
    done = called("inspect", odd_city, "--map", f"category={column}", *SETS[-2:], "--json")
    harmless(done.stdout)
    assert json.loads(done.stdout)["candidates"]["category_field"] == column


def test_json_escapes_more_than_json_must(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"user,poi,{FLIP}\x9b,lat,lon,time\n" + "u,v,c,40.7,-74,1\n" * 20)
    done = called("inspect", path, "--map", f"category={FLIP}\x9b", "--json")
    harmless(done.stdout)
    assert '"category_field": "\\u202e\\u009b"' in done.stdout


def test_errors(tmp_path: Path) -> None:
    assert sentence(called("inspect", tmp_path / f"{RED}\nx")).startswith(f"{tmp_path}/\\x1b[31m\\nx does not exist")
    assert sentence(called("verify", release().folder, "--map", RED)).startswith("--map '\\x1b[31m' is not")


def test_the_styles_of_a_terminal_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", terminal)
    console().print(f"[bold]a{RED}b[/]\nc")
    assert terminal.getvalue() == "\x1b[1ma\\x1b[31mb\x1b[0m\nc\n"
    assert printable(f"a\n{RED}é…") == "a\\n\\x1b[31mé…"


def test_names_with_colons_do_not_become_emojis(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("r:smile:")
    assert capsys.readouterr().out == "r:smile:\n"
