"""`protect` beside other work: threads that wait must not take the cores that others need."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ghostpoi.bench.measured import Cost, ghostpoi, measured
from ghostpoi.data.synthetic_file import write_city

BUSY = "while True: pass"


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
    with tempfile.TemporaryDirectory() as name:
        return measured(ghostpoi("protect", city, "-o", Path(name) / "release", "--method", method))
