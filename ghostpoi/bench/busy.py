"""`protect` beside other work: threads that wait must not take the cores that others need."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ghostpoi.data.synthetic_file import write_city

BUSY = "while True: pass"


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    cpu_seconds: float


def busy(users: int, others: int, method: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Protect a synthetic city alone, then beside `others` busy processes. `ratio` is the second time over the first.

    `cpu_ratio` compares CPU time: waiting in vain would raise it.
    """
    with tempfile.TemporaryDirectory() as name:
        city = Path(name) / "city.txt"
        write_city(city, users, 3 * users, 80, 0)
        say("protecting alone")
        alone = _protect(city, method)
        say(f"protecting beside {others} busy processes")
        with ExitStack() as stack:
            for _ in range(others):
                stack.enter_context(_busy_process())
            beside = _protect(city, method)
    return {
        "ratio": beside.seconds / alone.seconds,
        "cpu_ratio": beside.cpu_seconds / alone.cpu_seconds,
        "alone": alone._asdict(),
        "beside": beside._asdict(),
        "busy_processes": others,
        "cores": os.cpu_count(),
    }


@contextmanager
def _busy_process() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _protect(city: Path, method: str) -> Cost:
    """Run the command line in a process of its own, so that its CPU time can be told from ours."""
    with tempfile.TemporaryDirectory() as name:
        before, begin = os.times(), time.perf_counter()
        release = str(Path(name) / "release")
        command = [sys.executable, "-m", "ghostpoi", "protect", str(city), "-o", release, "--method", method]
        subprocess.run(command, check=True, capture_output=True)
        seconds, after = time.perf_counter() - begin, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(seconds, cpu)
