"""The progress bar: the time left, and a real terminal."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ghostpoi.progress import BEFORE, TO_FILE, Pace, Whole, bar

SCRIPT = f"""
import time
from ghostpoi.progress import bar
with bar(10) as report:
    report({BEFORE!r}, 6)
    time.sleep(0.5)
    report("victim clean", 1)
    time.sleep(0.5)
"""


def test_the_time_left_is_that_of_the_whole_runs_pace() -> None:
    pace = Pace(10.0)
    assert pace.left(0.0) == "-:--:--"
    pace.report(BEFORE, 4.0, 1.0)
    pace.report("adversary", 0.0, 2.0)
    pace.report("victim", 1.0, 100.0)  # the clock starts here, after the preparation
    assert pace.left(130.0) == "-:--:--"
    pace.report("victim", 1.0, 160.0)  # one unit in a minute, four are left
    assert pace.left(160.0) == "0:04:00"
    pace.report("victim", 2.0, 161.0)  # a victim that stopped early: three units in 61 s, two are left
    assert pace.left(161.0) == "0:00:41"
    pace.report(BEFORE, 1.0, 161.0)  # done by an earlier run: it does not count as speed
    assert pace.left(161.0) == "0:00:20"
    pace.report("victim", 3.0, 200.0)  # more than the total
    assert pace.left(200.0) == "0:00:00"


def test_all_is_done_at_the_end_and_not_before() -> None:
    reported: list[tuple[str, float]] = []
    whole = Whole(lambda label, units: reported.append((label, units)), 10.0, 20.0)
    whole("one", 12.0)
    assert reported == [("one", 6.0)]  # the bar is shorter than the work
    whole("two", 10.0)  # more than was expected
    whole("three", 2.0)
    assert [label for label, _ in reported] == ["one", "two", "three"]
    assert sum(units for _, units in reported) == pytest.approx(9.9)
    whole.finish()
    assert sum(units for _, units in reported) == pytest.approx(10.0)


def test_a_terminal_sees_what_is_done() -> None:
    main, side = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=side, stderr=side, close_fds=True) as process:
        os.close(side)
        shown = b""
        try:
            while chunk := os.read(main, 4096):
                shown += chunk
        except OSError:  # the other side is closed
            pass
    os.close(main)
    assert process.returncode == 0
    text = shown.decode()
    assert "victim clean" in text
    assert "70%" in text
    assert re.search(r"about .*left", text)


def test_elsewhere_it_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with bar(3) as report:
        report("something", 2)
    assert capfd.readouterr() == ("", "")


def test_a_file_holds_the_progress_for_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "progress.json"
    monkeypatch.setenv(TO_FILE, str(place))
    with bar(4) as report:
        report("reading", 1)
        assert json.loads(place.read_text()) == {"share": 0.25, "label": "reading", "left": "-:--:--"}
        report("at once", 1)  # too soon after the last state to be written
        assert json.loads(place.read_text())["label"] == "reading"
