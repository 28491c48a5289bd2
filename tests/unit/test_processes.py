"""Worker processes end with the process that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import os, sys, time
from pathlib import Path
from ghostpoi.processes import process_pool

def work(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    with process_pool(2) as pool:
        list(pool.map(work, [sys.argv[1]] * 2))
"""


def alive(process: int) -> bool:
    """Whether a process runs; a dead one that nobody has waited for does not."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see whether a process runs")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_their_parent_is_killed(tmp_path: Path, end: signal.Signals) -> None:
    script, folder = tmp_path / "parent.py", tmp_path / "workers"
    script.write_text(PARENT)
    folder.mkdir()
    with subprocess.Popen([sys.executable, script, folder], cwd=tmp_path) as parent:
        until = time.monotonic() + 300
        while len(found := [int(path.name) for path in folder.iterdir()]) < 2:
            assert time.monotonic() < until
            assert parent.poll() is None
            time.sleep(0.05)
        assert all(map(alive, found))
        os.kill(parent.pid, end)
    while any(map(alive, found)):
        assert time.monotonic() < until
        time.sleep(0.05)
