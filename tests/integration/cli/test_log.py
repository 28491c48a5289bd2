"""The log: quiet by default, what --verbose and --log-format json write, and never a value of the file."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ghostpoi as command
from small_city import SEED, called, city, sentence

import ghostpoi
from ghostpoi.progress import LOG


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_by_default_nothing_is_logged(tmp_path: Path) -> None:
    done = command("protect", city(), "-o", tmp_path / "release")
    assert (done.returncode, done.stderr) == (0, "")


def test_verbose_says_what_is_done(tmp_path: Path) -> None:
    done = command("--verbose", "protect", city(), "-o", tmp_path / "release")
    said = [line.split(" ", 1)[1] for line in done.stderr.splitlines()]
    assert (said[0], said[-2:]) == ("protect begins", ["writing the release", "protect is done"])


def test_json_lines_hold_no_value_and_no_seed(tmp_path: Path) -> None:
    short = "12345678901234567"
    words = ("--log-format", "json", "protect", city(), "-o", tmp_path / "release", "--seed", short)
    done = command(*words, "--allow-short-seed")
    found = lines(done.stderr)
    assert done.returncode == 0
    assert (found[0]["message"], found[0]["step"]) == ("protect begins", "protect")
    assert [one["message"] for one in found if one["level"] == "warning"] == [
        "a short seed can be found by trial; omit --seed for a real release"
    ]
    assert found[-1]["message"] == "protect is done"
    assert isinstance(found[-1]["seconds"], float)
    again = command(*words, "--allow-short-seed")
    refused = lines(again.stderr)[-1]
    assert (again.returncode, refused["level"], refused["code"]) == (2, "error", 2)
    assert str(refused["message"]).startswith(f"ghostpoi: {tmp_path / 'release'} exists already; ")
    values = {
        field for line in city().read_text("latin-1").splitlines() for field in line.split("\t") if len(field) > 5
    }
    for text in (done.stderr, again.stderr):
        assert short not in text
        assert f"{int(short):x}" not in text
        assert not [value for value in values if value in text]


def test_a_sentence_that_quotes_the_file_is_not_logged(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("user,poi,lat,lon,time\nann,clinic,north91,1,2012-04-03T18:00:00Z\n")
    shown = sentence(called("inspect", tmp_path / "bad.csv"))
    assert "north91" in shown
    done = command("--log-format", "json", "inspect", tmp_path / "bad.csv")
    assert done.returncode == 2
    refused = lines(done.stderr)[-1]
    assert (refused["level"], refused["code"]) == ("error", 2)
    assert "may quote it" in str(refused["message"])
    assert "north91" not in done.stderr
    assert "clinic" not in done.stderr


def test_an_unknown_format() -> None:
    assert sentence(called("--log-format", "xml", "inspect", city())) == "--log-format xml: use text or json"


def test_a_program_sees_the_log_of_the_package(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert called("plugins").returncode == 0  # resets what a command line has set
    LOG.propagate = True
    with caplog.at_level(logging.INFO, "ghostpoi"):
        ghostpoi.protect(str(city()), output=tmp_path / "release", seed=SEED)
    said = [record.getMessage() for record in caplog.records if record.name == "ghostpoi"]
    assert (said[0], said[-1]) == ("protect begins", "protect is done")
    assert f"{SEED:x}" not in caplog.text
    assert str(SEED) not in caplog.text


@pytest.mark.parametrize("code", ["import ghostpoi.cli", "import ghostpoi; ghostpoi.protect"])
def test_windows_is_refused_at_the_start(code: str) -> None:
    words = [sys.executable, "-c", f"import sys; sys.platform = 'win32'; sys.modules['fcntl'] = None; {code}"]
    done = subprocess.run(words, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == (2 if "cli" in code else 1)
    assert last.endswith(
        "Windows is not supported, because files there cannot be locked and replaced as a release needs; run ghostpoi "
        "in WSL, or in a container"
    )
    assert len(done.stderr.splitlines()) == 1 or "cli" not in code
