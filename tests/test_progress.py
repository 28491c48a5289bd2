"""The progress bar: the time left, and a real terminal."""

import os
import pty
import subprocess
import sys

import pytest

from ghostpoi.progress import BEFORE, bar, left

SCRIPT = f"""
import time
from ghostpoi.progress import bar
with bar(10) as report:
    report({BEFORE!r}, 6)
    time.sleep(0.3)
    report("victim clean", 1)
    time.sleep(0.3)
"""


@pytest.mark.parametrize(
    ("elapsed", "done", "before", "text"),
    [
        (60.0, 5.0, 0.0, "0:01:00"),
        (60.0, 1.0, 0.0, "0:09:00"),
        (60.0, 7.0, 6.0, "0:03:00"),  # what an earlier run did tells nothing of the pace
        (3600.0, 1.0, 0.0, "9:00:00"),
        (60.0, 6.0, 6.0, "-:--:--"),
        (0.0, 0.0, 0.0, "-:--:--"),
        (60.0, 11.0, 0.0, "0:00:00"),  # more units than were foreseen
    ],
)
def test_the_time_left_is_that_of_the_whole_runs_pace(elapsed: float, done: float, before: float, text: str) -> None:
    assert left(elapsed, done, before, 10.0) == text


def test_a_terminal_sees_what_is_done_and_how_long_it_takes() -> None:
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
    assert BEFORE in text
    assert "60%" in text
    assert "victim clean" in text
    assert "70%" in text
    assert "left, about" in text
    assert "-:--:--" in text


def test_elsewhere_it_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with bar(3) as report:
        report("something", 2)
    assert capfd.readouterr() == ("", "")
