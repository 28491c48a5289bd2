"""What a command costs: its time, and the CPU time and memory of all processes that it starts."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

from ghostpoi.errors import InputError

EVERY_S = 0.2  # between two looks at the memory; a look takes some milliseconds of CPU
DISK_SHARE = 0.02  # of the time goes into looks at the disk, which take longer


class Cost(NamedTuple):
    """What a command took. Without psutil, `peak_bytes` is that of the largest process and the rest is unknown."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int  # resident, of all processes together
    main_cpu_seconds: float | None = None  # of the process that was started first
    main_bytes: int | None = None  # its peak
    worker_bytes: int | None = None  # the peak of the largest other process
    disk_bytes: int = 0  # the most that lay in the folder that was watched


@dataclass
class Watch:
    """The largest values seen so far of a process and all that it started."""

    peak: int = 0
    main: int = 0
    worker: int = 0
    main_cpu: float = 0.0
    disk: int = 0
    looks: int = 0

    def see(self, main: int, workers: list[int], main_cpu: float) -> None:
        """Note the resident bytes of all processes at one moment, and the CPU time of the first so far."""
        self.peak = max(self.peak, main + sum(workers))
        self.main, self.worker = max(self.main, main), max([self.worker, *workers])
        self.main_cpu, self.looks = max(self.main_cpu, main_cpu), self.looks + 1

    def look(self, number: int) -> None:
        """Look at a running process. Processes may end meanwhile."""
        try:
            import psutil
        except ModuleNotFoundError:  # it comes with Dask
            return
        with suppress(psutil.Error):
            first = psutil.Process(number)
            workers = []
            for process in first.children(recursive=True):
                with suppress(psutil.Error):
                    workers.append(process.memory_info().rss)
            used = first.cpu_times()
            self.see(first.memory_info().rss, workers, used.user + used.system)

    def weigh(self, folder: Path) -> None:
        """Note how many bytes lie in a folder. A file with two names counts once; files may vanish meanwhile."""
        size = {}
        for path in _inside(folder):
            with suppress(OSError):
                found = path.lstat()
                size[found.st_ino] = found.st_size if S_ISREG(found.st_mode) else 0
        self.disk = max(self.disk, sum(size.values()))


def ghostpoi(*words: object) -> list[str]:
    """Return the command line of a step of ghostpoi, with this interpreter."""
    return [sys.executable, "-m", "ghostpoi", *map(str, words)]


def measured(command: list[str], environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Cost:
    """Run a command and measure it, with what it leaves in a folder meanwhile; refuse to go on if it fails."""
    watch = Watch()
    with tempfile.TemporaryFile() as said:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            env=os.environ | dict(environment or {}),
        )  # fmt: skip
        try:
            status, used = _wait(process.pid, watch, folder)
        except BaseException:
            process.kill()
            process.wait()
            raise
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").splitlines() or ["it said nothing"]
            raise InputError(f"{' '.join(command[1:])} ended with code {process.returncode}: {lines[-1]}")
    cpu = used.ru_utime + used.ru_stime
    if not watch.looks:
        return Cost(seconds, cpu, used.ru_maxrss * 1024, disk_bytes=watch.disk)
    return Cost(seconds, cpu, watch.peak, watch.main_cpu, watch.main, watch.worker, watch.disk)


def _wait(number: int, watch: Watch, folder: Path | None) -> tuple[int, Any]:
    """Wait for a process; return its status and what it and its descendants used."""
    next_weighing = 0.0
    while True:
        ended, status, used = os.wait4(number, os.WNOHANG)
        if ended:
            return status, used
        watch.look(number)
        begin = time.monotonic()
        if folder is not None and begin >= next_weighing:
            watch.weigh(folder)
            next_weighing = begin + (time.monotonic() - begin) / DISK_SHARE
        time.sleep(EVERY_S)


def _inside(folder: Path) -> Iterator[Path]:
    """Yield all paths below a folder. Some may vanish meanwhile; `Path.rglob` fails then."""
    for place, _, names in os.walk(folder):  # it passes over what it cannot list
        yield from (Path(place, name) for name in names)
